"""Frames of a run read from disk, beside Inspect AI's of a log of the same size.

Usage: ``python tests/benchmarks/bench_frames.py [--full]``. ``load_run(folder).trials``
beside ``samples_df(log)``, ``load_run(folder).events`` beside ``events_df(log)``, CPU
seconds, the sides in turn. Our limits hold for 1,000 trials with 25 events each.

``--full``: 1,000 samples on both sides, 7 pairs; else the sides are compared on 100
samples, 3 pairs, and only ours is read at 1,000. The peer's log of 1,000 samples
takes about 40 s of CPU to make, and is kept beside its environment.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import peer
from measuring import Row, ask, in_turn, is_full, show

TRIALS_LIMIT_S: Final = 0.03
EVENTS_LIMIT_S: Final = 0.3
N_AT_LIMIT: Final = 1000
N_COMPARED_IN_CI: Final = 100
_REPEATS: Final = 3
"""Readings a process; each pair of processes gives one pair of medians."""

Answers = Mapping[str, Mapping[str, float]]


def measure(
    n: int, *, rounds: int, peer_python: Path | None, best: bool = False
) -> dict[str, dict[str, float]]:
    """Let both sides read ``n`` trials in turn, and return each one's medians, or its best."""
    with _run_of(n) as ours:
        read = partial(ask, work="frames", repeats=_REPEATS)
        sides: dict[str, Callable[[], dict[str, float]]] = {
            "evalkit": partial(read, sys.executable, "evalkit_side.py", folder=ours)
        }
        if peer_python is not None:
            log = _peer_log(n, peer_python)
            sides["peer"] = partial(read, peer_python, "inspect_side.py", folder=log)
        answers = in_turn(sides, rounds=rounds, best=best)
    _check_same_size(answers, n)
    return answers


def _check_same_size(answers: Answers, n: int) -> None:
    """Make sure that every side read as many trials and events."""
    sizes = {name: (a["n_trials"], a["n_events"]) for name, a in answers.items()}
    if set(sizes.values()) != {(n, n * 25)}:
        raise RuntimeError(f"the frames are not of {n} trials with 25 events each: {sizes}")


@contextmanager
def _run_of(n: int) -> Iterator[str]:
    with peer.scratch() as scratch:
        folder = f"{scratch}/run"
        ask(sys.executable, "evalkit_side.py", work="write_run", n=n, folder=folder)
        yield folder


def _peer_log(n: int, peer_python: Path) -> str:
    """Return the folder of the peer's log of ``n`` samples, which is made once."""
    folder = peer.folder() / f"log-{peer.VERSION}-{n}"
    if not list(folder.glob("*.eval")):
        with tempfile.TemporaryDirectory(dir=peer.folder()) as fresh:
            ask(peer_python, "inspect_side.py", work="trials", n=n, folder=fresh)
            folder.mkdir(exist_ok=True)
            log = next(Path(fresh).glob("*.eval"))
            log.rename(folder / log.name)
    return str(folder)


def rows(answers: Answers, n: int) -> list[Row]:
    """Lay the figures side by side; limits hold for the full size only."""
    ours, theirs = answers["evalkit"], answers.get("peer", {})
    whole = n == N_AT_LIMIT
    return [
        Row(
            f"{name}, {count:,} rows",
            ours[f"{name}_cpu_s"],
            theirs.get(f"{name}_cpu_s"),
            limit if whole else None,
        )
        for name, count, limit in (
            ("trials", n, TRIALS_LIMIT_S),
            ("events", n * 25, EVENTS_LIMIT_S),
        )
    ]


def main() -> None:
    """Print the table."""
    peer_python, rounds = peer.python_or_say_why(), 7 if is_full() else 3
    table = []
    if not is_full():
        small = measure(N_COMPARED_IN_CI, rounds=rounds, peer_python=peer_python)
        table += rows(small, N_COMPARED_IN_CI)
    beside = peer_python if is_full() else None
    table += rows(measure(N_AT_LIMIT, rounds=rounds, peer_python=beside), N_AT_LIMIT)
    show(f"Frames read from disk, median of {rounds} pairs", table, unit="CPU s")


if __name__ == "__main__":
    main()
