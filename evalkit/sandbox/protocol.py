"""What the caller and the server program say to each other.

A *request* file (read once, by position, so that many processes may share it)
says what to import. After that both sides exchange one JSON object a line over
the control socket; three file descriptors travel with each ``start``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Message = Mapping[str, Any]


class Request(NamedTuple):
    """What a server, or a single fresh interpreter, must import before a trial."""

    path: tuple[str, ...]
    """Entries to put in front of ``sys.path``; the first line of the file."""
    entry: str
    """``"module:function"`` called as ``entry(prepared, payload, channel)``."""
    prepare: str
    """``"module:function"`` called once as ``prepare(payload)``; empty for none."""
    caller_pid: int
    """Process whose end also ends the server."""
    payload: bytes
    """Opaque bytes for ``prepare``."""
    enter: str = ""
    """``"module:function"`` called as ``enter(payload)`` in each fresh process, before anything
    of the agent runs in it; empty for none."""
    secluded: bool = False
    """Whether the server should have a table of processes of its own."""

    def encode(self) -> bytes:
        """Return the content of a request file.

        Examples
        --------
        >>> request = Request(("/a",), "m:f", "", 1, b"x")
        >>> Request.decode(request.encode()) == request
        True
        """
        head = json.dumps([self.entry, self.prepare, self.caller_pid, self.enter, self.secluded])
        return f"{json.dumps(self.path)}\n{head}\n".encode() + self.payload

    @classmethod
    def decode(cls, content: bytes) -> Request:
        """Read what :meth:`encode` wrote."""
        path, head, payload = content.split(b"\n", 2)
        entry, prepare, caller_pid, *rest = json.loads(head)
        return cls(tuple(json.loads(path)), entry, prepare, caller_pid, payload, *rest)


class Lines:
    """Cut a byte stream into the messages of :func:`encode_message`."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that ``data`` completes."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return map(json.loads, whole)


def encode_message(**fields: object) -> bytes:
    r"""Return one message as a line.

    Examples
    --------
    >>> encode_message(op="kill", token=3)
    b'{"op": "kill", "token": 3}\n'
    """
    return json.dumps(fields).encode() + b"\n"


def read_whole(fd: int) -> bytes:
    """Read a file from its start, without moving the offset that others share."""
    return read_range(fd, 0, os.fstat(fd).st_size)


def read_range(fd: int, start: int, stop: int) -> bytes:
    """Read the bytes ``start`` to ``stop`` of a file, fewer where it ends earlier."""
    chunks = []
    while start < stop and (chunk := os.pread(fd, stop - start, start)):
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)
