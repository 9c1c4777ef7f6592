"""An agent as an HTTP server: started for each trial, or (live lane) at a URL.

A turn is a POST with ``{"text": "...", "turn": 1, "conversation_id": "..."}``; the
answer is JSON, ``{"reply": "..."}``. What else it may hold is in GUIDE.md,
"Agents in any language". No proxy is used and no redirect followed: it would
hide who answered.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import selectors
import socket
import time
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, urlsplit

from evalkit.agents.command import new_conversation_id
from evalkit.agents.program import Program
from evalkit.agents.protocol import (
    MAX_MESSAGE_BYTES,
    PROTOCOL,
    AgentFault,
    Observations,
    decode_object,
    error_text,
    excerpt,
    is_reply,
    turn_message,
)
from evalkit.agents.reference import AgentRef
from evalkit.agents.server import Address, Server
from evalkit.errors import AgentError, UsageError
from evalkit.ledger import JSON
from evalkit.trace import Trace

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

_CONNECT_S: Final = 10.0
_LOOK_S: Final = 0.1
_URL_CHARACTERS: Final = "%/:=&?~#+!$,;'@()*[]"


@dataclass(frozen=True, slots=True)
class HttpAgentSpec:
    """An agent that is an HTTP server, as it travels to the process of a trial.

    It is a zero-argument factory of a conversation, so it can stand wherever an
    agent can.

    Examples
    --------
    >>> HttpAgentSpec(("node", "server.mjs"), "/suite", port=8080, path="/chat").description
    'http: node server.mjs (port 8080, POST /chat)'
    """

    command: tuple[str, ...] = ()
    """Started inside each trial; ``{port}`` in a word becomes the port, and so does ``PORT``."""
    folder: str = "/"
    """Of the suite, as a whole path: files that the command names lie there."""
    port: int | None = None
    """Where it listens; ``None``: on a free port, which it is told."""
    path: str = "/"
    url: str | None = None
    """Of an agent that runs already, instead of all that."""
    ready_s: float = 30.0
    """Seconds that the server may take until its port accepts connections."""
    timeout_s: float = 600.0
    """Seconds without a byte of the answer; the deadline of a scenario is usually shorter."""

    @property
    def description(self) -> str:
        """What a manifest calls it; never a query or a password."""
        if self.url is not None:
            return f"http: {_address_of(self.url)}"
        port = "a free port" if self.port is None else f"port {self.port}"
        return f"http: {Program(self.command, self.folder)} ({port}, POST {self.path})"

    def check_lane(self, lane: str) -> None:
        """Refuse a URL outside the live lane.

        Raises
        ------
        UsageError
            There, no trial could give it a fresh process.
        """
        if self.url is not None and lane != "live":
            raise UsageError(
                f"agent {self.description}: it runs already and is shared by all trials, so it can "
                f"only be run in the live lane, not in {lane}; give `command` and `port`"
            )

    def refer(self) -> AgentRef:
        """Make the reference that a worker is sent.

        Raises
        ------
        AgentError
            If there is no such program, or the URL is none.
        """
        if self.url is not None:
            where = hashlib.sha256(self.description.encode()).hexdigest()  # nobody knows its code
            return AgentRef(self.description, (), pickle.dumps(self), where, is_program=True)
        if not self.path.startswith("/"):
            raise AgentError(f"agent {self.description}: its path must begin with /")
        program = Program(self.command, self.folder)
        executable = program.words()[0]
        return AgentRef(
            self.description,
            (),
            pickle.dumps(self),
            program.code_hash(),
            is_program=True,
            executable=executable,
        )

    def open(self, conversation_id: str) -> HttpConversation:
        """Start the server for one trial and wait until it can be talked to.

        Raises
        ------
        AgentError
            If it cannot be started, or its port is somebody else's.
        AgentFault
            If it ends, or does not listen in time.
        """
        if self.url is not None:
            address, server = _address_of(self.url), None
        else:
            server = Server(
                Program(self.command, self.folder),
                port=self.port,
                path=self.path,
                ready_s=self.ready_s,
            )
            address = server.address
        return HttpConversation(address, conversation_id, server=server, timeout_s=self.timeout_s)

    def __call__(self) -> HttpConversation:
        """Start the server for one trial, under an id of its own.

        At a URL the id is unique in the world: that server remembers other runs.
        """
        if self.url is None:
            return self.open(new_conversation_id())
        import uuid

        return self.open(str(uuid.uuid4()))


def _address_of(url: str) -> Address:
    """Take a URL apart.

    Raises
    ------
    AgentError
        If it is no URL that can be talked to.
    """
    if "@" in url.partition("?")[0]:
        raise AgentError("agent: its URL holds a user or a password, which would not be sent")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AgentError(f"agent {url!r} is no URL: {error}") from error
    is_tls = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not host:
        raise AgentError(f"agent {url!r} is no URL; write it as http://host:port/path")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(host, port or (443 if is_tls else 80), path, is_tls)


class HttpConversation:
    """One trial's conversation with a server."""

    def __init__(
        self,
        address: Address,
        conversation_id: str,
        *,
        server: Server | None = None,
        timeout_s: float,
    ) -> None:
        self._address = address
        self._conversation_id = conversation_id
        self._server = server
        self._timeout_s = timeout_s
        self._n_turns = 0
        self._observes_tools = False
        self._state: dict[str, JSON] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def reply(self, text: str) -> Trace:
        """Say something, and wait for the agent's reply.

        Raises
        ------
        AgentFault
            If it ends, or answers with anything but a reply.
        AgentError
            If nothing listens at its URL.
        """
        self._n_turns += 1
        turn = Observations(text)
        said = turn_message(text, turn=self._n_turns, conversation_id=self._conversation_id)
        status, data = self._posted(json.dumps(said).encode("ascii"))
        try:
            self._take(data, turn, where=f"the agent's answer to turn {self._n_turns} ({status})")
        except AgentFault as fault:
            fault.trace = self._trace(turn)
            raise
        return self._trace(turn)

    def state(self) -> dict[str, JSON] | None:
        """Give the state that the agent told with its last reply, if any."""
        return self._state

    def close(self) -> None:
        """End the server, if it is the trial's own; once or more often."""
        if self._server is not None:
            self._server.stop()

    def _trace(self, turn: Observations) -> Trace:
        self._observes_tools |= turn.observes_tools
        return turn.trace(observes_tools=self._observes_tools)

    def _take(self, data: bytes, turn: Observations, *, where: str) -> None:
        message = decode_object(data, where=where)
        if not is_reply(message) and "error" in message:
            raise AgentFault("agent_raised", error_text(message))
        state = message.get("state")
        if not isinstance(state, dict | None):
            raise AgentFault("bad_reply", f"{where}: `state` must be an object")
        self._state = state
        turn.add_reply(message, where=where)
        turn.check()

    def _posted(self, body: bytes) -> tuple[str, bytes]:
        """Post a turn; give what the answer is called, and its body."""
        from http.client import HTTPException

        with closing(self._connected()) as connection:
            try:
                connection.request("POST", self._path, body, _headers())
                self._await_answer(connection.sock)
                with connection.getresponse() as response:
                    data = _body(response)
                    self._check(response, data)
                    return f"status {response.status}, {_content_type(response)}", data
            except TimeoutError as error:
                raise self._fault("sent nothing", f"for {self._timeout_s:g} s") from error
            except (OSError, HTTPException) as error:
                raise self._fault("broke off the answer", f"({_shown(error)})") from error

    @property
    def _path(self) -> str:
        return quote(self._address.path, safe=_URL_CHARACTERS)

    def _connected(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        kind = HTTPSConnection if self._address.is_tls else HTTPConnection
        connection = kind(self._address.host, self._address.port, timeout=_CONNECT_S)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            if self._server is not None:
                raise self._fault("accepted no connection", f"({_shown(error)})") from error
            raise AgentError(f"agent at {self._address}: {_shown(error)}") from error
        connection.sock.settimeout(self._timeout_s)
        return connection

    def _await_answer(self, connection: socket.socket) -> None:
        """Wait for the first byte, but not for a server that has ended."""
        due = time.monotonic() + self._timeout_s
        while not _is_readable(connection):
            if time.monotonic() > due:
                raise TimeoutError
            if self._server is not None and self._server.program.has_ended():
                if _is_readable(connection):
                    return
                raise ConnectionAbortedError("its process ended")

    def _check(self, response: HTTPResponse, data: bytes) -> None:
        """Refuse an answer that can hold no reply."""
        if len(data) > MAX_MESSAGE_BYTES:
            message = f"the agent's answer has more than {MAX_MESSAGE_BYTES:,} bytes"
            raise AgentFault("reply_too_large", message)
        if 200 <= response.status < 300:
            return
        place = response.getheader("location")
        where = f" to {place!r}, which is not followed" if place else ""
        raise AgentFault(
            "agent_raised" if response.status >= 500 else "bad_reply",
            f"the agent answered turn {self._n_turns} with status {response.status} "
            f"{response.reason}{where}: {excerpt(data)}",
        )

    def _fault(self, what: str, how: str) -> AgentFault:
        """Say what went wrong; that its process ended is the better reason."""
        when = f"in turn {self._n_turns}"
        ended = None if self._server is None else self._server.end(when)
        return ended or AgentFault("no_reply", f"the agent {what} {when} {how}")


def _headers() -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Connection": "close",
        "Evalkit-Protocol": str(PROTOCOL),
    }


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
