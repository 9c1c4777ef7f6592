"""Cost of a fresh process per trial: an entry that does nothing, wall and CPU.

Usage: ``python tests/benchmarks/bench_forkserver.py [N_TRIALS]``. CPU counts the
caller, the server and the trials. ``warm`` has numpy and pandas imported, as an
agent's own imports would be.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator

from evalkit.sandbox.child import Ended
from evalkit.sandbox.pool import ForkServer, Mode

N_REPEATS = 7


def measure(server: ForkServer, *, n_trials: int, n_parallel: int) -> float:
    """Return wall milliseconds a trial."""
    started = time.perf_counter()
    n_started = n_ended = 0
    while n_ended < n_trials:
        while n_started < n_trials and n_started - n_ended < n_parallel:
            server.start(b"")
            n_started += 1
        n_ended += sum(isinstance(event, Ended) for event in server.wait())
    return (time.perf_counter() - started) / n_trials * 1e3


def cpu_s() -> float:
    """Return CPU seconds of this process and all its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def rows(n_trials: int) -> Iterator[tuple[str, Mode, int, float, float]]:
    """Yield what is warm, mode, parallel trials, wall and CPU milliseconds a trial."""
    for warm, prepare in (("bare", ""), ("warm", "pandas:isna")):
        numbers: dict[Mode, int] = {"fork": n_trials, "spawn": max(2, n_trials // 20)}
        for mode, number in numbers.items():
            for n_parallel in (1, 2):
                yield warm, mode, n_parallel, *_measure_one(prepare, mode, number, n_parallel)


def _measure_one(prepare: str, mode: Mode, n_trials: int, n_parallel: int) -> tuple[float, float]:
    """Return median wall, and CPU without the start of the server."""
    empty = cpu_s()
    with ForkServer("builtins:print", prepare=prepare, mode=mode):
        pass
    before = cpu_s()
    with ForkServer("builtins:print", prepare=prepare, mode=mode) as server:
        walls = [
            measure(server, n_trials=n_trials, n_parallel=n_parallel) for _ in range(N_REPEATS)
        ]
    spent = cpu_s() - before - (before - empty)
    return statistics.median(walls), spent / (n_trials * N_REPEATS) * 1e3


if __name__ == "__main__":
    n_trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{os.cpu_count()} cores, {n_trials} trials x {N_REPEATS} (spawn: a twentieth)")
    print("imports  mode   parallel   wall ms   CPU ms")
    for warm, mode, n_parallel, wall, cpu in rows(n_trials):
        print(f"{warm:7}  {mode:5}  {n_parallel:8}  {wall:8.2f}  {cpu:7.2f}")
