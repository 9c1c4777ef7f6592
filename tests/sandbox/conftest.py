"""Servers for trials, and a way to see every process that they have started."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalkit.sandbox.child import Child, Ended, Received
from evalkit.sandbox.pool import ForkServer

HERE = str(Path(__file__).parent)


class Mark:
    """A line in the environment of all processes that one test starts."""

    def __init__(self) -> None:
        self.value = uuid.uuid4().hex
        self.env = dict(os.environ) | {"EVALKIT_TEST_MARK": self.value}

    def pids(self) -> set[int]:
        """Return the processes that bear the mark and are not zombies."""
        return {int(p.name) for p in Path("/proc").glob("[0-9]*") if self._bears(p)}

    def _bears(self, process: Path) -> bool:
        try:
            return self.value.encode() in (process / "environ").read_bytes()
        except OSError:
            return False

    def wait_until_gone(self, timeout_s: float = 5.0) -> set[int]:
        """Wait for all of them to end; return who is left."""
        deadline = time.monotonic() + timeout_s
        while (left := self.pids()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return left


@pytest.fixture
def mark() -> Mark:
    """Mark the processes of one test."""
    return Mark()


@pytest.fixture
def make_server(mark: Mark) -> Callable[..., ForkServer]:
    """Make servers whose processes bear the mark and can import the tests' entries."""
    return partial(ForkServer, path=[*sys.path, HERE], env=mark.env)


@pytest.fixture(params=["fork", "spawn"])
def mode(request: pytest.FixtureRequest) -> Any:
    """Run the test with both ways to make a process."""
    return request.param


def finish(server: ForkServer, child: Child, timeout_s: float = 30.0) -> tuple[bytes, Ended]:
    """Wait for one child's end; return what it sent and how it ended."""
    sent: list[bytes] = []
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for event in server.wait(deadline - time.monotonic()):
            if isinstance(event, Received) and event.child is child:
                sent.append(event.data)
            if isinstance(event, Ended) and event.child is child:
                return b"".join(sent), event
    raise AssertionError(f"{child} did not end within {timeout_s} s; it sent {sent[:9]!r}")


def hear(server: ForkServer, child: Child, timeout_s: float = 30.0) -> bytes:
    """Wait for the next bytes of one child."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for event in server.wait(deadline - time.monotonic()):
            if isinstance(event, Received) and event.child is child:
                return event.data
            assert not isinstance(event, Ended), event
    raise AssertionError(f"{child} sent nothing within {timeout_s} s")


@pytest.fixture(name="finish")
def finish_fixture() -> Callable[..., tuple[bytes, Ended]]:
    """Give :func:`finish` to tests, which cannot import each other."""
    return finish


@pytest.fixture(name="hear")
def hear_fixture() -> Callable[..., bytes]:
    """Give :func:`hear` to tests, which cannot import each other."""
    return hear
