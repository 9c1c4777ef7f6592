"""Telling a ledger what crosses the gateway; the keys are those that a trace is read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from evalkit.gateway.canonical import ToolUse
from evalkit.ledger import JSON, EventKind
from evalkit.trace import CallStatus


class Record(Protocol):
    """Takes one event, in order; :meth:`evalkit.recording.Recorder.event` is one."""

    def __call__(
        self,
        kind: EventKind,
        data: Mapping[str, JSON],
        *,
        span: str = "",
        real: Mapping[str, JSON] | None = None,
    ) -> None:
        """Write the event; ``real`` is what no digest covers."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Writes the events of model calls and tool calls, with their numbers from 0."""

    record: Record

    def model_call(self, call: int, data: Mapping[str, JSON]) -> None:
        """Write that a request has come."""
        self.record("model_call", {"call": call, **data}, span=_model_span(call))

    def model_reply(self, call: int, data: Mapping[str, JSON]) -> None:
        """Write what is answered."""
        self.record("model_reply", {"call": call, **data}, span=_model_span(call))

    def fault(self, name: str, reason: str, *, turn: int, call: int | None, injected: bool) -> None:
        """Write what goes wrong; what nobody injected is somebody's fault."""
        data = {"fault": name, "reason": reason, "turn": turn, "call": call, "injected": injected}
        self.record("fault", data, span="" if call is None else _model_span(call))

    def tool_call(self, call: int, use: ToolUse, *, turn: int, asked_by: int) -> None:
        """Write that an answer asks for a tool."""
        data = {"call": call, "turn": turn, "name": use.name, "id": use.id, "asked_by": asked_by}
        args = {"args": None, "raw_args": use.raw} if use.is_cut else {"args": dict(use.args)}
        self.record("tool_call", {**data, **args}, span=_tool_span(call))

    def tool_result(self, call: int, *, status: CallStatus, result: JSON) -> None:
        """Write that a request brings a tool's result."""
        data = {"call": call, "status": status, "result": result}
        self.record("tool_result", data, span=_tool_span(call))

    def side_request(self, path: str, body: JSON) -> None:
        """Write that something else than an answer was asked for, with all that was sent."""
        self.record("http", {"to": "model", "method": "POST", "path": path, "body": body})


def _model_span(call: int) -> str:
    return f"model:{call}"


def _tool_span(call: int) -> str:
    return f"tool:{call}"
