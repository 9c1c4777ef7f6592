"""Agents that are not called: webhooks and long polling, as functions and as programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import call
from evalkit.results import Run
from evalkit.run import resume_run, run_suite

API = "https://api.telegram.org/*"
MESSAGE = {"update_id": "{update_id}", "message": {"text": "{text}"}}
HOOK = {"http": "POST /hook", "json": MESSAGE}
POLL = {"http": f"GET {API}/getUpdates", "json": {"ok": True, "result": [MESSAGE]}}
AROUND = {
    "reply_from": {"http": "POST */sendMessage", "field": "text"},
    "fixtures": {
        "http": [
            {f"POST {API}/sendMessage": {"json": {"ok": True}}},
            {f"GET {API}/getMe": {"json": {"ok": True}}},
        ]
    },
    "deadline": "20s",
}
FUNCTION = {"http": {"serve": "messenger:hook", "port": 8080}}
PROGRAM = {"http": {"command": [sys.executable, "messenger.py", "hook"], "port": 8080}}
POLLER = {"http": {"serve": "messenger:poll"}}
POLLING_PROGRAM = {"http": {"command": [sys.executable, "messenger.py", "poll"]}}
WAYS = {
    "function": (FUNCTION, HOOK),
    "program": (PROGRAM, HOOK),
    "function that polls": (POLLER, POLL),
    "program that polls": (POLLING_PROGRAM, POLL),
}

RunBot = Callable[..., Run]


@pytest.fixture
def run_bot(tmp_path: Path, write_suite: Any) -> RunBot:
    """Run two trials of one scenario of a bot; they are compared with each other."""

    def run(agent: Any, *turns: Any, more: Any = None, **keys: Any) -> Run:
        scenario = {**AROUND, "id": "a", "turns": [turn(one) for one in turns], **keys}
        path = write_suite(tmp_path / "suite", agent, [scenario])
        return run_suite(
            path,
            lane="contract",
            n_trials=2,
            out=tmp_path / "runs",
            **{"n_parallel": 1, **(more or {})},
        )

    return run


def turn(given: Any) -> Any:
    """Write a user's turn in which no model is called."""
    return {"user": given, "model": []} if isinstance(given, str) else given


def passed(run: Run) -> Run:
    """Check that both trials passed, and so did the same."""
    assert run.status == "passed", [record.reason for record in run.records]
    return run


def reasons(run: Run) -> set[tuple[str, str]]:
    """Give how the trials ended."""
    return {(record.status, record.reason_code) for record in run.records}


def events(run: Run, kind: str) -> list[Any]:
    """Give what the first trial's ledger tells of a kind."""
    return [event.data for event in run.ledger("a", 0) if event.kind == kind]


JOURNEY: list[Any] = [
    {"user": "hello {update_id}", "model": [], "expect": {"replies": 1}},
    {"user": "say a b", "model": [], "expect": {"replies": 3, "reply": {"contains": "b"}}},
    {"user": "quiet", "model": [], "expect": {"replies": 0}},
    {"advance": "2d"},
    {"redeliver": 1, "expect": {"replies": 0}},
    {
        "user": "bye",
        "model": [],
        "expect": {
            "reply": {"equals": "you said bye"},
            "http": [{f"POST {API}/sendMessage": {"json": {"chat_id": 1}, "times": 1}}],
        },
    },
]


@pytest.mark.parametrize("way", WAYS)
def test_journey_of_a_bot(run_bot: RunBot, way: str) -> None:
    """Each turn reaches it, and its replies are those that it sends: one, three, none, one."""
    agent, deliver = WAYS[way]
    forbid = {"http": "* */deleteMessage"}
    runs = [
        passed(run_bot(agent, *JOURNEY, deliver=deliver, expect={"replies": 5}, forbid=forbid))
        for _ in range(2)
    ]
    assert runs[0].digest == runs[1].digest
    replies = [data["text"] for data in events(runs[0], "reply")]
    assert replies == [f"you said {x}" for x in ("hello {update_id}", "say", "a", "b", "bye")]
    told = [
        (data["user"], data.get("update_id"), data.get("redelivered"))
        for data in events(runs[0], "turn")
    ]
    assert told[0] == ("hello {update_id}", 1, None)
    assert told[3:5] == [("", None, None), ("hello {update_id}", 1, 1)]
    assert told[5] == ("bye", 6, None)


@pytest.mark.parametrize("way", WAYS)
def test_agent_that_ends_in_a_turn_has_failed(run_bot: RunBot, way: str) -> None:
    """Its end is found out at once, not at the deadline."""
    agent, deliver = WAYS[way]
    run = run_bot(agent, "hello", "end", deliver=deliver, expect={"replies": 1}, deadline="60s")
    assert reasons(run) == {("failed", "agent_exited")}
    assert all((record.duration_s or 0) < 20 for record in run.records)


