"""Real agents that are restarted in the sandbox: what stays, what is gone, what goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import call
from evalkit.results import Run
from evalkit.run import resume_run, run_suite

pytestmark = [pytest.mark.sdk, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

KILL, GRACEFUL = {"restart": "kill"}, {"restart": "graceful"}
KINDS = pytest.mark.parametrize("kind", ["kill", "graceful"])
BARRIERS = pytest.mark.parametrize("barrier", ["namespace", "python", "none"])
COMMAND = {"command": [sys.executable, "keeps_log.py"]}
SERVER = {"http": {"command": [sys.executable, "keeps_log.py", "serve"], "port": 8080}}
PROGRAMS = pytest.mark.parametrize("agent", [COMMAND, SERVER], ids=["command", "server"])

CALM = {"errors": 0}

RunAgent = Callable[..., Run]


@pytest.fixture
def run_agent(tmp_path: Path, write_suite: Any) -> RunAgent:
    """Run trials of one scenario of an agent; by default two, which must do the same."""

    def run(agent: Any, *turns: Any, barrier: str = "namespace", n: int = 2, **keys: Any) -> Run:
        name = f"restarted:{agent}" if isinstance(agent, str) and ":" not in agent else agent
        scenario = {"id": "a", "turns": [turn(one) for one in turns], "expect": CALM, **keys}
        path = write_suite(tmp_path / "suite", name, [scenario])
        return run_suite(
            path,
            lane="contract",
            n_trials=n,
            out=tmp_path / "runs",
            network_barrier=barrier,
            n_parallel=2,
        )

    return run


def turn(given: Any) -> Any:
    """Write a user's turn in which no model is called."""
    return {"user": given, "model": []} if isinstance(given, str) else given


def replies(run: Run) -> list[str]:
    """Give all replies of the first trial."""
    return [event.data["text"] for event in run.ledger("a", 0) if event.kind == "reply"]


def passed(run: Run) -> Run:
    """Check that all trials passed."""
    assert run.status == "passed", [record.reason for record in run.records]
    return run


def ending(run: Run) -> tuple[str, str, str]:
    """Give how the first trial ended."""
    record = run.records[0]
    return record.status, record.reason_code, record.reason


def note(text: str) -> dict[str, Any]:
    """Script a turn in which something is noted."""
    steps = [{"tool": "note", "args": {"text": text}}, {"text": "Noted."}]
    return {"user": f"note {text}", "model": steps}


def noted(n: int) -> dict[str, Any]:
    """Expect so many notes."""
    return {"database": "notes.db", "query": "SELECT count(*) FROM notes", "rows": [[n]]}


@BARRIERS
@KINDS
def test_files_and_database_stay_and_memory_is_gone(
    run_agent: RunAgent, kind: str, barrier: str
) -> None:
    """A real agent finds what it saved; what it only knew is gone; all of it is one trial."""
    state = {"heard": [], "there": ["unwritten"] if kind == "kill" else {"$contains": "exited"}}
    turns = [
        note("one"),
        {"advance": "1h"},
        {"restart": kind, "expect": {"state": state, "database": [noted(1)]}},
        note("two"),
    ]
    expect = {
        "tools": [{"note": {"text": "one"}}, {"note": {"text": "two"}}],
        "database": [noted(2)],
        "reply": {"equals": "Noted. (1 heard, 2 noted)"},
        "path": {"max_model_calls": 4},
    }
    run = passed(run_agent("Notebook", *turns, expect=expect, barrier=barrier))
    if barrier == "namespace":
        again = run_agent("Notebook", *turns, expect=expect, barrier=barrier)
        assert again.digest == run.digest
    told = run.ledger("a", 0)
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    calls = [event.data["call"] for event in told if event.kind == "model_call"]
    assert calls == [0, 1, 2, 3]
    assert [event.data["turn"] for event in told if event.kind == "turn"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "found"), [("kill", "pending: "), ("graceful", "pending: milk, bread")]
)
def test_only_what_is_closed_in_order_can_save_at_last(
    run_agent: RunAgent, kind: str, found: str
) -> None:
    """An agent that saves in ``close()`` loses by a crash what it keeps in memory."""
    run = passed(run_agent("Forgetful", "milk", "bread", {"restart": kind}, "what?"))
    assert replies(run)[-1] == found


def test_ids_are_others_and_the_same_in_each_run(run_agent: RunAgent) -> None:
    """A process draws other ids than the one before it, the same in each run."""
    turns = ["a", KILL, "b", GRACEFUL, "c"]
    first, second = (replies(passed(run_agent("tells_chance", *turns))) for _ in range(2))
    assert first == second
    assert len({told.split()[0] for told in first}) == 3
    assert len({told.split()[1] for told in first}) == 3


