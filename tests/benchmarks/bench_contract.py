"""A trial in the contract lane, beside Inspect AI's in-process mock on the same turns.

Usage: ``python tests/benchmarks/bench_contract.py [--full]``. Here an agent on the real
anthropic SDK makes three model calls and runs two tools, in a fresh process in a room of
its own (namespaces, folders, clock, ids), against the scripted model over loopback; its
ledger is written, three graders look at it. Two trials are in flight. There the same
turns go through the peer's mock, in process and without isolation. The sides work in
turn (A B A B ...), each measurement in a fresh process, after a warm-up that is not
counted.

CPU is user + system of the runner, of the server that trials are forked from, and of
every trial. ``a trial more`` leaves out what a run costs however long it is: the start
of that server, which imports the SDK (the peer's import is not counted either).
``start of Python`` is the yardstick for machines without the peer: an interpreter that
imports asyncio does about the same mixture of faults, files and bytecode as a trial.

``--full``: 1,000 trials x 7 pairs (10 minutes), else 100 trials x 3 pairs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import peer
from measuring import Row, ask, command_cpu_s, in_turn, is_full, show

CPU_AIM, CPU_LIMIT, WALL_LIMIT = 0.85, 1.0, 0.6
"""Of the peer's figures: what is aimed at, and what is never exceeded."""
START_LIMIT: Final = 0.6
"""Of the CPU that starts an interpreter and imports asyncio."""
_START: Final = (sys.executable, "-I", "-c", "import asyncio, json, logging")
_N_STARTS: Final = 5

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
        work = partial(_trials, size.n_trials, scratch)
        sides: dict[str, Callable[[], dict[str, float]]] = {
            "contract": partial(work, sys.executable, "contract_side.py"),
            "start": _start_of_python,
        }
        if peer_python is not None:
            sides["peer"] = partial(work, peer_python, "inspect_side.py")
        return in_turn(sides, rounds=size.n_pairs, best=best)


def _trials(n: int, scratch: str, python: str | Path, script: str) -> dict[str, float]:
    """Let one side run its trials in a fresh folder; every one of them must pass."""
    answer = ask(python, script, work="trials", n=n, folder=tempfile.mkdtemp(dir=scratch))
    if answer["n_passed"] != n:
        raise RuntimeError(f"{script}: only {answer['n_passed']:g} of {n} trials passed")
    cpu_ms, wall_ms = answer["cpu_s"] / n * 1e3, answer["wall_s"] / n * 1e3
    return (
        {"more_cpu_ms": cpu_ms, "more_wall_ms": wall_ms}
        | answer
        | {
            "cpu_ms": cpu_ms,
            "wall_ms": wall_ms,
        }
    )


def _start_of_python() -> dict[str, float]:
    """Measure the yardstick."""
    return {"cpu_ms": statistics.median(command_cpu_s(_START) for _ in range(_N_STARTS)) * 1e3}


def rows(answers: Answers) -> list[Row]:
    """Lay the figures side by side; the limits are shares of the peer's."""
    ours, theirs = (answers.get(name, {}) for name in ("contract", "peer"))
    cpu, wall = theirs.get("cpu_ms"), theirs.get("wall_ms")
    return [
        Row("a trial more, CPU", ours["more_cpu_ms"], cpu, cpu and cpu * CPU_LIMIT),
        Row("a trial more, wall", ours["more_wall_ms"], wall, wall and wall * WALL_LIMIT),
        Row("a trial of this run, CPU", ours["cpu_ms"], cpu),
        Row("a trial of this run, wall", ours["wall_ms"], wall),
    ]


def notes(answers: Answers) -> list[str]:
    """Say what one trial consists of, and how far from the limits it is."""
    ours = answers["contract"]
    said = [
        f"a trial here: {ours['n_model_calls']:g} model calls, {ours['n_tool_calls']:g} tool "
        f"calls, {ours['n_events']:g} events in its ledger, {ours['n_grades']:g} grades",
        f"start of a run: {ours['start_cpu_s']:.2f} s CPU, {ours['start_wall_s']:.2f} s wall",
        f"CPU {ours['more_cpu_ms'] / answers['start']['cpu_ms']:.2f} x the start of Python "
        f"(limit {START_LIMIT:g})",
    ]
    if theirs := answers.get("peer"):
        said += [
            f"a sample there: {theirs['n_events']:g} events, 1 score",
            f"CPU {ours['more_cpu_ms'] / theirs['cpu_ms']:.2f} x the peer's "
            f"(aim {CPU_AIM:g}, limit {CPU_LIMIT:g}), "
            f"wall {ours['more_wall_ms'] / theirs['wall_ms']:.2f} x (limit {WALL_LIMIT:g})",
        ]
    return said


if __name__ == "__main__":
    size = FULL if is_full() else CI
    answers = measure(size, peer.python_or_say_why())
    title = f"One trial in the contract lane, {size.n_trials:,} a run, median of {size.n_pairs}"
    show(title, rows(answers), unit="ms", notes=notes(answers))
