"""CPU of starting evalkit, beside Inspect AI: ``import`` and ``--help``.

Usage: ``python tests/benchmarks/bench_import.py``. Each figure is the median of
seven whole processes in turn, the interpreter's own start included; the first
start of each, which compiles bytecode, is not counted. evalkit imports its parts
when they are first used, so what all of them cost stands there too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import peer
from measuring import Row, command_cpu_s, in_turn, show

ROUNDS: Final = 7
IMPORT_LIMIT_S: Final = 0.2
HELP_LIMIT_S: Final = 0.3
Commands = Mapping[str, Sequence[str]]


def commands(peer_python: Path | None) -> dict[str, list[str]]:
    """Name what is started."""
    named = {
        "python": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import evalkit"],
        "all_names": [sys.executable, "-c", "from evalkit import *"],
        "help": [*console_script(), "--help"],
    }
    if peer_python is None:
        return named
    start = [str(peer_python), "-c"]
    run = "import sys; from inspect_ai._cli.main import main; sys.argv[1:] = ['--help']; main()"
    return named | {
        "peer_python": [*start, "pass"],
        "peer_import": [*start, "import inspect_ai"],
        "peer_help": [*start, run],
    }


def console_script() -> list[str]:
    """Give the command ``evalkit``, installed or straight from the checkout."""
    installed = Path(sys.executable).with_name("evalkit")
    if installed.exists():
        return [str(installed)]
    return [sys.executable, "-c", "from evalkit.cli import main; main()"]


def measure(started: Commands, *, rounds: int = ROUNDS, best: bool = False) -> dict[str, float]:
    """Return the median CPU seconds of each command, or its best."""
    for command in started.values():
        command_cpu_s(command)
    sides = {name: partial(_started, command) for name, command in started.items()}
    answers = in_turn(sides, rounds=rounds, best=best)
    return {name: answer["cpu_s"] for name, answer in answers.items()}


def _started(command: Sequence[str]) -> dict[str, float]:
    return {"cpu_s": command_cpu_s(command)}


def rows(figures: Mapping[str, float]) -> list[Row]:
    """Lay the figures side by side."""
    return [
        Row("python -c pass", figures["python"], figures.get("peer_python")),
        Row("import", figures["import"], figures.get("peer_import"), IMPORT_LIMIT_S),
        Row("import of every public name", figures["all_names"], figures.get("peer_import")),
        Row("--help", figures["help"], figures.get("peer_help"), HELP_LIMIT_S),
    ]


if __name__ == "__main__":
    figures = measure(commands(peer.python_or_say_why()))
    show(f"Start, median of {ROUNDS}", rows(figures), unit="CPU s")
