"""Every agent that a test starts must be gone afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalkit.sandbox.processes import children

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def folder() -> str:
    """Folder of the agents that the tests start."""
    return str(FIXTURES)


def held() -> tuple[set[int], set[str], int]:
    """Say which children, log threads and how many descriptors this process has."""
    threads = {thread.name for thread in threading.enumerate()}
    return children(), threads & {"evalkit-agent-log"}, len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Check that no process, thread or descriptor outlives the test."""
    before = held()
    yield
    assert held() == before


def is_running(pid: int) -> bool:
    """Say whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/exe").readlink() != Path()
    except OSError:
        return False


@pytest.fixture
def runs() -> Callable[[int], bool]:
    """Give a function that says whether a process runs, or goes on doing so."""

    def check(pid: int) -> bool:
        due = time.monotonic() + 1.0  # a killed process is gone a moment later
        while is_running(pid) and time.monotonic() < due:
            time.sleep(0.01)
        return is_running(pid)

    return check
