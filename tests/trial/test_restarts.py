"""Several processes, one trial: what is handed over, and how the controller goes on."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.grade import Ending
from evalkit.ledger import Event, event_line, parse_events
from evalkit.reading import trace_of
from evalkit.recording import Recorder
from evalkit.sandbox.child import Child, Ended, Output
from evalkit.sandbox.room import Room
from evalkit.trial import Advance, Deliver, Restart, Staging, TrialOrder
from evalkit.trial.flight import Flight
from evalkit.trial.lives import (
    Estate,
    Past,
    handover_line,
    next_order,
    over_all,
    problem_line,
    read_handover,
)
from evalkit.trial.order import Life
from evalkit.trial.outbox import ACKNOWLEDGED, LEAVING, Outbox

HOOK = Deliver("hi", 1, method="POST", address="/hook")
AGAIN = Deliver("hi", 1, is_again=True)
SOURCE = ("POST */send", "text")
ESTATE = Estate(b"files", {"a.db": b"content"}, "id-1", 1.5, Ending("failed", "left_process", "x"))
HANDOVER = read_handover(handover_line(ESTATE))

Say = tuple[str, dict[str, Any]]
BEGUN: Say = ("turn", {"turn": 1, "user": "hi"})
REPLY: Say = ("reply", {"turn": 1, "text": "hello"})
TOLD: Say = ("state", {"trace": {"tools_observed": True}})
CALL: Say = ("model_call", {"turn": 1, "call": 0, "script": ""})


def answered(status: int) -> Say:
    """Tell what the agent answered to a delivery."""
    return "http", {"to": "agent", "turn": 1, "status": status}


def order(*turns: Any, reply_from: tuple[str, str] | None = None, **more: Any) -> TrialOrder:
    """Order a trial in a room."""
    staging = Staging((), Room(seed=(7, "a", 0)), 0, reply_from=reply_from)
    return TrialOrder("a", 0, ("first", *turns, "last"), staging=staging, **more)


def ledger(*told: Say) -> list[Event]:
    """Write the events of a trial in its second turn."""
    before: list[Say] = [("trial_start", {}), ("turn", {"turn": 0, "user": "first"})]
    return [Event(n, cast("Any", kind), data)
            for n, (kind, data) in enumerate([*before, *told], start=1)]  # fmt: skip


@pytest.mark.parametrize(
    ("turn", "reply_from", "told", "is_over"),
    [
        pytest.param(Restart("kill"), None, [BEGUN], True, id="restart"),
        pytest.param(Advance(60.0), None, [BEGUN], True, id="advance"),
        pytest.param("hi", None, [BEGUN], False, id="just begun"),
        pytest.param("hi", None, [BEGUN, CALL, TOLD], False, id="not returned"),
        pytest.param("hi", None, [BEGUN, CALL, TOLD, REPLY], True, id="returned"),
        pytest.param(AGAIN, None, [BEGUN, REPLY], True, id="called again"),
        pytest.param("hi", SOURCE, [BEGUN, REPLY], False, id="has sent a reply"),
        pytest.param("hi", SOURCE, [BEGUN, REPLY, TOLD], True, id="returned after a reply"),
        pytest.param(HOOK, SOURCE, [BEGUN, REPLY], False, id="not answered"),
        pytest.param(HOOK, SOURCE, [BEGUN, REPLY, answered(200)], True, id="answered"),
        pytest.param(HOOK, SOURCE, [BEGUN, answered(500)], False, id="refused"),
        pytest.param(HOOK, SOURCE, [BEGUN, REPLY, TOLD], True, id="asked for the next"),
        pytest.param("hi", None, [BEGUN, CALL, BEGUN, REPLY], True, id="returned at last"),
        pytest.param("hi", None, [BEGUN, REPLY, BEGUN], False, id="twice not returned"),
    ],
)
def test_turn_comes_again_unless_it_was_answered(
    turn: Any, reply_from: Any, told: Sequence[Say], is_over: bool
) -> None:
    """Whoever got an answer brings a turn no more; else it is held from its beginning."""
    events = ledger(*told)
    life = next_order(order(turn, reply_from=reply_from), events, HANDOVER).life
    assert life is not None
    assert (life.number, life.first_turn, life.is_again) == (1, 2 if is_over else 1, not is_over)
    assert life.n_begun == 2
    assert life.n_settled == (len(events) if is_over else 2)
    assert parse_events(life.events) == tuple(events)


def test_trial_that_died_before_its_first_turn() -> None:
    """It begins with that turn, and what the agent asked at its start it asks again."""
    life = next_order(order(), [Event(1, "trial_start", {})], HANDOVER).life
    assert life is not None
    assert (life.first_turn, life.is_again, life.n_begun, life.n_settled) == (0, False, 0, 0)


@pytest.mark.parametrize(("die_after", "left"), [(None, None), (2, None), (3, None), (9, 9)])
def test_process_is_killed_once(die_after: int | None, left: int | None) -> None:
    """What was ordered to happen at an event happens in whichever process comes to it."""
    following = next_order(order("hi", die_after=die_after), ledger(BEGUN), HANDOVER)
    assert following.die_after == left
    again = next_order(following, ledger(BEGUN, REPLY), HANDOVER)
    assert again.life is not None
    assert again.life.number == 2


FAILED, LEFT = Ending("failed", "bad_request", "b"), Ending("failed", "left_over_steps", "l")
UNKNOWN, FINE = Ending("incomplete", "gateway_failed", "g"), Ending()


@pytest.mark.parametrize(
    ("past", "now", "code", "reason"),
    [
        (FINE, FINE, "", ""),
        (FAILED, FINE, "bad_request", "b"),
        (FINE, FAILED, "bad_request", "b"),
        (FAILED, UNKNOWN, "bad_request", "b"),
        (UNKNOWN, FAILED, "bad_request", "b"),
        (UNKNOWN, FINE, "gateway_failed", "g"),
        (LEFT, FAILED, "bad_request", "b"),
        (LEFT, FINE, "left_over_steps", "l"),
        (FAILED, LEFT, "bad_request", "b; l"),
    ],
)
def test_what_was_wrong_in_any_life_counts(
    past: Ending, now: Ending, code: str, reason: str
) -> None:
    """Failed beats incomplete beats passed, and what came first is said first."""
    found = over_all(past, now)
    assert (found.reason_code, found.reason) == (code, reason)


def past_of(*told: Say, room: Room) -> Room:
    """Give the room of the life after some events."""
    lines = b"".join(map(event_line, ledger(*told)))
    life = Life(3, 2, lines, HANDOVER.estate, 3)
    return Past(order("hi", life=life), life).room(room)


ANSWER: Say = ("model_reply", {"call": 0})
MOVED: Say = ("turn", {"turn": 1, "user": "", "advance_s": 90.5})


@pytest.mark.parametrize(("frozen", "seconds"), [(False, 92.5), (True, 90.5)])
def test_room_is_as_it_was_at_another_time(frozen: bool, seconds: float) -> None:
    """Ids are others, fixtures are not put again, and the clock has gone on."""
    at = datetime(2026, 3, 1, 10, 0, 0, 250_000, tzinfo=UTC)
    room = Room(seed=(7, "a", 0), clock=at, frozen=frozen, files={"a": b"x"}, spare="/spare")
    found = past_of(ANSWER, MOVED, ANSWER, room=room)
    assert found.seed == (7, "a", 3)
    assert found.clock is not None
    assert (found.clock - at).total_seconds() == seconds
    assert replace(found, seed=room.seed, clock=at, files=room.files) == room


def test_room_of_real_time_and_chance_stays_so() -> None:
    """Where there was no clock and no seed, there is none."""
    found = past_of(ANSWER, MOVED, room=Room(seed=(), clock=None))
    assert (found.seed, found.clock) == ((), None)


def test_estate_arrives_as_it_was_left() -> None:
    """Bytes of files and databases cross the channel in a line of text."""
    line = handover_line(replace(ESTATE, files=bytes(range(256)) * 10))
    assert b"\n" not in line
    life = Life(1, 0, b"", read_handover(line).estate, 0)
    assert Past(order(), life).estate.files == bytes(range(256)) * 10
    assert read_handover(problem_line(2.5, "no room")) == (2.5, b"", "no room")


def test_recorder_goes_on_with_the_numbers() -> None:
    """No number is given twice, and a turn that begins again is the one that it was."""
    events: list[Event] = []
    before = Recorder(events.append)
    before.turn("one")
    before.tool_started("book", {})
    again = Recorder(events.append)
    again.go_on(tuple(events), n_turns=1)
    again.turn("one", again=True)
    assert again.tool_started("book", {}) == 1
    again.reply("done")
    again.turn("two")
    assert [event.seq for event in events] == list(range(1, 7))
    assert [event.data["turn"] for event in events] == [0, 0, 0, 0, 0, 1]
    trace = trace_of(events)
    assert [(turn.user, turn.replies) for turn in trace.turns] == [("one", ("done",)), ("two", ())]


class _Printed:
    """Stands for a process of which only what it printed is known."""

    def read_output(self, _: int) -> Output:
        """Give it."""
        return Output("printed\n", truncated=False)


def ended(status: int | None = -9, reason: str = "") -> Ended:
    """Tell that a process has ended."""
    return Ended(cast("Child", _Printed()), status, reason)


@pytest.fixture
def fly(tmp_path: Path) -> Callable[..., Flight]:
    """Give a trial under way, of which some bytes came."""
    count = iter(range(10_000))

    def fly(*pieces: bytes, **more: Any) -> Flight:
        flight = Flight(TrialOrder("a", 0, ("x", Restart("kill"), "y"), **more),
                        tmp_path / f"{next(count)}.jsonl")  # fmt: skip
        for piece in pieces:
            flight.receive(piece)
        return flight

    return fly


LINES = b"".join(map(event_line, ledger(("turn", {"turn": 1, "user": "", "restart": "kill"}))))
LAST = LEAVING + b"\n" + LEAVING + handover_line(ESTATE) + b"\n"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, len(LINES + LAST)), max_size=6))
def test_handover_may_come_in_pieces(fly: Callable[..., Flight], cuts: list[int]) -> None:
    """However the bytes are cut, the next process is told the same; the log stands between."""
    whole = LINES + LAST
    ends = sorted({*cuts, len(whole)})
    pieces = [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    following = fly(*pieces).next_order(ended())
    assert following is not None
    assert following.life is not None
    assert (following.life.first_turn, following.life.number) == (2, 1)
    assert following.life.estate == HANDOVER.estate
    *before, log = parse_events(following.life.events)
    assert b"".join(map(event_line, before)) == LINES
    assert (log.kind, log.data["text"]) == ("log", "printed\n")


def test_deadline_is_the_trials(fly: Callable[..., Flight]) -> None:
    """What the agent took before is gone; what evalkit takes to restart it does not count."""
    flight = fly(LINES, deadline_s=10.0)
    assert 9 < flight.time_left_s <= 10
    flight.receive(LEAVING + b"\n")
    assert flight.time_left_s > 60
    flight.receive(LAST[2:])
    assert flight.next_order(ended()) is not None
    assert flight.time_left_s > 60
    flight.receive(event_line(Event(5, "state", {"life": 1})))
    assert 8 < flight.time_left_s <= 8.5


@pytest.mark.parametrize(
    ("pieces", "status", "code", "reason"),
    [
        ([LEAVING + b"\n"], -9, "restart_failed", "was ended by SIGKILL before it had handed"),
        ([LEAVING + b"\n" + LEAVING + problem_line(1.0, "too much") + b"\n"], -9,
         "restart_failed", "the agent was not restarted: too much"),
        ([LEAVING + b"\n" + LEAVING + b"{nonsense\n"], -9, "ledger_broken", ""),
        ([LAST], None, "worker_lost", "the server is gone"),
        ([], -9, "agent_killed", "in the trial's middle"),
    ],
    ids=["killed while it packs", "too much to pack", "broken", "server lost", "killed"],
)  # fmt: skip
def test_process_that_hands_nothing_over(
    fly: Callable[..., Flight], pieces: list[bytes], status: int | None, code: str, reason: str
) -> None:
    """The trial ends there, and whose fault that is depends on who was at work."""
    flight = fly(LINES, *pieces)
    end = ended(status, "" if status else "the server is gone")
    assert flight.next_order(end) is None
    ending = flight.finish(end).ending
    assert ending.reason_code == code
    assert reason in ending.reason
    assert ending.status == ("failed" if code == "agent_killed" else "incomplete")


def test_nobody_speaks_after_a_farewell() -> None:
    """What threads still write waits for ever; the last word goes by another way."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox = Outbox(ours)
        outbox.hold()
        outbox.put(b"held\n")
        way = outbox.farewell()
        with socket.socket(fileno=way) as last:
            last.sendall(b"bye\n")
        theirs.settimeout(5)
        received = b""
        while not received.endswith(b"bye\n"):
            received += theirs.recv(100)
    assert received == b"held\n" + LEAVING + b"\n" + b"bye\n"
    assert not outbox._lock.acquire(blocking=False)
    assert LEAVING not in (ACKNOWLEDGED, b"{", b" ")


def test_line_of_a_ledger_never_looks_like_a_farewell() -> None:
    """An event begins with a brace or, where it is hard to write, with a blank."""
    lines = [event_line(Event(1, "log", {"text": text})) for text in ("!", "\ud800", "")]
    assert not any(line.startswith(LEAVING) for line in lines)
    packed = json.loads(handover_line(ESTATE))
    assert base64.b64decode(packed["estate"]) == HANDOVER.estate