@pytest.mark.parametrize("frozen", [False, True])
def test_clock_goes_on(run_agent: RunAgent, frozen: bool) -> None:
    """The clock stands where replies of the model and ``advance`` have put it."""
    ask = {"user": "x", "model": [{"text": "a"}, {"text": "b"}]}
    clock = {"at": "2026-03-01T10:00:00.5Z", "frozen": frozen}
    turns = [ask, {"advance": "2d"}, KILL, ask, KILL, {"advance": "90s"}, ask]
    run = passed(run_agent("Clock", *turns, clock=clock))
    moved = ["01 10:00:02", "03 10:00:04", "03 10:01:36"]
    stood = ["01 10:00:00", "03 10:00:00", "03 10:01:30"]
    assert [text.partition(" ")[2] for text in replies(run)] == (stood if frozen else moved)


def test_script_goes_on_in_each_turn(run_agent: RunAgent) -> None:
    """Steps left over before a restart are a finding; what the agent does at its start too."""
    asked = {"user": "x", "model": [{"text": "a"}, {"text": "b"}]}
    passed(run_agent("asks_twice", asked, KILL, asked))
    more = {"user": "x", "model": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}
    run = run_agent("asks_twice", more, KILL, asked)
    assert ending(run)[:2] == ("failed", "left_over_steps")
    assert ending(run)[2].startswith("turn 1: 1 step(s) were never asked for")
    fewer = {"user": "x", "model": [{"text": "a"}]}
    run = run_agent("Patient", fewer, GRACEFUL, "x")
    assert ending(run)[:2] == ("failed", "unscripted_call")


def test_a_start_may_call_the_model(run_agent: RunAgent) -> None:
    """The script of a restart is what the agent asks for until the next turn."""
    first = {"user": "x", "model": [{"text": "at the first start"}]}
    again = {**KILL, "model": [{"text": "at the second start"}]}
    run = passed(run_agent("AsksAtStart", first, again, "x"))
    assert replies(run) == ["at the first start", "at the second start"]
    run = run_agent("AsksAtStart", first, KILL, "x")
    assert ending(run)[:2] == ("failed", "unscripted_call")


@KINDS
def test_restart_may_come_anywhere(run_agent: RunAgent, kind: str) -> None:
    """Before the first turn, twice in a row, and at the end."""
    restart = {"restart": kind}
    run = passed(run_agent("Forgetful", restart, "milk", restart, restart, "what?", restart))
    assert replies(run)[-1] == ("pending: " if kind == "kill" else "pending: milk")
    lives = [event.data["life"] for event in run.ledger("a", 0) if "life" in event.data]
    assert lives == [1, 2, 3, 4]


@BARRIERS
def test_all_kinds_of_files_stay(run_agent: RunAgent, barrier: str) -> None:
    """Links, pipes, sockets, holes, closed files: all is as it was left."""
    run = passed(run_agent("Leaves", "odd", "look", KILL, "look", GRACEFUL, "look",
                           barrier=barrier))  # fmt: skip
    told = replies(run)
    assert told[1] == told[2] == told[3]
    assert "sparse" in told[1]
    assert told[1].endswith(" 0")


def test_what_all_may_write_to_stays_in_a_room_of_its_own(run_agent: RunAgent) -> None:
    """Behind the namespace barrier, ``/tmp`` is the trial's as well."""
    assert replies(passed(run_agent("Leaves", "shared", KILL, "read_shared")))[-1] == "kept"


def test_too_many_files_are_told(run_agent: RunAgent) -> None:
    """Nothing is measured where not all can be kept."""
    run = run_agent("Leaves", "fill 80", KILL, "look", n=1)
    assert ending(run)[:2] == ("incomplete", "restart_failed")
    assert "more than 67,108,864 bytes, compressed" in ending(run)[2]


def test_nothing_goes_on_while_files_are_kept(run_agent: RunAgent) -> None:
    """Threads and programs of the agent stand still, so what they write is whole."""
    run = passed(run_agent("Leaves", "beat", KILL, "agree", n=1))
    assert replies(run)[-1] == "True"


def test_what_was_not_committed_is_gone(run_agent: RunAgent) -> None:
    """A crash rolls back, from a write-ahead log as well."""
    run = passed(run_agent("Leaves", "rolled_back", KILL, "rows"))
    assert replies(run)[-1] == "[(1,)]"


def test_program_that_is_left_running(run_agent: RunAgent) -> None:
    """Who closes in order must end what it started; who crashes cannot, and it dies as well."""
    run = run_agent("Leaves", "start", GRACEFUL, "say hello", n=1)
    assert ending(run)[:2] == ("failed", "left_process")
    run = passed(run_agent("Leaves", "start", KILL, "say hello", n=1))
    sizes = [event.data["size"] for event in run.ledger("a", 0) if event.kind == "file"]
    assert len(sizes) == 1


