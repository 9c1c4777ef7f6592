"""Lines to and from a program, whatever it does with its pipes.

What the lines mean is :mod:`evalkit.agents.command`'s.
"""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Iterator
from typing import IO, Final

from evalkit.agents.program import RunningProgram
from evalkit.agents.protocol import (
    MAX_MESSAGE_BYTES,
    MAX_TURN_BYTES,
    AgentFault,
    Message,
    excerpt,
)

_LOOK_S: Final = 0.1
"""How often it is looked whether the program has ended, while something holds its output open."""

_CHUNK: Final = 65536


class Lines:
    """Lines to and from a program, without ever waiting for one that has ended.

    A program may write before it reads, and may leave its output open to somebody
    else; so both directions are served together, and its end is looked for.
    """

    def __init__(self, program: RunningProgram) -> None:
        self.n_read = 0
        """Lines given so far."""
        self._program = program
        self._stdin: IO[bytes] | None = program.stdin
        self._stdout = program.stdout
        self._unsent = bytearray()
        self._received = bytearray()
        self._searched = 0
        self._left = 0
        self._at_end = False
        for pipe in (program.stdin, program.stdout):
            os.set_blocking(pipe.fileno(), False)

    def allow(self, n_bytes: int) -> None:
        """Say how much the program may write from here on."""
        self._left = n_bytes

    def send(self, message: Message) -> None:
        """Send a message; it goes out while the next line is waited for."""
        self._unsent += json.dumps(message).encode("ascii") + b"\n"

    def next(self) -> bytes | None:
        """Wait for a line; ``None`` when none can follow."""
        while (line := self._taken()) is None and not self._at_end:
            self._exchange(_LOOK_S)
        return line

    def pending(self) -> Iterator[bytes]:
        """Give the lines that are there, without waiting."""
        self._exchange(0.0)
        while (line := self._taken()) is not None:
            yield line

    def rest(self, due: float) -> Iterator[bytes]:
        """End the input, and give the lines that follow until the end, or until it is due."""
        self._unsent.clear()
        self._hang_up()
        while True:
            while (line := self._taken()) is not None:
                yield line
            if self._at_end or time.monotonic() >= due:
                return
            self._exchange(min(_LOOK_S, max(due - time.monotonic(), 0.0)))

    def _taken(self) -> bytes | None:
        """Take a whole line that has been received; at the end also a torn one."""
        while True:
            end = self._received.find(b"\n", self._searched)
            if end < 0 and not (self._at_end and self._received):
                self._searched = len(self._received)
                _check_size(self._received)
                return None
            end = len(self._received) if end < 0 else end
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            self._searched = 0
            self.n_read += 1
            _check_size(line)
            if line.strip():
                return line

    def _exchange(self, seconds: float) -> None:
        """Wait for one of the pipes, and serve it."""
        ended = self._program.has_ended()  # asked first: what it wrote before is there to read
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            if self._unsent and self._stdin is not None:
                selector.register(self._stdin, selectors.EVENT_WRITE)
            ready = [key.fileobj for key, _ in selector.select(0.0 if ended else seconds)]
        if self._stdin in ready:
            self._write()
        if self._stdout in ready:
            self._receive()
        elif ended:
            self._at_end = True

    def _write(self) -> None:
        assert self._stdin is not None
        try:
            n_sent = os.write(self._stdin.fileno(), self._unsent[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:  # it reads no more; what it has written may still be an answer
            self._hang_up()
            return
        del self._unsent[:n_sent]

    def _hang_up(self) -> None:
        if self._stdin is not None:
            self._stdin.close()
            self._stdin = None

    def _receive(self) -> None:
        try:
            data = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return
        self._at_end = not data
        self._received += data
        self._left -= len(data)
        if self._left < 0:
            raise AgentFault(
                "reply_too_large",
                f"the agent wrote more than {MAX_TURN_BYTES:,} bytes in one turn",
            )


def _check_size(line: bytes | bytearray) -> None:
    if len(line) > MAX_MESSAGE_BYTES:
        raise AgentFault(
            "reply_too_large",
            f"the agent wrote a line of more than {MAX_MESSAGE_BYTES:,} bytes, which begins "
            f"with {excerpt(bytes(line[:100]))}",
        )
