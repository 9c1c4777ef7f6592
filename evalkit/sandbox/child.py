"""One trial's process as its caller sees it, and the events that concern it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import IO, NamedTuple

from evalkit.sandbox.channel import Channel
from evalkit.sandbox.protocol import read_range


class Output(NamedTuple):
    """What a trial and everything it started printed."""

    text: str
    """stdout and stderr in the order written, undecodable bytes escaped."""
    truncated: bool
    """Whether the middle was left out, because the limit was exceeded."""


class Child:
    """A trial's process; made by :meth:`~evalkit.sandbox.pool.ForkServer.start`.

    It may be used as a dictionary key; two children are never equal.
    """

    def __init__(self, token: int, output: IO[bytes], *, kill: Callable[[int], None]) -> None:
        self.token = token
        """Number of the trial within its server, counted from 1."""
        self.pid: int | None = None
        """Process id, known a moment after the start."""
        self.ended = False
        """Whether the process, and all that it started, is dead and its channel drained."""
        self.exit_status: int | None = None
        """Exit code, minus the signal that ended it, or ``None``: running or lost."""
        self._output = output
        self._printed: tuple[bytes, int] | None = None
        self._kill = kill
        self._channel: Channel | None = None

    def __repr__(self) -> str:
        state = f"exit_status={self.exit_status}" if self.ended else "running"
        return f"<Child {self.token} pid={self.pid} {state}>"

    def send(self, data: bytes) -> None:
        """Send bytes to the process; never blocks, and never fails for a dead process."""
        if self._channel is not None:
            self._channel.send(data)

    def kill(self) -> None:
        """Kill the process and everything that it started.

        Returns at once; ``Ended`` follows, usually within milliseconds. Killing a
        process that has ended does nothing.
        """
        if not self.ended:
            self._kill(self.token)

    def read_output(self, limit: int = 1_000_000) -> Output:
        """Return what the trial has printed so far.

        Parameters
        ----------
        limit
            Bytes to keep; from longer output the middle is left out. After the
            end no more is known than the ``output_limit`` of the server.
        """
        content, size = self._printed or self._read(limit)
        if len(content) > limit:
            content = content[: limit // 2] + content[len(content) - (limit - limit // 2) :]
        return Output(content.decode(errors="backslashreplace"), len(content) < size)

    @property
    def output_size(self) -> int:
        """Bytes printed so far."""
        return self._printed[1] if self._printed else os.fstat(self._output.fileno()).st_size

    def attach(self, channel: Channel) -> None:
        """Take the channel over; for the server's caller side only."""
        self._channel = channel

    def finish(self, status: int | None, *, output_limit: int) -> None:
        """Note the end, keep the output, close every descriptor; as above."""
        self.ended, self.exit_status = True, status
        self._printed = self._read(output_limit)
        self._output.close()
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _read(self, limit: int) -> tuple[bytes, int]:
        """Return first and last part of the output, and its whole size."""
        fd, size = self._output.fileno(), self.output_size
        if size <= limit:
            return read_range(fd, 0, size), size
        head = read_range(fd, 0, limit // 2)
        return head + read_range(fd, size - (limit - limit // 2), size), size


class Received(NamedTuple):
    """Bytes that a trial's process sent, in order, cut anywhere."""

    child: Child
    data: bytes


class Ended(NamedTuple):
    """A trial's process has ended; everything that it sent was received before."""

    child: Child
    exit_status: int | None
    """Exit code, minus the signal's number, or ``None`` when it was lost."""
    reason: str
    """Why it was lost: the harness's fault, never the agent's. Else empty."""
    n_refused: int | None = None
    """How often it tried to reach the outside, if it was killed and that could be seen."""


class Readable(NamedTuple):
    """A file given to :meth:`~evalkit.sandbox.pool.ForkServer.watch` can be read."""

    file: socket.socket | int


Event = Received | Ended | Readable
