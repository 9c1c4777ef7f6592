"""What the operating system knows about processes: parents, children, threads.

Linux only where it says so; elsewhere the functions do nothing or find nothing,
and the process group is all that is left to kill.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends (Linux)."""
    if sys.platform != "linux":
        return
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:  # it ended before we asked
        os._exit(os.EX_SOFTWARE)


def outlive_parent() -> None:
    """Take :func:`die_with_parent` back."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (Linux)."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@cache
def _libc() -> ctypes.CDLL:
    """Return the C library; call once before a fork, so that children need not."""
    return ctypes.CDLL(None, use_errno=True)


def children() -> set[int]:
    """Return the process ids of this process's children (Linux; else empty)."""
    pid = os.getpid()
    try:
        return set(map(int, _content(f"/proc/{pid}/task/{pid}/children").split()))
    except OSError:  # a kernel built without that file
        return {int(p.name) for p in Path("/proc").glob("[0-9]*") if _parent(p) == pid}


def _content(path: str) -> bytes:
    """Read a small file, as often as a trial ends; pathlib takes several times as long."""
    fd = os.open(path, os.O_RDONLY)
    try:
        chunks = []
        while chunk := os.read(fd, 1 << 16):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


def _parent(process: Path) -> int | None:
    """Return the parent of a ``/proc/<pid>``, ``None`` when it has just gone."""
    try:
        stat = (process / "stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


def kill(pid: int) -> bool:
    """Send SIGKILL; say whether the process was ours to kill."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def kill_group(pid: int) -> None:
    """Send SIGKILL to a whole process group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def other_threads(grace_s: float = 0.5) -> list[str]:
    """Return the names of all threads but this one.

    A joined thread leaves the kernel's table a little later, so whoever is there
    gets ``grace_s`` to go.
    """
    deadline = time.monotonic() + grace_s
    while (names := _thread_names()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return names


def _thread_names() -> list[str]:
    """Return names that Python gave, or else the kernel's, without the caller's."""
    me = threading.current_thread()
    known = {t.native_id: t.name for t in threading.enumerate() if t is not me}
    try:
        tasks = {int(p.name): p for p in Path("/proc/self/task").iterdir()}
    except OSError:  # no such file system: Python's own threads are all we see
        return sorted(known.values())
    tasks.pop(threading.get_native_id(), None)
    return sorted(known.get(number) or _comm(path) for number, path in tasks.items())


def _comm(task: Path) -> str:
    """Return the kernel's name of a thread that Python did not start."""
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return "?"
