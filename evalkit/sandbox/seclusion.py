"""A table of processes of the server's own, so that nothing of it outlives the server.

The server becomes the first process of a new PID namespace. When it ends, however it
ends, the kernel kills everything below it, daemons too; and trials neither see nor
can signal a process of the machine's. It costs the server's start some milliseconds
and a trial nothing; a namespace for each trial would cost each a second fork.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from typing import NoReturn

from evalkit.sandbox import barrier, kernel, namespaces, processes


def seclude(fds: Iterable[int]) -> bool:
    """Continue as the first process of a new table, where the machine allows that.

    The process that called stays behind, closes ``fds``, and ends as the new one does.

    Returns
    -------
    bool
        Whether it was allowed; the calling process goes on unchanged if not.
    """
    if sys.platform != "linux" or not _is_allowed():
        return False
    barrier.look_at_switches()
    namespaces.isolate(network=False, mounts=True, processes=True)
    pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        _end_like(pid)
    _mount_table()
    processes.die_with_parent(0)  # what lies outside has no number here
    return True


def _is_allowed() -> bool:
    """Try it in a process that is thrown away: once moved, there is no way back."""
    pid = os.fork()
    if pid == 0:
        try:
            namespaces.isolate(network=False, mounts=True, processes=True)
            inner = os.fork()
            if inner == 0:
                _mount_table()
                os._exit(0)
            os._exit(os.waitpid(inner, 0)[1] != 0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _mount_table() -> None:
    """Show the new table in ``/proc``; containers that mask parts of it forbid that."""
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    flags = kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_PROGRAMS
    kernel.mount("proc", "/proc", "proc", flags=flags)


def _end_like(pid: int) -> NoReturn:
    """Wait for a process, and end with its status or by its signal."""
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(abs(code))
