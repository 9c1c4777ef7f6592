"""Inspect AI's side of the comparisons; runs in the peer's environment.

Usage: ``python inspect_side.py '{"work": "trials", "n": 100, "folder": "logs"}'``.
Prints one JSON line. Inspect's settings are its defaults, only its display is off;
its scorer looks for one text, where evalkit applies three graders.
"""

# The peer is not installed where mypy runs.
# mypy: disable-error-code="import-not-found, untyped-decorator"

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import cpu_s, median_cpu_s
from turns import ANSWER, CALLS, N_INPUT_TOKENS, N_OUTPUT_TOKENS, NEEDLE, question, result_text


def trials(n: int, folder: str) -> dict[str, float]:
    """Time ``n`` samples, after a warm-up that is not counted."""
    _evaluate(_task(2), f"{folder}/warm")
    task = _task(n)
    before, started = cpu_s(), time.perf_counter()
    log = _evaluate(task, folder)
    spent, wall = cpu_s() - before, time.perf_counter() - started
    n_passed = log.results.scores[0].metrics["accuracy"].value * n
    return {"cpu_s": spent, "wall_s": wall, "n_passed": round(n_passed), "n_events": _n_events(log)}


def frames(folder: str, repeats: int) -> dict[str, float]:
    """Time the two frames of the log in a folder."""
    from inspect_ai.analysis import events_df, samples_df

    log = str(next(Path(folder).glob("*.eval")))
    works: dict[str, Callable[[], Any]] = {
        "trials": lambda: samples_df(log, quiet=True),
        "events": lambda: events_df(log, quiet=True),
    }
    return {
        **{f"{name}_cpu_s": median_cpu_s(work, repeats=repeats) for name, work in works.items()},
        **{f"n_{name}": len(work()) for name, work in works.items()},
    }


def _task(n: int) -> Any:
    """Make a task of ``n`` samples."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, use_tools

    samples = [Sample(id=f"s{k}", input=question(k), target=NEEDLE) for k in range(n)]
    return Task(
        dataset=MemoryDataset(samples),
        solver=[use_tools(_tools()), generate()],
        scorer=includes(),
    )


def _evaluate(task: Any, folder: str) -> Any:
    """Run a task against the in-process mock, and write its log."""
    import inspect_ai
    from inspect_ai.model import get_model

    model = get_model("mockllm/model", custom_outputs=_answer, memoize=False)
    log = inspect_ai.eval(task, model=model, log_dir=folder, display="none")[0]
    if log.status != "success":
        raise SystemExit(f"the peer's run ended with {log.status}: {log.error}")
    return log


def _answer(messages: list[Any], *_: Any) -> Any:
    """Give the output that follows the messages so far."""
    from inspect_ai.model import ModelOutput, ModelUsage

    n_replies = sum(message.role == "assistant" for message in messages)
    if n_replies < len(CALLS):
        call = CALLS[n_replies]
        output = ModelOutput.for_tool_call("mockllm/model", call.name, call.args)
    else:
        output = ModelOutput.from_content("mockllm/model", ANSWER)
    # Without usage Inspect counts tokens itself, and downloads a tokenizer for it.
    output.usage = ModelUsage(
        input_tokens=N_INPUT_TOKENS,
        output_tokens=N_OUTPUT_TOKENS,
        total_tokens=N_INPUT_TOKENS + N_OUTPUT_TOKENS,
    )
    return output


def _tools() -> list[Any]:
    from inspect_ai.tool import tool

    @tool
    def search_flights() -> Any:
        async def execute(origin: str, destination: str, date: str) -> str:
            """Search flights.

            Args:
                origin: Airport code.
                destination: Airport code.
                date: ISO date.
            """
            return result_text(CALLS[0])

        return execute

    @tool
    def book_flight() -> Any:
        async def execute(flight_id: str, passenger: str, seat: str) -> str:
            """Book a flight.

            Args:
                flight_id: Which flight.
                passenger: Full name.
                seat: Seat number.
            """
            return result_text(CALLS[1])

        return execute

    return [search_flights(), book_flight()]


def _n_events(log: Any) -> int:
    from inspect_ai.log import read_eval_log_sample

    return len(read_eval_log_sample(log.location, id="s0").events)


WORKS: dict[str, Callable[..., dict[str, float]]] = {"trials": trials, "frames": frames}

if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    print(json.dumps(WORKS[order.pop("work")](**order)))
