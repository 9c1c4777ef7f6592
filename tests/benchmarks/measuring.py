"""How the benchmarks measure: CPU seconds, both sides in turn, medians, one table.

Standard library only, because the peer's side imports it in its own environment.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).parent
CHECKOUT: Final = HERE.parents[1]


def cpu_s() -> float:
    """Return CPU seconds (user + sys) of this process and all its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def spent_cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    before = cpu_s()
    work()
    return cpu_s() - before


def median_cpu_s(work: Callable[[], object], *, repeats: int) -> float:
    """Return the median CPU seconds of a call, after one that is not counted."""
    work()
    return statistics.median(spent_cpu_s(work) for _ in range(repeats))


def command_cpu_s(command: Sequence[str]) -> float:
    """Return CPU seconds of a whole command, its interpreter's start included."""
    return spent_cpu_s(
        lambda: subprocess.run(
            command, check=True, cwd=CHECKOUT, stdout=subprocess.DEVNULL, env=environment()
        )
    )


_REFERENCE_S: Final = 0.0069
"""CPU seconds of :func:`_count` where the limits were set: CPython 3.11, a quiet cloud machine."""


def slowness() -> float:
    """Say how much slower than the machine of the limits this one is now; at least 1.

    The best of a few, so that it tells a slow machine, and not a moment's noise.
    """
    return max(1.0, min(spent_cpu_s(_count) for _ in range(9)) / _REFERENCE_S)


def _count() -> int:
    """Do what interpreters do: some arithmetic, some dictionaries, some text."""
    seen: dict[str, int] = {}
    for number in range(50_000):
        key = str(number % 977)
        seen[key] = seen.get(key, 0) + number
    return len(seen)


def ask(python: str | Path, script: str, **order: Any) -> dict[str, float]:
    """Let one side do a piece of work in a fresh process, and return what it measured.

    Raises
    ------
    RuntimeError
        If it failed; with the end of what it wrote.
    """
    command = [str(python), str(HERE / script), json.dumps(order)]
    done = subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, env=environment(), check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script} {order} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def environment() -> dict[str, str]:
    """Return the environment of both sides: the checkout's evalkit, nobody's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_")}
    paths = [str(CHECKOUT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}


def in_turn(
    sides: Mapping[str, Callable[[], dict[str, float]]], *, rounds: int, best: bool = False
) -> dict[str, dict[str, float]]:
    """Let the sides work in turn (A B A B ...), and return each one's medians.

    With ``best``, its smallest figures instead: for a limit, because what else runs
    on a machine only ever adds.
    """
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            rows[name].append(work())
    summary: Callable[[Iterable[float]], float] = min if best else statistics.median
    return {
        name: {key: summary(answer[key] for answer in answers) for key in answers[0]}
        for name, answers in rows.items()
    }


class Row(NamedTuple):
    """One line of a table; a figure that was not measured is ``None``."""

    what: str
    ours: float | None
    peer: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """The peer's figure over ours."""
        return self.peer / self.ours if self.ours and self.peer else None


def show(title: str, rows: Sequence[Row], *, unit: str, notes: Sequence[str] = ()) -> None:
    """Print what was measured, and on what machine."""
    print(f"\n{title}\n{machine()}")
    print(f"{'':44} {'evalkit':>10} {'Inspect AI':>11} {'ratio':>8} {'limit':>8}   ({unit})")
    for row in rows:
        print(
            f"{row.what:44} {_shown(row.ours):>10} {_shown(row.peer):>11} "
            f"{_shown(row.ratio, '.1f'):>8} {_shown(row.limit, 'g'):>8}"
        )
    print("".join(f"  {note}\n" for note in notes), end="")


def _shown(figure: float | None, form: str = ".3f") -> str:
    return "-" if figure is None else format(figure, form)


def machine() -> str:
    """Say what the figures were measured on."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    load = os.getloadavg()[0]
    system = f"{platform.system()} {platform.machine()}"
    return f"{python}, {os.cpu_count()} cores, {system}, load {load:.1f}"


def is_full() -> bool:
    """Say whether the full size was asked for on the command line."""
    return "--full" in sys.argv[1:]
