"""The caller's end of the socket to one trial: neither side can block the caller."""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable

_CHUNK = 1 << 18
_MAX_CHUNKS = 1 << 10  # more than any socket buffer holds
_GONE = (BrokenPipeError, ConnectionResetError)


class Channel:
    """A non-blocking socket that keeps what it cannot send yet.

    ``on_ready(mask)`` is registered with the selector as the thing to call.
    """

    def __init__(
        self,
        sock: socket.socket,
        selector: selectors.BaseSelector,
        on_ready: Callable[[int], None],
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._selector = selector
        self._on_ready = on_ready
        self._outgoing: deque[memoryview] = deque()
        self._readable = True
        self._interest = 0
        self._register()

    def send(self, data: bytes) -> None:
        """Send now what fits, and the rest while the caller waits."""
        if data:
            self._outgoing.append(memoryview(data))
            self.flush()

    def flush(self) -> None:
        """Send what fits; forget everything once nobody can read it."""
        try:
            while self._outgoing:
                self._send_some()
        except BlockingIOError:
            pass
        except _GONE:
            self._outgoing.clear()
        self._register()

    def _send_some(self) -> None:
        """Send a part of the oldest data."""
        oldest = self._outgoing[0]
        rest = oldest[self._sock.send(oldest) :]
        if rest:
            self._outgoing[0] = rest
        else:
            self._outgoing.popleft()

    def receive(self) -> bytes:
        """Return what is there, up to 256 kB; empty when there is nothing."""
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return b""
        except _GONE:
            data = b""
        if not data:
            self._readable = False
            self._register()
        return data

    def drain(self) -> list[bytes]:
        """Return all that is there, in order: what a dead process has left."""
        chunks: list[bytes] = []
        while self._readable and len(chunks) < _MAX_CHUNKS and (data := self.receive()):
            chunks.append(data)
        return chunks

    def close(self) -> None:
        """Close the socket and forget what was not sent."""
        self._outgoing.clear()
        self._readable = False
        self._register()
        self._sock.close()

    def _register(self) -> None:
        """Tell the selector what this channel waits for now."""
        wanted = selectors.EVENT_READ if self._readable else 0
        wanted |= selectors.EVENT_WRITE if self._outgoing else 0
        if wanted == self._interest:
            return
        if self._interest:
            self._selector.unregister(self._sock)
        if wanted:
            self._selector.register(self._sock, wanted, self._on_ready)
        self._interest = wanted
