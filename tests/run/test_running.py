"""Running a suite: plan, statuses, interruption, resume."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek
from evalkit.errors import AgentError, GraderError, LedgerError, SuiteError, UsageError
from evalkit.graders import Trial

SUITE = """\
suite: small
scenarios:
  - id: books
    tags: [booking]
    input: Book AA123.
    expect:
      tools: [{book: {flight_id: AA123}}]
      reply: {contains: booked}
  - id: greets
    input: Hello
    expect: {reply: {contains: hello}}
"""


def good(text: str) -> ek.Trace:
    """Answer both scenarios well."""
    if "Book" in text:
        return ek.Trace.from_calls([("book", {"flight_id": "AA123"})], reply="Booked AA123.")
    return ek.Trace.from_calls(reply="Hello!")


@pytest.fixture
def suite(tmp_path: Path) -> ek.Suite:
    """Give the small suite, from its file."""
    path = tmp_path / "small.yaml"
    path.write_text(SUITE)
    return ek.load_suite(path)


def run(suite: ek.Suite, agent: Any, tmp_path: Path, **options: Any) -> ek.Run:
    """Run in the live lane, into the test's folder."""
    return ek.run_suite(suite, agent=agent, **{"lane": "live", "out": tmp_path / "runs"} | options)


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_good_agent_passes(suite: ek.Suite, tmp_path: Path, isolation: Any) -> None:
    """Every planned trial is there, passed, with a ledger and a digest."""
    done = run(suite, good, tmp_path, n_trials=3, isolation=isolation)
    assert done.status == "passed"
    assert done.is_finished
    assert done.digest
    assert len(done.trials) == 6
    assert set(done.trials.status) == {"passed"}
    assert done.trace("books", 2).tool_calls[0].args == {"flight_id": "AA123"}
    assert list(done.grades.grader[:3]) == ["truth", "path", "answer"]


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_trial_whose_ledger_cannot_be_read_is_incomplete(
    suite: ek.Suite, tmp_path: Path, isolation: Any
) -> None:
    """An agent that breaks its own records loses its trial, and no other."""

    def agent(text: str) -> ek.Trace:
        trace = good(text)
        for call in trace.tool_calls:
            object.__setattr__(call, "status", "made up")
        return trace

    done = run(suite, agent, tmp_path, isolation=isolation)
    broken, other = done.records
    assert (broken.status, broken.reason_code) == ("incomplete", "ledger_broken")
    assert "made up" in broken.reason
    assert broken.grades == ()
    assert other.status == "passed"
    assert done.is_finished


def test_same_seed_same_digest(suite: ek.Suite, tmp_path: Path) -> None:
    """Two runs of the same thing have one digest, in processes or not."""

    def drawing(text: str) -> ek.Trace:
        return ek.Trace.from_calls([("book", {"flight_id": str(random.random())})], reply=text)

    digests = {run(suite, drawing, tmp_path, seed=7, n_trials=2).digest for _ in range(2)}
    assert len(digests) == 1
    assert run(suite, drawing, tmp_path, seed=8, n_trials=2).digest not in digests


def test_text_agent_is_incomplete_where_tools_are_expected(suite: ek.Suite, tmp_path: Path) -> None:
    """Nobody saw the tool calls of an agent that returns text: that is no pass and no fail."""
    done = run(suite, lambda _: "Booked. Hello!", tmp_path)
    assert done.record("books").status == "incomplete"
    assert done.record("books").reason_code == "tools_not_observed"
    assert done.record("greets").status == "passed"
    assert done.status == "incomplete"


BAD_AGENTS: dict[str, tuple[str, str]] = {
    "raises": ("raise ValueError('no seats')", "agent_raised"),
    "exits": ("import sys; sys.exit(3)", "agent_exited"),
    "dies": ("import os; os._exit(3)", "agent_exited"),
    "is_killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "agent_killed"),
    "hangs": ("import time; time.sleep(600)", "deadline"),
    "says_nothing": ("return None", "no_reply"),
    "returns_bytes": ("return b'booked'", "bad_reply"),
    "returns_50_mb": ("return 'x' * 50_000_000", "reply_too_large"),
}