def test_refusal_fails_the_trial(run_bot: RunBot, capsys: pytest.CaptureFixture[str]) -> None:
    """A webhook that answers with an error has refused the update, and that can be seen."""
    run = run_bot(FUNCTION, "fail", "hello", deliver=HOOK, expect={"replies": 1})
    call(["show", str(run.folder), "a", "0"])
    shown = capsys.readouterr().out
    assert "user: fail (update 1, POST /hook)" in shown
    assert "agent: status 500 for POST /hook" in shown
    assert reasons(run) == {("failed", "delivery_refused")}
    assert "answered POST /hook with status 500" in run.records[0].reason
    assert [data["status"] for data in events(run, "http") if data["to"] == "agent"] == [500]


def test_turn_may_last_until_a_reply(run_bot: RunBot) -> None:
    """A bot that answers first and works then is waited for, if the suite says so."""
    later = {**HOOK, "http": "POST /later", "until": "reply"}
    say = {"user": "say a", "model": [], "expect": {"replies": 2}}
    again = {"redeliver": 1, "expect": {"replies": 0}}
    passed(run_bot(FUNCTION, "hello", say, again, "bye", deliver=later, expect={"replies": 4}))
    run = run_bot(FUNCTION, "quiet", deliver=later, deadline="2s", expect={"replies": 0})
    assert reasons(run) == {("failed", "deadline")}
    said = "the agent sent no reply, or too few (POST */sendMessage), within 1.8 s"
    assert said in run.records[0].reason


def test_bot_that_goes_on_asking_is_waited_for(run_bot: RunBot) -> None:
    """A bot that handles updates beside its polls has replied before the next one comes."""
    agent = {"http": {"serve": "messenger:poll_beside"}}
    deliver = {**POLL, "until": "reply"}
    run = run_bot(agent, "hello", "bye", "ciao", deliver=deliver, expect={"replies": 3})
    assert run.status == "passed", [record.reason for record in run.records]


def test_bot_that_never_asks_is_told_so(run_bot: RunBot) -> None:
    """The reason names what one waited for."""
    agent = {"http": {"serve": "messenger:never_polls"}}
    run = run_bot(agent, "hello", deliver=POLL, deadline="1s", expect={"replies": 1})
    assert reasons(run) == {("failed", "deadline")}
    assert "did not ask for its updates (GET https://api.telegram.org" in run.records[0].reason


def test_message_without_a_text_is_no_reply(run_bot: RunBot) -> None:
    """It fails the trial, which goes on all the same."""
    run = run_bot(FUNCTION, "textless", deliver=HOOK, expect={"replies": 1})
    assert reasons(run) == {("failed", "bad_reply")}
    assert "a reply with no `text`" in run.records[0].reason


def test_agent_that_is_called_may_send_its_replies(run_bot: RunBot) -> None:
    """It returns nothing then, and what it is told again it says again."""
    run = passed(
        run_bot(
            "messenger:called",
            {"user": "hello", "model": [], "expect": {"reply": {"equals": "you said hello"}}},
            {"redeliver": 1, "expect": {"replies": 1}},
            expect={"replies": 2},
        )
    )
    assert [data.get("redelivered") for data in events(run, "turn")] == [None, 1]


def test_delivery_of_another_shape(run_bot: RunBot) -> None:
    """A turn may be any request."""
    picture = {"http": "POST /hook", "json": {"update_id": 7, "message": {"photo": []}}}
    run = passed(
        run_bot(FUNCTION, {"deliver": picture, "model": []}, deliver=HOOK, expect={"replies": 1})
    )
    assert events(run, "turn")[0]["deliver"] == "POST /hook"
    assert '"photo":[]' in events(run, "turn")[0]["user"]


def test_missing_request_and_leak_are_found(run_bot: RunBot) -> None:
    """The world is graded: what was sent, and what must not have been in it."""
    run = run_bot(
        FUNCTION,
        "hello CANARY_OF_7Q2M_31337",
        deliver=HOOK,
        expect={"http": [{f"POST {API}/sendMessage": {"json": {"text": "you said bye"}}}]},
        canaries=[{"name": "secret", "value": "CANARY_OF_7Q2M_31337", "allow": ["reply", "log"]}],
    )
    told = {grade.grader: grade.reason for grade in run.records[0].grades if not grade.passed}
    assert "json.text: expected 'you said bye', got 'you said hello" in told["http"]
    assert told["canary"].startswith("canary 'secret' leaked into http")


def test_another_function_may_stand_in(run_bot: RunBot, tmp_path: Path) -> None:
    """`agent=` names a function that serves where the suite's does, and a run goes on with it."""
    more = {"agent": "messenger:poll_beside"}
    run = run_bot(POLLER, "hello", deliver=POLL, expect={"replies": 1}, more=more)
    assert run.manifest.agent == "http: messenger:poll_beside (polls)"
    assert resume_run(run.folder).status == run.status


@pytest.mark.parametrize("barrier", ["python", "none"])
def test_port_of_somebody_else_is_told(run_bot: RunBot, barrier: str) -> None:
    """Where trials share the loopback, the second of two at a time cannot be measured."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        agent = {"http": {"serve": "messenger:hook", "port": port}}
        more = {"network_barrier": barrier}
        run = run_bot(agent, "quiet", deliver=HOOK, expect={"replies": 0}, more=more)
    assert reasons(run) == {("incomplete", "agent_unavailable")}
    assert f"somebody else listens on port {port}" in run.records[0].reason
