"""HTTP/1.1 on one connection: reading requests, writing answers.

Only what clients of a model and of the fixtures need, and a fraction of the cost of
:mod:`http.server`, whose parser of headers alone takes longer than an answer.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from evalkit.serving.delivery import Delivery

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
_MAX_LINE: Final = 64 * 1024
_MAX_HEADERS: Final = 200
_REASONS: Final[Mapping[int, str]] = {
    **{status.value: status.phrase for status in HTTPStatus},
    529: "Overloaded",
    599: "Unscripted",
}
_BODILESS: Final = frozenset({204, 304})


class _Gone(Exception):
    """The client went away in the middle of a request."""


class BadHttp(ValueError):
    """Bytes that are no request, or one that is too large; ``status`` says which."""

    def __init__(
        self, message: str, *, status: int = 400, method: str = "", target: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.method = method
        self.target = target
        self.headers: Mapping[bytes, bytes] = {}


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
    patience_s
        Seconds for which the rest of a request may stay away once it has begun;
        ``None`` for ever.
    """

    def __init__(
        self,
        client: socket.socket,
        *,
        max_body: int = MAX_BODY_BYTES,
        patience_s: float | None = None,
    ) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = client
        self._file = client.makefile("rb", 1 << 16)
        self._max_body = max_body
        self._patience_s = patience_s

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
        headers: dict[bytes, bytes] = {}
        try:
            body = self._rest(headers)
        except BadHttp as problem:
            problem.method, problem.target, problem.headers = method, target, headers
            raise
        asked = headers.get(b"connection", b"").lower()
        keeps_open = asked != b"close" if version != b"HTTP/1.0" else asked == b"keep-alive"
        return HttpRequest(method, target, headers, body, keeps_open)

    def _rest(self, headers: dict[bytes, bytes]) -> bytes:
        """Read headers and body, as long as something comes."""
        if self._patience_s is None:
            self._read_headers(headers)
            return self._body(headers)
        self._socket.settimeout(self._patience_s)
        try:
            self._read_headers(headers)
            body = self._body(headers)
        except TimeoutError:
            said = f"the rest of the request did not come within {self._patience_s:g} s"
            raise BadHttp(said, status=408) from None
        self._socket.settimeout(None)
        return body

    def _line(self) -> bytes:
        line = self._file.readline(_MAX_LINE + 1)
        if len(line) > _MAX_LINE:
            raise BadHttp(f"a line of the request's head has more than {_MAX_LINE} bytes")
        if not line.endswith(b"\n"):
            raise _Gone
        return line

    def _read_headers(self, headers: dict[bytes, bytes]) -> None:
        for _ in range(_MAX_HEADERS):
            line = self._line().strip()
            if not line:
                return
            key, _, value = line.partition(b":")
            headers[key.lower()] = value.strip()
        raise BadHttp(f"the request has more than {_MAX_HEADERS} headers")

    def _body(self, headers: Mapping[bytes, bytes]) -> bytes:
        is_chunked = b"chunked" in headers.get(b"transfer-encoding", b"").lower()
        length = _number(headers.get(b"content-length", b"0"), base=10, what="content-length")
        if not is_chunked:
            self._check_size(length)
        if headers.get(b"expect", b"").lower() == b"100-continue":
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self._chunks() if is_chunked else self._exactly(length)

    def _chunks(self) -> bytes:
        body = bytearray()
        while size := _number(self._line().partition(b";")[0], base=16, what="size of a chunk"):
            self._check_size(size + len(body))
            body += self._exactly(size)
            self._line()
        while self._line().strip():  # trailers
            pass
        return bytes(body)

    def _check_size(self, size: int) -> None:
        if size > self._max_body:
            raise BadHttp(f"the request has more than {self._max_body:,} bytes", status=413)

    def _exactly(self, size: int) -> bytes:
        content: bytes = self._file.read(size)
        if len(content) < size:
            raise _Gone
        return content

    def send(self, delivery: Delivery, *, is_head: bool = False) -> bool:
        """Send an answer, and tell whether the connection can go on.

        One that hangs lasts until the client gives up, or :meth:`hang_up` is called.

        Parameters
        ----------
        delivery
            What to send.
        is_head
            Whether the request was a HEAD: its answer has no body, whatever it says.
        """
        if delivery.ending == "hang":
            self._socket.recv(1)
        elif delivery.status:
            self._socket.sendall(_encoded(delivery, is_head=is_head))
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


def _encoded(delivery: Delivery, *, is_head: bool) -> bytes:
    """Write an answer down; one that breaks off promises more than it holds."""
    if delivery.status in _BODILESS:
        return _head(delivery)
    if delivery.frames is None:
        length = len(delivery.body) * (2 if delivery.ending == "abrupt" else 1)
        is_told = "content-length" in delivery.headers
        head = _head(delivery, *() if is_told else (f"content-length: {length}",))
        return head if is_head else head + delivery.body
    if is_head:
        return _head(delivery, "transfer-encoding: chunked")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(frame), frame) for frame in delivery.frames)
    end = b"" if delivery.ending == "abrupt" else b"0\r\n\r\n"
    return _head(delivery, "transfer-encoding: chunked") + chunks + end


def _head(delivery: Delivery, *framing: str) -> bytes:
    reason = _REASONS.get(delivery.status, "")
    lines = [f"HTTP/1.1 {delivery.status} {reason}", *framing]
    lines += [f"{name}: {value}" for name, value in delivery.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
