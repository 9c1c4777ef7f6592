"""Harness CPU of a trial, beside Inspect AI on the same turns.

Usage: ``python tests/benchmarks/bench_trials.py [--full]``. The dialogue has
three model calls and two tool calls, and no model and no agent that would cost
anything: what is left is the harness. Both sides record every message, grade
the result and write their log: one call of ``run_suite``, one of ``inspect_ai.eval``;
suite and dataset are made before. Each measurement is a fresh process that counts
its own CPU and its children's after a warm-up; the sides work in turn
(A B A B ...). Waiting for the disk (one fdatasync a trial) shows in wall time.

``--full``: 1,000 trials x 7 pairs (6 to 9 minutes), else 100 trials x 3 pairs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import peer
from measuring import Row, ask, in_turn, is_full, show

LIMIT_MS: Final = 1.0
Answers = Mapping[str, Mapping[str, float]]


class Size(NamedTuple):
    """How much is measured."""

    n_trials: int
    n_pairs: int


FULL: Final = Size(1000, 7)
CI: Final = Size(100, 3)


def measure(
    size: Size, peer_python: Path | None, *, best: bool = False
) -> dict[str, dict[str, float]]:
    """Let both sides work in turn, and return each one's medians, or its best figures."""
    with peer.scratch() as scratch:
        ours = partial(_trials, sys.executable, "evalkit_side.py", size.n_trials, scratch)
        sides: dict[str, Callable[[], dict[str, float]]] = {
            "in_process": ours,
            "fresh_process": partial(ours, isolation="process"),
        }
        if peer_python is not None:
            sides["peer"] = partial(_trials, peer_python, "inspect_side.py", size.n_trials, scratch)
        return in_turn(sides, rounds=size.n_pairs, best=best)


def _trials(python: str | Path, script: str, n: int, scratch: str, **more: str) -> dict[str, float]:
    """Let one side run its trials in a fresh folder; every one of them must pass."""
    folder = tempfile.mkdtemp(dir=scratch)
    answer = ask(python, script, work="trials", n=n, folder=folder, **more)
    if answer["n_passed"] != n:
        raise RuntimeError(f"{script}: only {answer['n_passed']:g} of {n} trials passed")
    return {**answer, "cpu_ms": answer["cpu_s"] / n * 1e3, "wall_ms": answer["wall_s"] / n * 1e3}


def rows(answers: Answers) -> list[Row]:
    """Lay the figures side by side."""
    here, fresh, theirs = (answers.get(k, {}) for k in ("in_process", "fresh_process", "peer"))
    return [
        Row("in process, CPU", here.get("cpu_ms"), theirs.get("cpu_ms"), LIMIT_MS),
        Row("in process, wall", here.get("wall_ms"), theirs.get("wall_ms")),
        Row("fresh process per trial, CPU", fresh.get("cpu_ms"), theirs.get("cpu_ms")),
        Row("fresh process per trial, wall", fresh.get("wall_ms"), theirs.get("wall_ms")),
    ]


def notes(answers: Answers) -> list[str]:
    """Say what one trial consists of, as it was recorded."""
    ours = answers["in_process"]
    said = [
        f"a trial here: {ours['n_model_calls']:g} model calls, {ours['n_tool_calls']:g} tool "
        f"calls, {ours['n_events']:g} events in its ledger, {ours['n_grades']:g} grades",
        "fresh process: CPU counts the fork server and its start; Inspect has no such mode, "
        "its in-process figure stands beside it",
    ]
    if "peer" in answers:
        said.append(f"a sample there: {answers['peer']['n_events']:g} events, 1 score")
    return said


if __name__ == "__main__":
    size = FULL if is_full() else CI
    answers = measure(size, peer.python_or_say_why())
    title = f"One trial, {size.n_trials:,} trials a run, median of {size.n_pairs} pairs"
    show(title, rows(answers), unit="ms", notes=notes(answers))
