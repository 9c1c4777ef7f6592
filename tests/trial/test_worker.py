"""Trials in this very process, for debugging; seeds, orders and parts that are not built."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import LedgerError
from evalkit.ledger import digest, read_events
from evalkit.reading import trace_of
from evalkit.trace import ToolCall, Trace
from evalkit.trial import FinishedTrial, TrialOrder, run_here, trial_seed


def run(folder: Path, agent: Any, *orders: TrialOrder) -> list[FinishedTrial]:
    """Run trials here."""
    return list(run_here(orders, agent, ledger_path=lambda order: folder / f"{order.trial}.jsonl"))


def order(trial: int = 0, **more: Any) -> TrialOrder:
    """Order one trial."""
    return TrialOrder("a", trial, more.pop("turns", ("hi",)), seed=trial, **more)


def test_a_trial_here_leaves_the_same_ledger_as_in_a_process(bench: Any, tmp_path: Path) -> None:
    """Isolation changes what a trial can break, not what it measures."""

    def agent(text: str) -> str:
        return f"{text} {random.random()}"

    code = "import random\ndef agent(text): return f'{text} {random.random()}'"
    orders = bench.orders(2, turns=("a", "b"))
    here = {one.order.trial: digest(one.events) for one in run(tmp_path, agent, *orders)}
    there = {one.order.trial: digest(one.events) for one in bench.start(code, orders)}
    assert here == there


def test_a_ledger_here_is_on_disk(tmp_path: Path) -> None:
    """It is whole, and what is given is what is written."""
    (finished,) = run(tmp_path, str.upper, order())
    assert read_events(tmp_path / "0.jsonl") == finished.events
    assert finished.ending.status == "passed"


def test_what_an_agent_changes_later_changes_no_ledger(tmp_path: Path) -> None:
    """An event is written as it was, although the agent goes on using the same list."""
    said: list[str] = []

    def agent(text: str) -> Trace:
        said.append(text)
        return Trace.from_calls([ToolCall("tell", {"said": said})], reply=text)

    (finished,) = run(tmp_path, agent, order(turns=("a", "b")))
    calls = trace_of(finished.events).tool_calls
    assert [call.args for call in calls] == [{"said": ["a"]}, {"said": ["a", "b"]}]


@pytest.mark.parametrize(
    ("agent", "status", "code"),
    [
        (lambda _: 1 / 0, "failed", "agent_raised"),
        (lambda _: None, "failed", "no_reply"),
        (lambda _: exit(3), "failed", "agent_exited"),
        (lambda: 3, "incomplete", "agent_unavailable"),
    ],
    ids=["raises", "none", "exits", "no-agent"],
)
def test_a_fault_here_ends_its_trial_only(
    tmp_path: Path, agent: Any, status: str, code: str
) -> None:
    """One bad trial never ends the run, in this process neither."""
    first, second = run(tmp_path, agent, order(0), order(1))
    for finished in (first, second):
        assert (finished.ending.status, finished.ending.reason_code) == (status, code)


def test_ctrl_c_here_ends_the_run(tmp_path: Path) -> None:
    """In this process a KeyboardInterrupt comes from the keyboard."""

    def agent(text: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, agent, order())
    assert list(tmp_path.iterdir()) == []


def test_environment_and_randomness_are_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial sees what its scenario adds, and the caller's session is as it was."""
    monkeypatch.setenv("CHANGED", "before")
    random.seed(1)
    expected = random.Random(1).random()

    def agent(text: str) -> str:
        return os.environ["CHANGED"] + os.environ["ADDED"]

    (finished,) = run(tmp_path, agent, order(env={"CHANGED": "x", "ADDED": "y"}))
    assert trace_of(finished.events).reply == "xy"
    assert os.environ["CHANGED"] == "before"
    assert "ADDED" not in os.environ
    assert random.random() == expected


def test_trials_run_here_inside_a_running_event_loop(tmp_path: Path) -> None:
    """An async agent in a notebook needs neither await nor a patched loop."""

    async def agent(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    async def cell() -> str:
        (finished,) = run(tmp_path, agent, order())
        return trace_of(finished.events).reply

    assert asyncio.run(cell()) == "HI"


def test_a_disk_that_takes_no_ledger_is_an_error(tmp_path: Path) -> None:
    """The error says which file, and that finished trials are safe."""
    with pytest.raises(LedgerError, match=r"cannot write the ledger .*finished trials are safe"):
        run(tmp_path / "gone", str.upper, order())


def test_seeds_differ_by_run_scenario_and_trial() -> None:
    """No two trials share a seed, every machine gives the same ones, and each fits a frame."""
    names = ("a", "\ud800")
    seeds = [trial_seed(seed, name, n) for seed in (0, 7) for name in names for n in (0, 1)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert trial_seed(7, "weather-only", 0) == 4896719158513303757


def test_an_order_survives_its_trip() -> None:
    """Whatever the user says arrives as it was."""
    sent = TrialOrder("\ud800", 3, ("\x00", "\ud800"), seed=2**62, env={"A": "b"}, deadline_s=0.5)
    assert TrialOrder.from_bytes(sent.to_bytes()) == sent


def test_a_server_for_trials_imports_little() -> None:
    """Each fork pays for what the server holds: no suite, no graders, no frames."""
    heavy = {"evalkit.suite", "evalkit.graders", "evalkit.gateway", "pydantic", "pandas", "numpy"}
    code = f"import sys, evalkit.trial.worker; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_randomness_is_given_back_when_the_trials_are_left_early(tmp_path: Path) -> None:
    """Whoever stops listening has the random numbers that they had before."""
    random.seed(1)
    trials = run_here(
        [order(0), order(1)], str.upper, ledger_path=lambda one: tmp_path / f"{one.trial}.jsonl"
    )
    next(trials)
    assert isinstance(trials, Generator)
    trials.close()
    assert random.random() == random.Random(1).random()
