"""What a turn of the career copilot costs in the contract lane.

Usage: ``python tests/benchmarks/bench_career.py [--full]``. The shipped suite is run with one
trial a scenario and with more; the difference is what those trials cost, without the
start of the server that they are forked from. A turn here is one update that reaches the
copilot, over HTTP, with all that it sets off: the scripted model, pages, messages,
SQLite, grading, and restarts of its process.

There is no peer to time it beside: no other tool runs an unmodified webhook agent.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from typing import TYPE_CHECKING, Final

from measuring import CHECKOUT, Row, ask, cpu_s, is_full, show

if TYPE_CHECKING:
    from evalkit.suite import Suite

SUITE: Final = CHECKOUT / "data" / "suites" / "career.yaml"
LIMIT_MS: Final = 60.0
"""CPU of a turn."""
_MORE: Final = 3
"""Trials a scenario in the longer run."""


def measure(rounds: int, *, best: bool = False) -> dict[str, float]:
    """Measure in fresh processes, and return the medians, or the best figures."""
    answers = [ask(sys.executable, "bench_career.py", work="suite") for _ in range(rounds)]
    summary = min if best else statistics.median
    return {key: summary(answer[key] for answer in answers) for key in answers[0]}


def suite() -> dict[str, float]:
    """Time the shipped suite, and one with more trials; every trial must pass."""
    from evalkit.run import load_suite

    shipped = load_suite(SUITE)
    n_turns = _n_updates(shipped) * (_MORE - 1)
    with tempfile.TemporaryDirectory() as folder:
        _spent(shipped, folder, n_trials=1)  # a warm-up that is not counted
        once = _spent(shipped, folder, n_trials=1)
        more = _spent(shipped, folder, n_trials=_MORE)
    return {
        "turn_cpu_ms": (more - once) / n_turns * 1e3,
        "trial_cpu_ms": (more - once) / (len(shipped) * (_MORE - 1)) * 1e3,
        "n_turns": n_turns,
    }


def _n_updates(shipped: Suite) -> int:
    """Count the turns in which something reaches the agent."""
    quiet = ("advance_s", "restart")
    turns = [turn for scenario in shipped for turn in scenario.turns]
    return sum(not any(hasattr(turn, key) for key in quiet) for turn in turns)


def _spent(shipped: Suite, folder: str, *, n_trials: int) -> float:
    """Run the suite; give the CPU seconds of all processes."""
    from evalkit.run import run_suite

    before = cpu_s()
    run = run_suite(shipped, out=folder, n_trials=n_trials, n_parallel=2, progress=False)
    spent = cpu_s() - before
    if run.status != "passed":
        raise RuntimeError(f"the suite ended {run.status}")
    return spent


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("{"):
        import json

        print(json.dumps(suite()))
    else:
        figures = measure(7 if is_full() else 3)
        table = [
            Row("a turn, CPU", figures["turn_cpu_ms"], limit=LIMIT_MS),
            Row("a trial, CPU", figures["trial_cpu_ms"]),
        ]
        notes = [f"{figures['n_turns']:g} turns"]
        show("The career copilot in the contract lane", table, unit="ms", notes=notes)
