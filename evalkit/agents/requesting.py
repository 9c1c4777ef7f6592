"""One request to an agent that listens, over a connection of its own.

No proxy is used and no redirect followed: it would hide who answered.
"""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from evalkit.agents.hosting import Address, Answer, Host, Request
from evalkit.agents.protocol import MAX_MESSAGE_BYTES, AgentFault
from evalkit.errors import AgentError

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

_CONNECT_S: Final = 10.0
_LOOK_S: Final = 0.1
_URL_CHARACTERS: Final = "%/:=&?~#+!$,;'@()*[]"


class Caller:
    """Sends requests to an agent.

    Parameters
    ----------
    address
        Where it listens.
    host
        What it runs in; ``None`` for one that runs already.
    timeout_s
        Seconds without a byte of the answer.
    """

    def __init__(self, address: Address, host: Host | None, *, timeout_s: float) -> None:
        self._address = address
        self._host = host
        self._timeout_s = timeout_s

    def ask(self, request: Request, *, when: str) -> Answer:
        """Send a request and wait for the whole answer.

        Parameters
        ----------
        request
            As it is sent.
        when
            The end of a sentence about what goes wrong.

        Raises
        ------
        AgentFault
            If the agent ends, breaks off, sends nothing, or too much.
        AgentError
            If nothing listens at its URL.
        """
        from http.client import HTTPException

        with closing(self._connected(when)) as connection:
            try:
                connection.request(
                    request.method,
                    quote(request.path, safe=_URL_CHARACTERS),
                    request.body,
                    {**request.headers, "Connection": "close"},
                )
                self._await_answer(connection.sock)
                with connection.getresponse() as response:
                    return _answer(response)
            except TimeoutError as error:
                raise self._fault("sent nothing", f"for {self._timeout_s:g} s", when) from error
            except (OSError, HTTPException) as error:
                raise self._fault("broke off the answer", f"({_shown(error)})", when) from error

    def _connected(self, when: str) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        kind = HTTPSConnection if self._address.is_tls else HTTPConnection
        connection = kind(self._address.host, self._address.port, timeout=_CONNECT_S)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            if self._host is not None:
                raise self._fault("accepted no connection", f"({_shown(error)})", when) from error
            raise AgentError(f"agent at {self._address}: {_shown(error)}") from error
        connection.sock.settimeout(self._timeout_s)
        return connection

    def _await_answer(self, connection: socket.socket) -> None:
        """Wait for the first byte, but not for a server that has ended."""
        due = time.monotonic() + self._timeout_s
        while not _is_readable(connection):
            if time.monotonic() > due:
                raise TimeoutError
            if self._host is not None and self._host.has_ended():
                if _is_readable(connection):
                    return
                raise ConnectionAbortedError("its process ended")

    def _fault(self, what: str, how: str, when: str) -> AgentFault:
        """Say what went wrong; that its process ended is the better reason."""
        ended = None if self._host is None else self._host.end(when)
        return ended or AgentFault("no_reply", f"the agent {what} {when} {how}")


def _answer(response: HTTPResponse) -> Answer:
    data = _body(response)
    if len(data) > MAX_MESSAGE_BYTES:
        message = f"the agent's answer has more than {MAX_MESSAGE_BYTES:,} bytes"
        raise AgentFault("reply_too_large", message)
    place = response.getheader("location")
    return Answer(response.status, response.reason, _content_type(response), place, data)


def _body(response: HTTPResponse) -> bytes:
    """Read a body, up to what is too large; one that is cut off is an error."""
    from http.client import IncompleteRead

    data = response.read(MAX_MESSAGE_BYTES + 1)
    if response.length and len(data) <= MAX_MESSAGE_BYTES:  # a bounded read does not say so itself
        raise IncompleteRead(data, response.length)
    return data


def _content_type(response: HTTPResponse) -> str:
    named = response.getheader("content-type", "no content type")
    coding = response.getheader("content-encoding")
    return f"{named}, {coding}" if coding else named


def _shown(error: Exception) -> str:
    return str(error) or type(error).__name__


def _is_readable(connection: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(_LOOK_S))
