"""Processes that an agent leaves behind: alive after its `close()`, and a moment more.

They are found from inside, where all that a trial starts stays below its process, and
ended; what they started in turn is ended with the trial. No leftovers are what was there
before the conversation began, and what Python itself ends when a program does: trackers
of :mod:`multiprocessing`, its daemonic children, the workers of an executor.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from evalkit.sandbox.processes import kill

_GRACE_S: Final = 0.5
_LOOK_S: Final = 0.01
_NAMED: Final = 5
_MAX_SHOWN: Final = 80
_TRACKER: Final = re.compile(rb"(resource_tracker|forkserver) import main")


class Leftovers:
    """Finds the processes that came after it was made, and did not go."""

    def __init__(self) -> None:
        self._before = frozenset(_children() if _has_children() else ())

    def end(self) -> str:
        """End what is left behind; say so if anything was. Waits a moment for it to go."""
        if not _has_children():  # one call of the kernel's, for nearly every trial
            return ""
        due = time.monotonic() + _GRACE_S
        while (left := self._living()) and time.monotonic() < due:
            time.sleep(_LOOK_S)
        named = sorted(map(_name, left))
        for pid in left:
            kill(pid)
        return _said(named) if named else ""

    def _living(self) -> list[int]:
        spared = self._before | _ended_by_python()
        return [pid for pid in _children() if pid not in spared and _is_leftover(pid)]


def _has_children() -> bool:
    """Say whether this process has a child at all, alive or not, of any of its threads."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children() -> Iterator[int]:
    """Give the children of all threads; a child of a thread's is in no other's list."""
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, task.read_text().split())


def _is_leftover(pid: int) -> bool:
    """Say whether a process is alive, and none of Python's own helpers."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in (b"Z", b"X") and not _TRACKER.search(_command(pid))


def _ended_by_python() -> set[int]:
    """Give the children that Python ends at a program's end, if it comes to that."""
    found: set[int] = set()
    multiprocessing: Any = sys.modules.get("multiprocessing.process")
    for child in multiprocessing.active_children() if multiprocessing else ():
        if child.daemon:
            found.add(child.pid)
    executors: Any = sys.modules.get("concurrent.futures.process")
    for manager in list(getattr(executors, "_threads_wakeups", ())):
        found |= set(getattr(manager, "processes", None) or ())
    return found


def _command(pid: int | str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _name(pid: int) -> str:
    """Name a process by its command; never by its number, which is another in each run."""
    command = _command(pid)
    if command == _command("self"):
        return "a fork of the agent's process"
    words = command.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "backslashreplace")
    shown = " ".join(words.split())
    if not shown:
        return "a process without a command"
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."


def _said(named: list[str]) -> str:
    shown = "; ".join(named[:_NAMED]) + ("; ..." if len(named) > _NAMED else "")
    what = "1 process was" if len(named) == 1 else f"{len(named)} processes were"
    return (
        f"{what} left behind and ended ({shown}): an agent ends what it starts, at last in close()"
    )
