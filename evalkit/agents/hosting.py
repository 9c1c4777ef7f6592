"""What an agent that serves is to the one who talks to it: requests, answers, signs of life.

The bytes are :mod:`evalkit.agents.requesting`'s; what runs is a program
(:mod:`evalkit.agents.server`) or a function (:mod:`evalkit.agents.served`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from evalkit.agents.protocol import AgentFault


class Address(NamedTuple):
    """Where a server is reached."""

    host: str
    port: int
    path: str
    is_tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = self.path.partition("?")[0]  # a query may hold a key
        return f"http{'s' if self.is_tls else ''}://{host}:{self.port}{shown}"


class Host(Protocol):
    """What an agent runs in."""

    @property
    def address(self) -> Address | None:
        """Where it listens; ``None`` if it only polls."""

    def has_ended(self) -> bool:
        """Say whether nothing of it runs any more."""

    def end(self, when: str) -> AgentFault | None:
        """Say how it ended, if it did."""

    def stop(self) -> None:
        """End it; once or more often."""

    def kill(self) -> None:
        """End it as a crash would."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to an agent."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Answer(NamedTuple):
    """What an agent answered."""

    status: int
    reason: str
    """The words beside the status."""
    content_type: str
    place: str | None
    """Where a redirect leads, which is not followed."""
    data: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is one from 200 to 299."""
        return 200 <= self.status < 300


class Killable(ABC):
    """A conversation with an agent that can be ended without a word."""

    @abstractmethod
    def kill(self) -> None:
        """End the agent as a crash would; what it wrote to its log by then is passed on."""


class Hosted(ABC):
    """A conversation with an agent to which requests of any shape can be delivered."""

    @abstractmethod
    def deliver(self, request: Request, *, turn: int) -> Answer:
        """Send a request to the agent's own port.

        Parameters
        ----------
        request
            As it is sent.
        turn
            Which turn it belongs to, from 1, for messages.

        Raises
        ------
        AgentFault
            If the agent ends or breaks off.
        AgentError
            If it has no port.
        """

    @abstractmethod
    def check(self, *, turn: int) -> None:
        """Look whether the agent still runs.

        Raises
        ------
        AgentFault
            If it ended.
        """