def test_what_each_process_prints_is_kept(run_agent: RunAgent) -> None:
    """The log of a process stands where it ended."""
    run = passed(run_agent("Leaves", "say one", KILL, "say two"))
    told = [(event.kind, event.data.get("text")) for event in run.ledger("a", 0)]
    assert told.index(("log", "one\n")) < told.index(("reply", "done"), 8)
    assert ("log", "two\n") in told[-2:]


@PROGRAMS
@KINDS
def test_programs_are_restarted(run_agent: RunAgent, agent: Any, kind: str) -> None:
    """A program finds its conversation again, by the same id, and turns go on counting."""
    restart = {"restart": kind}
    run = passed(run_agent(agent, "a", restart, "b", restart, "c", n=1))
    asked = "asked to end" if kind == "graceful" else "not asked"
    assert replies(run)[-1] == f"1 conversation, turns ['1', '2', '3'], {asked}"
    logs = [event.data["text"] for event in run.ledger("a", 0) if event.kind == "log"]
    assert logs == ["heard a\n", "heard b\n", "heard c\n"]


def test_agent_that_hangs_in_its_close(run_agent: RunAgent) -> None:
    """The deadline counts there, too."""
    run = run_agent("Hangs", "a", GRACEFUL, "b", deadline="1s", n=1)
    assert ending(run)[:2] == ("failed", "deadline")


def test_agent_that_dies_by_itself(run_agent: RunAgent) -> None:
    """Who ends where it should close has failed, restart or not."""
    run = run_agent("Dies", "a", GRACEFUL, "b")
    assert ending(run)[:2] == ("failed", "agent_exited")
    assert "ended with status 4" in ending(run)[2]


def test_agent_that_cannot_begin_again(run_agent: RunAgent) -> None:
    """What it raises at its second start is its fault."""
    run = run_agent("Unborn", "a", KILL, "b")
    assert ending(run)[:2] == ("failed", "agent_raised")
    assert "it was there before" in ending(run)[2]


def test_time_of_all_lives_counts(run_agent: RunAgent) -> None:
    """The deadline is the trial's: what earlier processes took is gone."""
    run = passed(run_agent("Slow", "0.2", KILL, "0.2", deadline="5s", n=1))
    assert 0.4 <= (run.records[0].duration_s or 0) < 2
    run = run_agent("Slow", "0.6", KILL, "0.6", deadline="1s", n=1)
    assert ending(run)[:2] == ("failed", "deadline")


def test_restart_is_shown(run_agent: RunAgent, capsys: pytest.CaptureFixture[str]) -> None:
    """``show`` tells it as a turn of its own, and ``diff`` finds no difference."""
    run = passed(run_agent("Forgetful", "milk", KILL, GRACEFUL, "what?"))
    assert call(["show", str(run.folder), "a", "0"]) == 0
    shown = capsys.readouterr().out
    assert "restart (kill)" in shown
    assert "restart (graceful)" in shown
    assert call(["diff", str(run.folder), str(run.folder)]) == 0


def test_spans_go_on_with_their_numbers(run_agent: RunAgent) -> None:
    """Tools that are traced are seen in each process, and no number is given twice."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    book = {"tool": "book", "args": {"flight_id": "AA123", "date": "Friday"}}
    ask = {"user": "Book it.", "model": [book, {"text": "Done."}]}
    wanted = {"book": {"flight_id": "AA123"}}
    expect = {"tools": [wanted, wanted], "path": False}
    run = passed(run_agent("traced:Starting", ask, KILL, ask, GRACEFUL, expect=expect))
    told = run.ledger("a", 0)
    spans = [event.span for event in told if event.kind == "span"]
    ran = [event.data["call"] for event in told
           if event.kind == "tool_call" and event.data.get("at") == "span"]  # fmt: skip
    assert len(spans) == len(set(spans)) >= 2
    assert ran == [0, 1]


RUNNER = """
import sys
from evalkit.run import run_suite
run_suite(sys.argv[1], lane="contract", n_trials=6, out=sys.argv[2], n_parallel=1)
"""


def test_runner_that_is_killed_goes_on(tmp_path: Path, write_suite: Any) -> None:
    """A trial that was between two of its processes is run again, from its beginning."""
    turns = [turn("0.1"), KILL, turn("0.1"), KILL, turn("0.1")]
    scenario = {"id": "a", "turns": turns, "expect": CALM}
    suite = write_suite(tmp_path / "suite", "restarted:Slow", [scenario])
    out = tmp_path / "runs"
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(suite), str(out)])
    due = time.monotonic() + 60
    while not list(out.glob("*/trials.jsonl")) and time.monotonic() < due:
        time.sleep(0.02)
    time.sleep(0.2)
    runner.kill()
    runner.wait()
    (folder,) = out.iterdir()
    resumed = passed(resume_run(folder))
    whole = run_suite(suite, lane="contract", n_trials=6, out=tmp_path / "whole")
    assert resumed.digest == whole.digest
