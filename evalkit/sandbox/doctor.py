"""What this machine can do for trials, and how to allow more.

Everything is tried for real, in a fresh process of a real server, as the user who
asks. Showing it is the command line's business.
"""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Iterator
from importlib import metadata
from typing import Any, Final, Literal, NamedTuple

from evalkit.errors import SandboxError
from evalkit.sandbox import kernel
from evalkit.sandbox.barrier import advice
from evalkit.sandbox.child import Ended, Received
from evalkit.sandbox.environment import server_environment
from evalkit.sandbox.faketime import plan_faking
from evalkit.sandbox.pool import ForkServer

State = Literal["good", "limited", "missing"]

_TIMEOUT_S: Final = 60.0
_PACKAGES: Final = (
    "evalkit-lab", "time-machine", "trustme", "anthropic", "openai", "langgraph",
    "pydantic-ai-slim", "openai-agents",
)  # fmt: skip
_NEEDED: Final = frozenset({"time-machine", "trustme"})


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    """A short name, the same on every machine."""
    state: State
    """``limited`` works worse than it could, ``missing`` not at all."""
    detail: str
    """What was found."""
    advice: str = ""
    """What to do about it; empty where nothing needs doing."""


def diagnose() -> list[Finding]:
    """Find out what this machine can do.

    Returns
    -------
    list of Finding
        In a fixed order; it never raises for what the machine lacks.
    """
    return [
        _machine(),
        *_room_findings(_try_room()),
        _signals(),
        _faketime(),
        *_packages(),
    ]


def _machine() -> Finding:
    version = f"Python {platform.python_version()} on {platform.system()} {platform.release()}"
    if platform.system() == "Linux":
        return Finding("system", "good", version)
    return Finding(
        "system", "limited", version, "the network can be shut off by the kernel on Linux only"
    )


def _try_room() -> dict[str, Any]:
    """Enter a room in a fresh process, and return what became of it."""
    try:
        with ForkServer(
            "evalkit.sandbox.doctor:report_room", env=server_environment(), secluded=True
        ) as server:
            server.start(b"")
            return {"mode": server.mode, "secluded": server.secluded, **_hear(server)}
    except SandboxError as error:
        return {
            "mode": "",
            "secluded": False,
            "problem": str(error),
            "is_private": False,
            "notes": [],
        }


def _hear(server: ForkServer) -> dict[str, Any]:
    """Collect a report."""
    sent = b""
    while events := server.wait(_TIMEOUT_S):
        sent += b"".join(event.data for event in events if isinstance(event, Received))
        if any(isinstance(event, Ended) for event in events):
            break
    if not sent:
        raise SandboxError("the process that tried a room ended without a report")
    answer: dict[str, Any] = json.loads(sent)
    return answer


def report_room(_: object, __: bytes, channel: socket.socket) -> None:
    """Enter a room, and send what became of it; the entry of :func:`diagnose`'s process."""
    from evalkit.sandbox.room import Room, enter

    try:
        entered = enter(Room(clock=None, seed=()))
    except SandboxError as error:
        answer = {"problem": str(error), "is_private": False, "notes": []}
    else:
        answer = {"problem": "", "is_private": entered.is_private, "notes": entered.notes}
    channel.sendall(json.dumps(answer).encode())


def _room_findings(room: dict[str, Any]) -> Iterator[Finding]:
    """Yield what a tried room says about the machine."""
    yield _processes(room["mode"])
    yield _table(secluded=room["secluded"])
    yield _network(room["problem"])
    yield _files(room)


def _processes(mode: str) -> Finding:
    if mode == "fork":
        return Finding("processes", "good", "trials are forked from a warm server")
    if mode == "spawn":
        return Finding("processes", "limited", "each trial starts an interpreter: slower")
    return Finding("processes", "missing", "no process for a trial could be started")


def _table(*, secluded: bool) -> Finding:
    if secluded:
        return Finding("process table", "good", "nothing outlives a server, or sees outside of it")
    return Finding(
        "process table",
        "limited",
        "trials see the machine's processes, and a daemon may outlive a server that is killed",
        advice(),
    )


def _network(problem: str) -> Finding:
    user = f"user {os.getuid()}" if hasattr(os, "getuid") else "this user"
    if not problem:
        return Finding("network barrier", "good", f"namespace, as {user}")
    return Finding("network barrier", "missing", problem, advice())


def _files(room: dict[str, Any]) -> Finding:
    if room["is_private"] and not room["notes"]:
        return Finding("files", "good", "one constant path in memory; home and /run are hidden")
    reason = "; ".join(room["notes"]) or "without namespaces the user's files are not hidden"
    return Finding("files", "limited", reason, advice())


def _signals() -> Finding:
    if kernel.can_scope_signals():
        return Finding("signals", "good", "a trial can signal only its own processes (Landlock)")
    return Finding(
        "signals", "limited", "a trial could kill the user's processes", "use Linux 6.12 or later"
    )


def _faketime() -> Finding:
    library, problem, advice = plan_faking()
    if library:
        return Finding("clock of other programs", "good", library)
    detail = f"agents that are other programs see the real time: {problem}"
    return Finding("clock of other programs", "limited", detail, advice)


def _packages() -> Iterator[Finding]:
    for name in _PACKAGES:
        try:
            yield Finding(name, "good", metadata.version(name))
        except metadata.PackageNotFoundError:
            if name in _NEEDED:
                yield Finding(name, "missing", "not installed", f"pip install {name}")