@pytest.mark.parametrize("name", BAD_AGENTS)
def test_agents_fault_is_failed_and_the_run_goes_on(name: str, tmp_path: Path) -> None:
    """One bad trial never ends the run; its status and reason say whose fault it was."""
    code, reason_code = BAD_AGENTS[name]
    (tmp_path / f"bad_{name}.py").write_text(
        f"def agent(text):\n    if text == 'Hello':\n        return 'hello'\n    {code}\n"
    )
    path = tmp_path / "small.yaml"
    path.write_text(
        SUITE.replace(
            "suite: small", f"suite: small\nagent: bad_{name}:agent\ndefaults: {{deadline: 2s}}"
        )
    )
    done = ek.run_suite(path, lane="live", out=tmp_path / "runs")
    assert (done.record("books").status, done.record("books").reason_code) == (
        "failed",
        reason_code,
    )
    assert done.record("greets").status == "passed"
    assert done.status == "failed"


def test_quality_lane_is_named_as_missing(suite: ek.Suite, tmp_path: Path) -> None:
    """A lane that is not built ends its trials incomplete; nothing else is measured instead."""
    done = run(suite, good, tmp_path, lane="quality")
    assert {record.reason_code for record in done.records} == {"not_built"}
    assert "quality lane" in done.record("books").reason


def test_scripted_suite_runs_in_the_contract_lane(tmp_path: Path) -> None:
    """Where every scenario has a script, the contract lane is the default."""
    path = tmp_path / "scripted.yaml"
    path.write_text(
        "suite: s\nscenarios:\n  - id: a\n    input: hi\n    model: []\n"
        "    expect: {tools: [], reply: {contains: hello}}\n"
    )
    done = ek.run_suite(path, agent=good, out=tmp_path / "runs")
    assert (done.manifest.lane, done.manifest.barrier) == ("contract", "namespace")
    assert done.record("a").status == "passed"


