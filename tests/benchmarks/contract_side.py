"""evalkit's side of the comparison in the contract lane; runs in this checkout's environment.

Usage: ``python contract_side.py '{"work": "trials", "n": 100, "folder": "runs"}'``.
Prints one JSON line. The agent (``contract_agent.py``) is on the real anthropic SDK; each
trial is a fresh process in a room of its own, against the scripted model.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from measuring import cpu_s
from turns import ANSWER, CALLS, NEEDLE, question

if TYPE_CHECKING:
    from evalkit.results import Run

N_WARM: Final = 2
AGENT: Final = "contract_agent:agent"


def trials(n: int, folder: str, n_parallel: int = 2) -> dict[str, float]:
    """Time a run of ``n`` trials, and one of two, whose cost is the start of the server."""
    small, large = (_suite(count, Path(folder)) for count in (N_WARM, n))
    _run(small, folder, n_parallel)  # a warm-up that is not counted
    start_cpu, start_wall, _ = _timed(small, folder, n_parallel)
    spent, wall, run = _timed(large, folder, n_parallel)
    first = run.records[0]
    return {
        "start_cpu_s": start_cpu,
        "start_wall_s": start_wall,
        "cpu_s": spent,
        "wall_s": wall,
        "more_cpu_ms": (spent - start_cpu) / (n - N_WARM) * 1e3,
        "more_wall_ms": (wall - start_wall) / (n - N_WARM) * 1e3,
        "n_passed": sum(record.status == "passed" for record in run.records),
        "n_events": len(run.ledger(first.scenario)),
        "n_grades": len(first.grades),
        "n_model_calls": first.n_model_calls or 0,
        "n_tool_calls": first.n_tool_calls or 0,
    }


def _timed(suite: Any, folder: str, n_parallel: int) -> tuple[float, float, Run]:
    """Run a suite; give CPU and wall seconds, all processes counted."""
    before, started = cpu_s(), time.perf_counter()
    run = _run(suite, folder, n_parallel)
    return cpu_s() - before, time.perf_counter() - started, run


def _run(suite: Any, folder: str, n_parallel: int) -> Run:
    from evalkit.run import run_suite

    return run_suite(suite, agent=AGENT, out=folder, n_parallel=n_parallel, progress=False)


def _suite(n: int, folder: Path) -> Any:
    """Write and load a suite of ``n`` scenarios that script and grade the dialogue."""
    from evalkit.run import load_suite

    script = [*({"tool": call.name, "args": call.args} for call in CALLS), {"text": ANSWER}]
    told = {
        "suite": f"bench-{n}",
        "defaults": {
            "model": script,
            "expect": {
                "tools": [{call.name: call.args} for call in CALLS],
                "reply": {"contains": NEEDLE},
            },
            "forbid": {"tools": ["cancel_booking"]},
        },
        "scenarios": [{"id": f"s{number}", "input": question(number)} for number in range(n)],
    }
    path = folder / f"bench_{n}.yaml"
    path.write_text(json.dumps(told))
    return load_suite(path)


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    assert order.pop("work") == "trials"
    print(json.dumps(trials(**order)))
