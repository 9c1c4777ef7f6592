"""HTTP/1.1 on one connection: reading requests, writing answers.

Only what a client of a model API needs, and a fraction of the cost of
:mod:`http.server`, whose parser of headers alone takes longer than an answer.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evalkit.gateway.delivery import Delivery

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
_MAX_LINE: Final = 64 * 1024
_MAX_HEADERS: Final = 200
_REASONS: Final[Mapping[int, str]] = {
    200: "OK",
    400: "Bad Request",
    413: "Content Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
    529: "Overloaded",
}


class _Gone(Exception):
    """The client went away in the middle of a request."""


class BadHttp(ValueError):
    """Bytes that are no request, or one that is too large; ``status`` says which."""

    def __init__(self, message: str, *, status: int = 400, target: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.target = target


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request."""

    method: str
    target: str
    headers: Mapping[bytes, bytes]
    """By lower-case name."""
    body: bytes
    keeps_open: bool
    """Whether the client wants to go on with this connection."""


class Connection:
    """One client's connection.

    Parameters
    ----------
    client
        The connected socket; closed by :meth:`close`.
    max_body
        Bytes that a body may have.
    """

    def __init__(self, client: socket.socket, *, max_body: int = MAX_BODY_BYTES) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = client
        self._file = client.makefile("rb", 1 << 16)
        self._max_body = max_body

    def receive(self) -> HttpRequest | None:
        """Read the next request; ``None`` if the client has gone, also in the middle of one.

        Raises
        ------
        BadHttp
            If what comes is no request; the connection is of no use then.
        """
        try:
            return self._request()
        except _Gone:
            return None

    def _request(self) -> HttpRequest:
        first = self._line()
        method, target, version = _request_line(first)
        headers = self._headers(target)
        body = self._body(headers, target)
        asked = headers.get(b"connection", b"").lower()
        keeps_open = asked != b"close" if version != b"HTTP/1.0" else asked == b"keep-alive"
        return HttpRequest(method, target, headers, body, keeps_open)

    def _line(self) -> bytes:
        line = self._file.readline(_MAX_LINE + 1)
        if len(line) > _MAX_LINE:
            raise BadHttp(f"a line of the request's head has more than {_MAX_LINE} bytes")
        if not line.endswith(b"\n"):
            raise _Gone
        return line

    def _headers(self, target: str) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = {}
        for _ in range(_MAX_HEADERS):
            line = self._line().strip()
            if not line:
                return headers
            key, _, value = line.partition(b":")
            headers[key.lower()] = value.strip()
        raise BadHttp(f"the request has more than {_MAX_HEADERS} headers", target=target)

    def _body(self, headers: Mapping[bytes, bytes], target: str) -> bytes:
        if headers.get(b"expect", b"").lower() == b"100-continue":
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
            return self._chunks(target)
        length = _number(headers.get(b"content-length", b"0"), base=10, what="content-length")
        return self._exactly(length, target, so_far=0)

    def _chunks(self, target: str) -> bytes:
        body = bytearray()
        while size := _number(self._line().partition(b";")[0], base=16, what="size of a chunk"):
            body += self._exactly(size, target, so_far=len(body))
            self._line()
        while self._line().strip():  # trailers
            pass
        return bytes(body)

    def _exactly(self, size: int, target: str, *, so_far: int) -> bytes:
        if size + so_far > self._max_body:
            message = f"the request has more than {self._max_body:,} bytes"
            raise BadHttp(message, status=413, target=target)
        content: bytes = self._file.read(size)
        if len(content) < size:
            raise _Gone
        return content

    def send(self, delivery: Delivery) -> bool:
        """Send an answer, and tell whether the connection can go on.

        One that hangs lasts until the client gives up, or :meth:`hang_up` is called.
        """
        if delivery.ending == "hang":
            self._socket.recv(1)
        elif delivery.status:
            self._socket.sendall(_encoded(delivery))
        return delivery.ending in ("whole", "clean")

    def hang_up(self) -> None:
        """End the connection while another thread may be reading from it."""
        with contextlib.suppress(OSError):  # the client was faster
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection and give its socket back."""
        self.hang_up()
        self._file.close()
        self._socket.close()


def _request_line(line: bytes) -> tuple[str, str, bytes]:
    parts = line.split()
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
        raise BadHttp(f"this is no HTTP/1.1 request: {line[:80]!r}")
    return parts[0].decode("latin-1"), parts[1].decode("latin-1"), parts[2]


def _number(text: bytes, *, base: int, what: str) -> int:
    try:
        number = int(text, base)
    except ValueError:
        number = -1
    if number < 0:
        raise BadHttp(f"the {what} is {text[:40]!r}, which is no number")
    return number


def _encoded(delivery: Delivery) -> bytes:
    """Write an answer down; one that breaks off promises more than it holds."""
    if delivery.frames is None:
        length = len(delivery.body) * (2 if delivery.ending == "abrupt" else 1)
        return _head(delivery, f"content-length: {length}") + delivery.body
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(frame), frame) for frame in delivery.frames)
    end = b"" if delivery.ending == "abrupt" else b"0\r\n\r\n"
    return _head(delivery, "transfer-encoding: chunked") + chunks + end


def _head(delivery: Delivery, framing: str) -> bytes:
    reason = _REASONS.get(delivery.status, "")
    lines = [f"HTTP/1.1 {delivery.status} {reason}", framing]
    lines += [f"{name}: {value}" for name, value in delivery.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