def test_clock_of_another_program_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that sees the real time is not measured with a scenario that sets the clock."""
    monkeypatch.setattr("evalkit.sandbox.faketime.find_faketime", lambda: "")
    (tmp_path / "echo.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'text': 'hello ' + json.loads(line)['text']}), flush=True)\n"
    )
    path = tmp_path / "program.yaml"
    path.write_text(
        f"suite: s\nagent: {{command: [{sys.executable}, echo.py]}}\n"
        "defaults: {model: [], expect: {reply: {contains: hello}}}\nscenarios:\n"
        "  - {id: now, input: hi}\n"
        "  - {id: then, input: hi, clock: 2026-01-05T09:00:00Z}\n"
    )
    done = ek.run_suite(path, out=tmp_path / "runs")
    assert done.record("now").status == "passed", done.record("now").reason
    assert done.record("then").reason_code == "real_clock"
    assert "another program" in done.record("then").reason


def test_missing_part_is_named(tmp_path: Path) -> None:
    """A scenario that needs what this version lacks is incomplete, and the reason names it."""
    path = tmp_path / "journey.yaml"
    path.write_text(
        "suite: s\nscenarios:\n  - id: a\n    turns: [{user: hi}, {advance: 2d}]\n"
        "    expect: {database: [{database: a.db, query: select 1, n_rows: 1}]}\n"
        "  - id: b\n    input: hi\n    expect: {reply: {contains: hello}}\n"
    )
    done = ek.run_suite(path, agent=good, lane="live", out=tmp_path / "runs")
    assert done.record("a").status == "incomplete"
    assert "`advance` turn" in done.record("a").reason
    assert "`expect.database`" in done.record("a").reason
    assert done.record("b").status == "passed"


def test_lane_must_be_said_where_a_script_is_missing(suite: ek.Suite, tmp_path: Path) -> None:
    """Without scripts there is no default lane."""
    with pytest.raises(UsageError, match="--lane live"):
        ek.run_suite(suite, agent=good, out=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lane": "fast"}, "choose contract, live or quality"),
        ({"n_trials": 0}, "at least 1"),
        ({"n_parallel": 0}, "at least 1"),
        ({"isolation": "thread"}, "choose 'process' or 'none'"),
        ({"scenarios": ["bokks"]}, "[Dd]id you mean"),
    ],
)
def test_wrong_options_raise_before_anything_runs(
    suite: ek.Suite, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    """Options that mean nothing raise, and leave no run directory."""
    with pytest.raises(UsageError, match=message):
        run(suite, good, tmp_path, **options)
    assert not (tmp_path / "runs").exists()


def test_no_agent_is_an_error(suite: ek.Suite, tmp_path: Path) -> None:
    """A suite without an agent needs one."""
    with pytest.raises(UsageError, match="--agent module:name"):
        run(suite, None, tmp_path)


def test_unknown_grader_is_an_error(suite: ek.Suite, tmp_path: Path) -> None:
    """A misspelt grader raises before anything runs."""
    with pytest.raises(GraderError, match="did you mean 'truth'"):
        run(suite, good, tmp_path, graders=["trut"])


def test_unknown_grader_in_a_suite_is_a_problem_with_a_line(tmp_path: Path) -> None:
    """`load_suite` checks grader names, and says where the wrong one stands."""
    path = tmp_path / "s.yaml"
    path.write_text("suite: s\nscenarios:\n  - id: a\n    input: hi\n    graders: [polte]\n")
    with pytest.raises(SuiteError, match=r"s\.yaml:5: .*polte"):
        ek.load_suite(path)


def test_only_named_scenarios_run(suite: ek.Suite, tmp_path: Path) -> None:
    """A selection is the plan; the others are in no denominator."""
    done = run(suite, good, tmp_path, scenarios=["greets"])
    assert list(done.trials.scenario) == ["greets"]
    assert done.is_finished


def test_own_grader_grades_and_a_raising_one_is_incomplete(suite: ek.Suite, tmp_path: Path) -> None:
    """A grader that raises never counts as a pass or a zero, and leaves the others alone."""

    @ek.grader
    def names_the_flight(trial: Trial) -> bool:
        """Pass if the reply names the flight."""
        return "AA123" in trial.reply

    @ek.grader
    def broken(trial: Trial) -> bool:
        """Raise, as a grader with a bug does."""
        raise RuntimeError("bug in the grader")

    done = run(suite, good, tmp_path, graders=[names_the_flight, broken])
    grades = done.grades.set_index(["scenario", "grader"])
    assert grades.passed["books", "names_the_flight"]
    assert not grades.passed["greets", "names_the_flight"]
    assert done.record("books").status == "incomplete"
    assert done.record("books").reason_code == "grader_raised"
    assert "bug in the grader" in done.record("books").reason
    assert done.record("greets").status == "failed"


def test_agent_that_cannot_be_pickled_names_the_variable(suite: ek.Suite, tmp_path: Path) -> None:
    """A captured client is named, with the ways out, before anything runs."""
    import threading

    client = threading.Lock()

    def agent(text: str) -> str:
        with client:
            return "hello"

    with pytest.raises(AgentError, match="'client'"):
        run(suite, agent, tmp_path)


def test_agent_module_that_raises_is_an_error_before_the_run(tmp_path: Path) -> None:
    """An agent that cannot be imported is no failed trial: nothing was run."""
    (tmp_path / "broken_agent.py").write_text("raise RuntimeError('no settings')\n")
    path = tmp_path / "small.yaml"
    path.write_text(SUITE)
    with pytest.raises(AgentError, match="no settings"):
        ek.run_suite(path, agent="broken_agent:agent", lane="live", out=tmp_path / "runs")


def test_works_inside_a_running_event_loop(suite: ek.Suite, tmp_path: Path) -> None:
    """Notebooks have a running loop; nothing needs `await`."""
    import asyncio

    async def cell() -> ek.Run:
        return run(suite, good, tmp_path)

    assert asyncio.run(cell()).status == "passed"


RUNNER = """\
import sys, evalkit as ek
ek.run_suite(sys.argv[1], lane="live", n_trials=8, n_parallel=2, out=sys.argv[2])
"""

SLOW = """\
import time, random, evalkit as ek
def agent(text):
    time.sleep(0.05)
    reply = f"Booked, hello {random.random()}"
    return ek.Trace.from_calls([("book", {"flight_id": "AA123"})], reply=reply)
