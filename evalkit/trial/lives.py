"""Several processes, one trial: what the next one is told, and how it goes on.

A process ends where a turn restarts it (or somebody wants to see what a crash does), and
hands over what it leaves (:mod:`evalkit.trial.leaving`). The next process has a memory of
its own, as after any restart; files, clock, script and numbers go on.
"""

from __future__ import annotations

import base64
import pickle
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from evalkit.agents.continuing import Talk, go_on_with
from evalkit.grade import Ending
from evalkit.ledger import Event, decode, encode, event_line, parse_events
from evalkit.sandbox.clock import STEP_S
from evalkit.trial.order import Advance, Deliver, Life, Restart, TrialOrder

if TYPE_CHECKING:
    from evalkit.recording import Recorder
    from evalkit.sandbox.room import Room
    from evalkit.trial.pen import AgentClock

_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class Estate:
    """What a process leaves to the next one, and the controller only carries."""

    files: bytes = b""
    """Its folders, packed."""
    databases: Mapping[str, bytes] | None = None
    """What was last seen of each database, if anybody looked: later changes are not told yet."""
    conversation_id: str = ""
    agent_s: float = 0.0
    ending: Ending = field(default_factory=Ending)
    """What is wrong with the trial so far."""


class Handover(NamedTuple):
    """The last word of a process."""

    agent_s: float
    """Seconds that the agent took so far."""
    estate: bytes
    """Of an :class:`Estate`; empty if there is a problem."""
    problem: str = ""
    """Why nobody can go on with it."""


def handover_line(estate: Estate) -> bytes:
    """Write what a process hands over, as one line."""
    whole = zlib.compress(pickle.dumps(estate), _LEVEL)
    packed = base64.b64encode(whole).decode("ascii")
    return encode({"agent_s": estate.agent_s, "estate": packed, "problem": ""})


def problem_line(agent_s: float, problem: str) -> bytes:
    """Write that a process can hand over nothing."""
    return encode({"agent_s": agent_s, "estate": "", "problem": problem})


def read_handover(line: bytes) -> Handover:
    """Read a line of :func:`handover_line`.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is none.
    """
    told = decode(line)
    estate = base64.b64decode(told["estate"])
    return Handover(float(told["agent_s"]), estate, str(told["problem"]))


def next_order(order: TrialOrder, events: Sequence[Event], handover: Handover) -> TrialOrder:
    """Write the order of the next process of a trial.

    Parameters
    ----------
    order
        Of the process that has ended.
    events
        The ledger so far.
    handover
        What it left.
    """
    begun = [event for event in events if event.kind == "turn"]
    turn: int = begun[-1].data["turn"] if begun else 0
    first = next((event.seq for event in begun if event.data["turn"] == turn), 1)
    is_over = bool(begun) and _is_over(order, turn, events[begun[-1].seq :])
    die_after = order.die_after
    life = Life(
        number=1 if order.life is None else order.life.number + 1,
        first_turn=turn + is_over,
        events=b"".join(map(event_line, events)),
        estate=handover.estate,
        n_settled=len(events) if is_over else first - 1,
        is_again=bool(begun) and not is_over,
    )
    is_due = die_after is not None and die_after > len(events)
    return replace(order, life=life, die_after=die_after if is_due else None)


def _is_over(order: TrialOrder, turn: int, events: Iterable[Event]) -> bool:
    """Say whether a turn is over for whoever brought it to the agent, so that it comes no more.

    One that is called has returned. Else what the agent answered to the request was
    seen, or what it did next.
    """
    held = order.turns[turn]
    if isinstance(held, Advance | Restart):
        return True
    told = [(event.kind, event.data) for event in events]
    replies_elsewhere = order.staging is not None and order.staging.reply_from is not None
    is_called = isinstance(held, str) or not held.method
    if is_called and not replies_elsewhere:
        return any(kind == "reply" for kind, _ in told)
    return any(
        (kind == "state" and "trace" in data)
        or (kind == "http" and data.get("to") == "agent" and 200 <= data["status"] < 300)
        for kind, data in told
    )


class Past:
    """What happened in the lives of a trial before this one."""

    def __init__(self, order: TrialOrder, life: Life) -> None:
        self.life = life
        self.events = parse_events(life.events)
        # An earlier life's, which ran the same code in the same room.
        estate = pickle.loads(zlib.decompress(life.estate))  # noqa: S301
        assert isinstance(estate, Estate)
        self.estate = estate
        self._turns = order.turns

    @property
    def n_said(self) -> int:
        """How many turns the agent was told by a call."""
        before = self._turns[: self.life.first_turn]
        return sum(isinstance(turn, str) or _is_call(turn) for turn in before)

    def go_on(self, recorder: Recorder, clock: AgentClock) -> None:
        """Go on with the numbers and the agent's time, and write that another life begins."""
        clock.go_on_from(self.estate.agent_s)
        recorder.go_on(self.events, n_turns=self.life.n_begun)
        recorder.event("state", {"life": self.life.number})
        go_on_with(Talk(self.estate.conversation_id, self.n_said))

    def over_all(self, ending: Ending) -> Ending:
        """Say how the trial ended, given how its last life did."""
        return over_all(self.estate.ending, ending)

    @property
    def owes_end(self) -> bool:
        """Whether the turn before this life is over, but nobody has looked what it leaves.

        That of a restart is over when the agent has begun anew.
        """
        return self.life.first_turn > 0 and not self.life.is_again

    def room(self, room: Room) -> Room:
        """Give the room that this life is lived in: as it was, and the clock goes on."""
        *seed, _ = room.seed or (0,)
        return replace(
            room,
            files={},
            seed=(*seed, self.life.number) if room.seed else (),
            clock=None if room.clock is None else room.clock + self._elapsed(frozen=room.frozen),
        )

    def _elapsed(self, *, frozen: bool) -> timedelta:
        """Say how far the clock went: a moment for each reply of the model, and what was told."""
        found = timedelta()
        for event in self.events:
            if event.kind == "model_reply" and not frozen:
                found += timedelta(seconds=STEP_S)
            found += timedelta(seconds=event.data.get("advance_s") or 0.0)
        return found


def _is_call(turn: object) -> bool:
    return isinstance(turn, Deliver) and not turn.method


def over_all(past: Ending, now: Ending) -> Ending:
    """Say how a trial ended, given what was wrong with it before its last life.

    Examples
    --------
    >>> over_all(Ending("failed", "unscripted_call", "no step"), Ending()).reason_code
    'unscripted_call'
    """
    if past.status == "passed" or (past.status == "incomplete" and now.status == "failed"):
        return now
    if now.status == "passed" or (past.status == "failed" and now.status == "incomplete"):
        return past
    if past.reason_code == "left_over_steps":  # they matter where the agent did well else
        return now
    return replace(past, reason=f"{past.reason}; {now.reason}")
