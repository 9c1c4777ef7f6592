"""evalkit's side of the comparisons; runs in this checkout's environment.

Usage: ``python evalkit_side.py '{"work": "trials", "n": 100, "folder": "runs"}'``.
Prints one JSON line.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from measuring import cpu_s, median_cpu_s
from turns import (
    ANSWER,
    CALLS,
    MODEL,
    N_INPUT_TOKENS,
    N_OUTPUT_TOKENS,
    NEEDLE,
    question,
    result_text,
)

if TYPE_CHECKING:
    from evalkit.results import Run
    from evalkit.suite import Suite
    from evalkit.trace import Trace

N_EVENTS_OF_PEER: Final = 25
"""Events that Inspect logs for one sample of the dialogue."""


def trials(n: int, folder: str, isolation: Literal["none", "process"] = "none") -> dict[str, float]:
    """Time a run of ``n`` trials, after a warm-up that is not counted."""
    _run(_suite(2), f"{folder}/warm", isolation)
    suite = _suite(n)
    before, started = cpu_s(), time.perf_counter()
    run = _run(suite, folder, isolation)
    spent, wall = cpu_s() - before, time.perf_counter() - started
    first = run.records[0]
    return {
        "cpu_s": spent,
        "wall_s": wall,
        "n_passed": sum(record.status == "passed" for record in run.records),
        "n_events": len(run.ledger(first.scenario)),
        "n_grades": len(first.grades),
        "n_model_calls": first.n_model_calls or 0,
        "n_tool_calls": first.n_tool_calls or 0,
    }


def frames(folder: str, repeats: int) -> dict[str, float]:
    """Time the two frames of the run in a folder, each read anew from the disk."""
    from evalkit.results import load_run

    works: dict[str, Callable[[], Any]] = {
        "trials": lambda: load_run(folder).trials,
        "events": lambda: load_run(folder).events,
    }
    return {
        **{f"{name}_cpu_s": median_cpu_s(work, repeats=repeats) for name, work in works.items()},
        **{f"n_{name}": len(work()) for name, work in works.items()},
    }


def write_run(n: int, folder: str) -> dict[str, float]:
    """Write a finished run of ``n`` trials with as many events each as the peer's log has."""
    from evalkit.grade import Ending, Grade
    from evalkit.ledger import digest, event_line
    from evalkit.recording import ledger_of
    from evalkit.results import Manifest, PlannedScenario, RunWriter, trial_record

    shutil.rmtree(folder, ignore_errors=True)
    plan = tuple(PlannedScenario(f"s{number}", 1) for number in range(n))
    writer = RunWriter.create(Path(folder), Manifest("bench", "bench", "live", plan))
    grades = tuple(Grade(name, 1.0, passed=True) for name in ("truth", "path", "answer"))
    for number, scenario in enumerate(plan):
        trace = _with_logs(dialogue(question(number)), number)
        ending = Ending(duration_s=0.1)
        events = ledger_of(trace, scenario=scenario.id, trial=0, lane="live", ending=ending)
        record = trial_record(
            scenario.id, 0, trace, ending=ending, grades=grades, digest=digest(events)
        )
        writer.add(record, b"".join(map(event_line, events)))
    writer.finish()
    return {"n_trials": n, "n_events": n * len(events)}


def _with_logs(trace: Trace, number: int) -> Trace:
    """Add log lines until a trial has as many events as the peer's."""
    from dataclasses import replace

    n_logs = N_EVENTS_OF_PEER - (3 + 2 * 3 + 2 * 2 + 2)
    return replace(trace, logs=tuple(f"order {number}: step {step}" for step in range(n_logs)))


def dialogue(text: str) -> Trace:
    """Hold the dialogue as an agent that records itself: its calls as one trace."""
    from evalkit.trace import ModelCall, ToolCall, Trace, Turn, Usage

    messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
    usage = Usage(input_tokens=N_INPUT_TOKENS, output_tokens=N_OUTPUT_TOKENS)
    model_calls = []
    for step in range(len(CALLS) + 1):
        reply = _reply(step)
        model_calls.append(ModelCall(MODEL, usage, list(messages), reply, "stop"))
        messages.append(reply)
        if step < len(CALLS):
            result = result_text(CALLS[step])
            messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": result})
    return Trace(
        turns=(Turn(text, (ANSWER,)),),
        tool_calls=tuple(ToolCall(call.name, call.args, result=call.result) for call in CALLS),
        model_calls=tuple(model_calls),
        models_observed=True,
    )


def _reply(step: int) -> dict[str, Any]:
    """Give the mock model's message: a tool call, or the answer."""
    if step == len(CALLS):
        return {"role": "assistant", "content": ANSWER}
    call = CALLS[step]
    function = {"name": call.name, "arguments": json.dumps(call.args)}
    tool_calls = [{"id": f"c{step}", "type": "function", "function": function}]
    return {"role": "assistant", "content": "", "tool_calls": tool_calls}


def _run(suite: Suite, folder: str, isolation: Literal["none", "process"]) -> Run:
    from evalkit.run import run_suite

    return run_suite(
        suite, agent=dialogue, lane="live", isolation=isolation, out=folder, progress=False
    )


def _suite(n: int) -> Suite:
    """Make a suite of ``n`` scenarios whose calls, path and answer are graded."""
    from evalkit.run import load_suite

    return load_suite(
        [
            {
                "task_id": f"s{number}",
                "input": question(number),
                "expect_tools": [{"name": call.name, "args": call.args} for call in CALLS],
                "forbid_tools": ["cancel_booking"],
                "success_contains": [NEEDLE],
            }
            for number in range(n)
        ],
        name="bench",
    )


WORKS: Final[dict[str, Callable[..., dict[str, float]]]] = {
    "trials": trials,
    "frames": frames,
    "write_run": write_run,
}

if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    print(json.dumps(WORKS[order.pop("work")](**order)))