"""


@pytest.fixture
def slow_suite(tmp_path: Path) -> Path:
    """Write a suite whose agent takes its time, and give its file."""
    (tmp_path / "slow_agent.py").write_text(SLOW)
    path = tmp_path / "slow.yaml"
    path.write_text(SUITE.replace("suite: small", "suite: slow\nagent: slow_agent:agent"))
    return path


def _wait_for_trials(out: Path, n: int, runner: subprocess.Popen[bytes]) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and runner.poll() is None:
        for trials in out.glob("*/trials.jsonl"):
            if trials.read_bytes().count(b"\n") >= n:
                return trials.parent
        time.sleep(0.005)
    raise AssertionError("the runner ended too early")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_interrupted_run_is_resumed_to_the_same_digest(
    slow_suite: Path, tmp_path: Path, number: int
) -> None:
    """No finished trial is lost, and the resumed run equals an uninterrupted one."""
    out = tmp_path / "runs"
    command = [sys.executable, "-c", RUNNER, str(slow_suite), str(out)]
    runner = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    folder = _wait_for_trials(out, 3, runner)
    os.kill(runner.pid, number)
    _, complaint = runner.communicate(timeout=60)
    if number == signal.SIGINT:
        assert b"evalkit run --resume" in complaint

    torn = ek.load_run(folder)
    finished = [r for r in torn.records if r.status == "passed"]
    assert 3 <= len(finished) < 16
    assert {r.reason_code for r in torn.records if r.status != "passed"} == {"interrupted"}
    assert torn.digest is None

    from evalkit.run import resume_run

    resumed = resume_run(folder)
    assert resumed.is_finished
    assert [r for r in resumed.records if r in finished] == finished
    whole = ek.run_suite(slow_suite, lane="live", n_trials=8, out=tmp_path / "whole")
    assert resumed.digest == whole.digest


def test_resume_refuses_another_agent(slow_suite: Path, tmp_path: Path) -> None:
    """Trials of two versions of an agent are not one run."""
    done = ek.run_suite(slow_suite, lane="live", out=tmp_path / "runs")
    (tmp_path / "slow_agent.py").write_text(SLOW + "\n# changed\n")
    with pytest.raises(UsageError, match="agent's code has changed"):
        ek.resume_run(done.folder)


def test_resume_of_a_finished_run_changes_nothing(slow_suite: Path, tmp_path: Path) -> None:
    """There is nothing left to do, and that is no error."""
    done = ek.run_suite(slow_suite, lane="live", out=tmp_path / "runs")
    again = ek.resume_run(done.folder)
    assert again.digest == done.digest
    assert again.records == done.records


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_full_disk_keeps_finished_trials(slow_suite: Path, tmp_path: Path) -> None:
    """A disk that fills up ends the run with a sentence; finished trials are kept and resumed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        with pytest.raises(LedgerError, match="finished trials are safe") as caught:
            ek.run_suite(slow_suite, lane="live", n_trials=30, out=disk / "runs")
        assert any("--resume" in note for note in caught.value.__notes__)
        (folder,) = (disk / "runs").iterdir()
        finished = [r for r in ek.load_run(folder).records if r.status == "passed"]
        assert finished
        subprocess.run(["mount", "-o", "remount,size=10m", str(disk)], check=True)
        resumed = ek.resume_run(folder)
        assert resumed.status == "passed"
        assert [r for r in resumed.records if r in finished] == finished
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_cut_log_proves_nothing_about_what_was_not_logged(tmp_path: Path) -> None:
    """Where the middle of the output was left out, a forbidden text may stand there."""
    path = tmp_path / "loud.yaml"
    path.write_text(
        "suite: s\nscenarios:\n  - id: a\n    input: hi\n"
        "    forbid: {log: [secret]}\n    expect: {reply: {contains: hello}}\n"
    )

    def loud(_: str) -> str:
        print("x" * 300_000)  # noqa: T201 - printing is what the test is about
        return "hello"

    done = ek.run_suite(path, agent=loud, lane="live", out=tmp_path / "runs")
    assert done.record("a").status == "incomplete"
    assert "left out" in done.record("a").reason
