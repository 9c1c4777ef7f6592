"""What happens in the fresh process of one trial, from fork to exit.

:func:`settle` cuts it off from server and terminal, :func:`run` runs the entry
and never returns. What the entry does is the caller's business.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from evalkit.sandbox.processes import adopt_orphans, die_with_parent
from evalkit.sandbox.protocol import Request, read_whole

Entry = Callable[[Any, bytes, socket.socket], object]
Enter = Callable[[bytes], object]
Load = Callable[[], tuple[Entry, Any]]

# What `signal.signal` calls, without the enumerations around it: dear in a fresh fork.
_set_handler: Callable[[int, Any], Any] = importlib.import_module("_signal").signal

_DEFAULT = int(signal.SIG_DFL)

ENTRY_RAISED = 70
"""Exit status of a process whose entry raised (``EX_SOFTWARE``)."""


class Descriptors(NamedTuple):
    """The three files of one trial, in the order in which they travel."""

    channel: int
    """Socket to the controller."""
    output: int
    """File that takes stdout and stderr."""
    payload: int
    """File with the trial's payload."""

    def close(self) -> None:
        """Close all three."""
        for fd in self:
            os.close(fd)


def load(request: Request) -> tuple[Entry, Any]:
    """Import the entry and prepare what all trials share."""
    entry = resolve(request.entry)
    prepared = resolve(request.prepare)(request.payload) if request.prepare else None
    return entry, prepared


def resolve(name: str) -> Callable[..., Any]:
    """Return the function that ``"module:function"`` names."""
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function


def settle(server_pid: int, output_fd: int) -> None:
    """Make a forked child a process of its own, tied to the server's life."""
    os.setsid()
    die_with_parent(server_pid)
    # While this process lives, whatever it starts stays below it; afterwards it
    # falls to the server, which kills every child that it does not know.
    adopt_orphans()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        _set_handler(number, _DEFAULT)
    _set_handler(signal.SIGINT, signal.default_int_handler)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output_fd, 1), (output_fd, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(output_fd)


def run(load: Load, *, enter: Enter | None, payload_fd: int, channel_fd: int) -> NoReturn:
    """Run the entry and end the process, whatever happens and in whichever fork.

    Parameters
    ----------
    load
        Gives the entry and what was prepared; imports them first where nobody has.
    enter
        Called first, with the payload: there is one thread, and nothing of the agent
        has run in this process.
    payload_fd, channel_fd
        The trial's files.
    """
    status = ENTRY_RAISED
    try:
        channel = socket.socket(fileno=channel_fd)
        os.register_at_fork(after_in_child=lambda: _disconnect(channel))
        payload = read_whole(payload_fd)
        os.close(payload_fd)
        if enter is not None:
            enter(payload)
        entry, prepared = load()
        entry(prepared, payload, channel)
        status = 0
    except SystemExit as error:
        status = _exit_code(error)
    except BaseException:
        _complain(traceback.format_exc())
    finally:
        # An agent's own fork that comes back to here ends here, too.
        _flush()
        os._exit(status)


def _disconnect(channel: socket.socket) -> None:
    """Make the channel useless in an agent's fork, also through duplicates of the object."""
    if channel.fileno() >= 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, channel.fileno(), inheritable=False)
        os.close(null)


def _exit_code(error: SystemExit) -> int:
    """Return the status that Python itself would exit with."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    _complain(f"{error.code}\n")
    return 1


def _complain(text: str) -> None:
    """Write to the real stderr: the agent may have replaced or closed Python's."""
    with suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))


def _flush() -> None:
    """Flush whatever stands for stdout and stderr now."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def write_through() -> None:
    """Let nothing that an agent prints wait in a buffer, or fail for a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)
