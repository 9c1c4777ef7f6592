"""An agent as an HTTP server: started for each trial, or (live lane) at a URL.

A turn is a POST with ``{"text": "...", "turn": 1, "conversation_id": "..."}``; the
answer is JSON, ``{"reply": "..."}``. What else it may hold is in GUIDE.md,
"Agents in any language". A server may also be sent requests of any other shape
(:meth:`HttpConversation.deliver`), or none at all: it polls.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from evalkit.agents.continuing import Talk, next_talk
from evalkit.agents.hosting import Address, Answer, Host, Hosted, Killable, Request
from evalkit.agents.program import Program
from evalkit.agents.protocol import (
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
from evalkit.agents.requesting import Caller
from evalkit.agents.server import Background, Server
from evalkit.errors import AgentError, UsageError
from evalkit.ledger import JSON
from evalkit.trace import Trace


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
    listens: bool = True
    """Whether it has a port; one that only polls has none."""
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
        where = f"{port}, POST {self.path}" if self.listens else "polls"
        return f"http: {Program(self.command, self.folder)} ({where})"

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

    def open(self, talk: Talk | str) -> HttpConversation:
        """Start the server for one trial and wait until it can be talked to.

        Parameters
        ----------
        talk
            What the conversation is known by, or its id.

        Raises
        ------
        AgentError
            If it cannot be started, or its port is somebody else's.
        AgentFault
            If it ends, or does not listen in time.
        """
        if self.url is not None:
            address = _address_of(self.url)
            return HttpConversation(address, talk, timeout_s=self.timeout_s)
        host = self._started()
        return HttpConversation(host.address, talk, host=host, timeout_s=self.timeout_s)

    def _started(self) -> Host:
        program = Program(self.command, self.folder)
        if not self.listens:
            return Background(program)
        return Server(program, port=self.port, path=self.path, ready_s=self.ready_s)

    def __call__(self) -> HttpConversation:
        """Start the server for one trial, under an id of its own.

        At a URL the id is unique in the world: that server remembers other runs.
        """
        if self.url is None:
            return self.open(next_talk())
        import uuid

        return self.open(next_talk(lambda: str(uuid.uuid4())))


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


class HttpConversation(Hosted, Killable):
    """One trial's conversation with a server.

    Parameters
    ----------
    address
        Where turns are posted; ``None`` for an agent that only polls.
    talk
        What it is known by, or its id; the same for all turns.
    host
        What the agent runs in; ``None`` for one that runs already.
    timeout_s
        Seconds without a byte of an answer.
    """

    def __init__(
        self,
        address: Address | None,
        talk: Talk | str,
        *,
        host: Host | None = None,
        timeout_s: float,
    ) -> None:
        self._address = address
        self.conversation_id, self._n_turns = (talk, 0) if isinstance(talk, str) else talk
        self._host = host
        self._caller = None if address is None else Caller(address, host, timeout_s=timeout_s)
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
            If nothing listens at its URL, or it has no port.
        """
        self._n_turns += 1
        turn = Observations(text)
        said = turn_message(text, turn=self._n_turns, conversation_id=self.conversation_id)
        answer = self._posted(json.dumps(said).encode("ascii"))
        shown = f"status {answer.status}, {answer.content_type}"
        where = f"the agent's answer to turn {self._n_turns} ({shown})"
        try:
            self._take(answer.data, turn, where=where)
        except AgentFault as fault:
            fault.trace = self._trace(turn)
            raise
        return self._trace(turn)

    def deliver(self, request: Request, *, turn: int) -> Answer:
        """Send a request of any shape; whatever the status of the answer."""
        return self._calls().ask(request, when=f"in turn {turn}")

    def check(self, *, turn: int) -> None:
        """Raise how the agent ended, if it did."""
        if self._host is not None and self._host.has_ended():
            fault = self._host.end(f"in turn {turn}")
            if fault is not None:
                raise fault

    @property
    def tells_state(self) -> bool:
        """Whether the agent told its state with its last reply."""
        return self._state is not None

    def state(self) -> dict[str, JSON] | None:
        """Give the state that the agent told with its last reply, if any."""
        return self._state

    def close(self) -> None:
        """End the server, if it is the trial's own; once or more often."""
        if self._host is not None:
            self._host.stop()

    def kill(self) -> None:
        """End the server without a word, if it is the trial's own."""
        if self._host is not None:
            self._host.kill()

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

    def _calls(self) -> Caller:
        if self._caller is None:
            raise AgentError(
                "agent: it has no port, so it can neither be called nor be sent a request; add "
                "`port`, or `deliver` with the address that it polls"
            )
        return self._caller

    def _posted(self, body: bytes) -> Answer:
        """Post a turn in the way of the protocol."""
        caller = self._calls()
        assert self._address is not None
        request = Request("POST", self._address.path, _headers(), body)
        answer = caller.ask(request, when=f"in turn {self._n_turns}")
        if not answer.is_success:
            raise AgentFault(
                "agent_raised" if answer.status >= 500 else "bad_reply",
                f"the agent answered turn {self._n_turns} with {status_text(answer)}",
            )
        return answer


def _headers() -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Evalkit-Protocol": str(PROTOCOL),
    }


def status_text(answer: Answer) -> str:
    """Quote an answer that is no success, for a message."""
    where = f" to {answer.place!r}, which is not followed" if answer.place else ""
    return f"status {answer.status} {answer.reason}{where}: {excerpt(answer.data)}"
