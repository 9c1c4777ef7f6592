"""Servers for trials, and a way to see every process that they have started."""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import SandboxError
from evalkit.sandbox.child import Child, Ended, Received
from evalkit.sandbox.environment import server_environment
from evalkit.sandbox.pool import ForkServer
from evalkit.sandbox.room import Room

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


class Visits:
    """A server whose trials enter a room, and do one thing there."""

    def __init__(self, server: ForkServer) -> None:
        self.server = server
        self.last: Child | None = None

    def __call__(self, action: str, *args: object, room: Room | None = None) -> Any:
        """Do something in a fresh room, and return what it returned."""
        child = self.start(action, *args, room=room)
        sent, end = finish(self.server, child)
        assert end.exit_status == 0, child.read_output().text
        return json.loads(sent)

    def start(self, action: str, *args: object, room: Room | None = None) -> Child:
        """Start a visit."""
        given = room or Room(seed=(7, "s", 0, 0))
        if given.env is not None:
            given = replace(given, env=server_environment() | given.env)
        payload = pickle.dumps((given, action, args))
        self.last = self.server.start(payload)
        return self.last

    def refuse(self, room: Room | None = None) -> str:
        """Return what is printed by a process that cannot enter."""
        child = self.start("look_around", room=room)
        sent, end = finish(self.server, child)
        assert (sent, end.exit_status) == (b"", 70)
        return child.read_output().text


@contextmanager
def open_rooms(
    *,
    enter: str = "room_entries:enter",
    prepare: str = "room_entries:prepare",
    env: dict[str, str] | None = None,
    entry: str = "room_entries:act",
    **options: Any,
) -> Iterator[Visits]:
    """Start a server for visits; skip where the machine has no namespaces."""
    given = server_environment() if env is None else env
    started = {name: options.pop(name) for name in ("mode", "secluded") if name in options}
    server = ForkServer(
        entry,
        enter=enter,
        prepare=prepare,
        prepare_payload=pickle.dumps(options),
        path=[*sys.path, HERE],
        env=given,
        **started,
    )
    try:
        server.__enter__()
    except SandboxError as error:
        if "cannot be shut off" in str(error):
            if os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
                raise
            pytest.skip(str(error))
        raise
    with closing_server(server):
        yield Visits(server)


@contextmanager
def closing_server(server: ForkServer) -> Iterator[None]:
    """Close a server that was entered by hand."""
    try:
        yield
    finally:
        server.__exit__(None, None, None)


@pytest.fixture(name="open_rooms")
def open_rooms_fixture() -> Callable[..., AbstractContextManager[Visits]]:
    """Give :func:`open_rooms` to tests, which cannot import each other."""
    return open_rooms


@pytest.fixture(scope="module")
def visit() -> Iterator[Visits]:
    """Visit rooms with the kernel's barrier; one server for all tests of a module."""
    with open_rooms(modules=["numpy"]) as visits:
        yield visits
