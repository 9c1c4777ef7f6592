"""What each piece of a trial's room costs, and what certificates and warming save.

Usage: ``python tests/benchmarks/bench_sandbox.py [--full] [--room]``. Each row forks the same
warm process (evalkit's own imports) and adds one piece; wall and CPU are a trial's,
the end of the process and its namespaces included. What the kernel does later, in
threads of its own, is not in the CPU column.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from measuring import cpu_s, is_full, machine

from evalkit.sandbox import barrier, folders, identifiers, sqlite
from evalkit.sandbox.certificates import make_authority
from evalkit.sandbox.clock import Clock
from evalkit.sandbox.environment import server_environment
from evalkit.sandbox.folders import DISK_LIMIT, plan_view
from evalkit.sandbox.room import Room, enter, prepare
from evalkit.sandbox.warming import warm_sdks

N_ROUNDS: Final = 7
ROOM: Final = Room(env=server_environment(), certificate=b"x" * 700, seed=(7, "bench", 0, 0))
VIEW: Final = plan_view()
BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"


def nothing() -> None:
    """Do nothing in the fresh process."""


def network() -> None:
    """Make namespaces with the network shut off, and the preflight."""
    barrier.raise_barrier(mounts=False)


def mounts() -> None:
    """Do so with private mounts and folders, homes hidden."""
    barrier.raise_barrier(mounts=True)
    folders.mount_room(VIEW, limit=DISK_LIMIT, resolver=True)


def clock() -> None:
    """Set the clock, too."""
    mounts()
    Clock()


def ids() -> None:
    """Seed ids and SQLite, too."""
    clock()
    sqlite.follow(identifiers.seed_identifiers(ROOM.seed))


def room() -> None:
    """Do everything: also variables, certificate, limits, privileges, audit hook."""
    enter(ROOM)


def second_fork() -> None:
    """Fork again, as a PID namespace for each trial would have to."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


STEPS: Final[tuple[Callable[[], None], ...]] = (
    nothing, network, mounts, clock, ids, room, second_fork,
)  # fmt: skip


def in_fork(work: Callable[[], object]) -> None:
    """Do something in a fresh process."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"{work.__name__} failed")


def measure(work: Callable[[], object], n_trials: int) -> tuple[float, float]:
    """Return wall and CPU milliseconds a trial."""
    wall, cpu = time.perf_counter(), cpu_s()
    for _ in range(n_trials):
        in_fork(work)
    return (time.perf_counter() - wall) / n_trials * 1e3, (cpu_s() - cpu) / n_trials * 1e3


def table(n_trials: int) -> dict[str, tuple[float, float]]:
    """Measure all steps in turn, and return each one's medians."""
    rows: dict[str, list[tuple[float, float]]] = {step.__name__: [] for step in STEPS}
    for _ in range(N_ROUNDS):
        for step in STEPS:
            rows[step.__name__].append(measure(step, n_trials))
    return {
        name: (statistics.median(w for w, _ in row), statistics.median(c for _, c in row))
        for name, row in rows.items()
    }


def client(name: str) -> Callable[[], None]:
    """Return what builds a client of an SDK."""
    sdk = importlib.import_module(name)
    build = sdk.Anthropic if name == "anthropic" else sdk.OpenAI

    def build_client() -> None:
        build(api_key="k").close()

    return build_client


def first_call() -> None:
    """Make the calls of a warm-up, as an agent would in a trial."""
    if problems := warm_sdks():
        raise RuntimeError(problems)


def savings(n_trials: int) -> None:
    """Print what dry calls before the fork, and one certificate, save a trial."""
    sdks = ("anthropic", "openai")
    for name in sdks:
        importlib.import_module(name)
    n_calls = max(2, n_trials // 10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.pem"
        path.write_bytes(make_authority().certificate)
        os.environ["SSL_CERT_FILE"] = str(path)
        show("12 calls of both SDKs, cold", measure(first_call, n_calls))
        started = time.process_time()
        first_call()
        print(f"{'  warming itself, once':40} {'':8} {(time.process_time() - started) * 1e3:8.2f}")
        show("12 calls of both SDKs, warm", measure(first_call, n_calls))
        for name in sdks:
            for label, bundle in (("one certificate", str(path)), ("a bundle of them", BUNDLE)):
                os.environ["SSL_CERT_FILE"] = bundle
                show(f"{name} client, {label}", measure(client(name), n_trials))


def show(name: str, figures: tuple[float, float]) -> None:
    """Print one line."""
    print(f"{name:40} {figures[0]:8.2f} {figures[1]:8.2f}", flush=True)


def main(n_trials: int) -> None:
    """Measure and print."""
    prepare(barrier="none")
    gc.collect()
    gc.freeze()
    print(f"{machine()}, {n_trials} trials x {N_ROUNDS}")
    print(f"{'':40} {'wall ms':>8} {'CPU ms':>8}")
    for name, figures in table(n_trials).items():
        show(name, figures)
    if "--room" not in sys.argv:
        with contextlib.suppress(ImportError):
            savings(n_trials)


if __name__ == "__main__":
    main(100 if is_full() else 20)
