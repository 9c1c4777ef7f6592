"""From an answer of the model to what goes back over the connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from evalkit.gateway.canonical import ModelAnswer, ModelRequest, Stamp, Tokens
from evalkit.gateway.frames import Frame
from evalkit.ledger import JSON
from evalkit.serving.delivery import Delivery, Ending
from evalkit.serving.jsontext import to_bytes

NO_RETRY: Final[Mapping[str, str]] = MappingProxyType({"x-should-retry": "false"})
SOON: Final[Mapping[str, str]] = MappingProxyType({"retry-after-ms": "1"})


class Wire(Protocol):
    """A wire format: a module that translates to and from the canonical records."""

    @property
    def name(self) -> str:
        """How the format is called in a ledger."""

    @property
    def tool_prefix(self) -> str:
        """What the ids of its tool uses begin with."""

    @property
    def request_header(self) -> str:
        """Header that carries the id of a request; empty if none does."""

    @property
    def overloaded_status(self) -> int:
        """HTTP status of an overloaded provider."""

    @property
    def carries_cut_args(self) -> bool:
        """Whether a tool's arguments can reach the agent cut off, as text that is no JSON."""

    def read(self, body: Mapping[str, JSON]) -> ModelRequest:
        """Read the body of a request."""

    def whole(self, answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> dict[str, JSON]:
        """Write an answer as one body."""

    def frames(self, answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> Iterator[Frame]:
        """Write an answer as a stream."""

    def error(self, status: int, message: str, stamp: Stamp) -> dict[str, JSON]:
        """Write an error as a body."""

    def finish_reason(self, answer: ModelAnswer) -> str:
        """Say why the model stopped, in the format's words."""

    def usage(self, tokens: Tokens) -> dict[str, int]:
        """Count as the provider counts, under the names of a trace."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that is being answered."""

    wire: Wire
    request: ModelRequest
    stamp: Stamp

    @property
    def call(self) -> int:
        """Number of the model call, from 0."""
        return self.stamp.number - 1

    def deliver(self, answer: ModelAnswer) -> Delivery:
        """Write a whole answer, in the way the request asks for."""
        if self.request.stream:
            return self._sent(frames=tuple(frame.encode() for frame in self.frames(answer)))
        return self._sent(body=self.body(answer))

    def body(self, answer: ModelAnswer) -> bytes:
        """Write an answer as one body."""
        return to_bytes(self.wire.whole(answer, self.request, self.stamp))

    def frames(self, answer: ModelAnswer) -> list[Frame]:
        """Write an answer as a stream."""
        return list(self.wire.frames(answer, self.request, self.stamp))

    def broken(
        self,
        *,
        body: bytes = b"",
        frames: tuple[bytes, ...] | None = None,
        ending: Ending = "whole",
    ) -> Delivery:
        """Give bytes that are no proper answer the headers of one."""
        return self._sent(body=body, frames=frames, ending=ending)

    def refuse(
        self, status: int, message: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Delivery:
        """Write an error."""
        body = to_bytes(self.wire.error(status, message, self.stamp))
        return Delivery(status, {**self._headers("application/json"), **headers}, body)

    def _sent(
        self,
        *,
        body: bytes = b"",
        frames: tuple[bytes, ...] | None = None,
        ending: Ending = "whole",
    ) -> Delivery:
        is_events = frames is not None and self.request.framing == "sse"
        kind = "text/event-stream; charset=utf-8" if is_events else "application/json"
        return Delivery(200, self._headers(kind), body, frames, ending)

    def _headers(self, kind: str) -> dict[str, str]:
        header = self.wire.request_header
        told = {header: self.stamp.id("req")} if header else {}
        return {"content-type": kind, **told}
