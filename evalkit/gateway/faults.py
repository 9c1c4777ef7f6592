"""What can go wrong with an answer, written once for every wire format.

===================== =====================================================
rate_limited          429, to be tried again at once
overloaded            529 or 503, to be tried again at once
server_error          500, to be tried again at once
malformed_json        a body, or the last piece of a stream, that is half of its JSON
truncated_stream      the connection breaks in the middle of the answer
clean_early_end       the answer stops in the middle as if that were its end
truncated_tool_json   a whole answer whose tool arguments are half of their JSON
disconnect            the connection breaks before any answer
timeout               no answer, until the client gives up
wrong_tool            the model asks for a tool that the agent does not have
===================== =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evalkit.gateway.answers import content_of_fault, cut, cut_tool
from evalkit.gateway.canonical import ModelAnswer, ModelRequest
from evalkit.gateway.delivery import SOON, Exchange
from evalkit.serving.delivery import Delivery, Ending
from evalkit.trace import CallStatus

_STATUSES: Final[Mapping[str, tuple[int | None, str]]] = {
    "rate_limited": (429, "Rate limit reached (injected by the scenario's script)."),
    "overloaded": (None, "Overloaded (injected by the scenario's script)."),
    "server_error": (500, "Internal server error (injected by the scenario's script)."),
}
"""HTTP status (``None``: the provider's own for an overload) and message."""


_NO_TOOL: Final = "no_such_tool"


@dataclass(frozen=True, slots=True)
class Spoiled:
    """What a fault makes of a step."""

    answer: ModelAnswer | None
    """What of an answer reaches the agent; ``None`` if nothing does."""
    asks: bool
    """Whether the agent is asked for the answer's tools: not by half an answer."""
    status: CallStatus
    http_status: int | None
    deliver: Callable[[Exchange, ModelAnswer], Delivery]
    """Writes it; the answer has ids and counts by then."""


def spoil(step: Mapping[str, Any], request: ModelRequest, *, overloaded: int) -> Spoiled:
    """Prepare the fault of a step.

    Parameters
    ----------
    step
        ``{fault, text, tool, args}``.
    request
        What is answered.
    overloaded
        HTTP status with which the provider says that it is overloaded.

    Raises
    ------
    KeyError
        If there is no such fault; a script is checked when it is built.
    """
    name = step["fault"]
    if name in _STATUSES:
        status, message = _STATUSES[name]
        return _refused(status or overloaded, message)
    if name in _SILENT:
        return _silent(*_SILENT[name])
    content = content_of_fault(step, default_tool=_default_tool(name, request))
    return _CONTENT[name](content, request)


def _default_tool(fault: str, request: ModelRequest) -> str:
    """Name the tool that a fault is about where its step names none."""
    if fault == "wrong_tool":
        return _NO_TOOL
    if fault == "truncated_tool_json":
        return request.tools[0].name if request.tools else _NO_TOOL
    return ""


def _refused(status: int, message: str) -> Spoiled:
    def deliver(exchange: Exchange, _: ModelAnswer) -> Delivery:
        return exchange.refuse(status, message, SOON)

    return Spoiled(None, False, "error", status, deliver)


def _silent(ending: Ending, status: CallStatus) -> Spoiled:
    def deliver(*_: object) -> Delivery:
        return Delivery(0, ending=ending)

    return Spoiled(None, False, status, None, deliver)


def _malformed(content: ModelAnswer, request: ModelRequest) -> Spoiled:
    def deliver(exchange: Exchange, answer: ModelAnswer) -> Delivery:
        if not request.stream:
            return exchange.broken(body=_half(exchange.body(answer)))
        *sent, last = _up_to_last_delta(exchange, answer)
        return exchange.broken(frames=(*sent, _half(last) + b"\n\n"))

    return Spoiled(cut(content), False, "error", 200, deliver)


def _early(content: ModelAnswer, request: ModelRequest, *, ending: Ending) -> Spoiled:
    def deliver(exchange: Exchange, answer: ModelAnswer) -> Delivery:
        if request.stream:
            return exchange.broken(frames=_up_to_last_delta(exchange, answer), ending=ending)
        return exchange.broken(body=_half(exchange.body(answer)), ending=ending)

    return Spoiled(cut(content), False, "error", 200, deliver)


def _truncated(content: ModelAnswer, request: ModelRequest) -> Spoiled:
    return _early(content, request, ending="abrupt")


def _ended_early(content: ModelAnswer, request: ModelRequest) -> Spoiled:
    return _early(content, request, ending="clean")


def _cut_arguments(content: ModelAnswer, _: ModelRequest) -> Spoiled:
    return Spoiled(cut_tool(content), True, "ok", 200, Exchange.deliver)


def _wrong_tool(content: ModelAnswer, _: ModelRequest) -> Spoiled:
    return Spoiled(content, True, "ok", 200, Exchange.deliver)


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _up_to_last_delta(exchange: Exchange, answer: ModelAnswer) -> tuple[bytes, ...]:
    """Write a stream down, and leave out what comes after its content."""
    frames = exchange.frames(answer)
    last = max(number for number, frame in enumerate(frames) if frame.is_delta)
    return tuple(frame.encode() for frame in frames[: last + 1])


_SILENT: Final[Mapping[str, tuple[Ending, CallStatus]]] = {
    "disconnect": ("abrupt", "error"),
    "timeout": ("hang", "timeout"),
}
_CONTENT: Final[Mapping[str, Callable[[ModelAnswer, ModelRequest], Spoiled]]] = {
    "malformed_json": _malformed,
    "truncated_stream": _truncated,
    "clean_early_end": _ended_early,
    "truncated_tool_json": _cut_arguments,
    "wrong_tool": _wrong_tool,
}
FAULTS: Final = (*_STATUSES, *_SILENT, *_CONTENT)
"""Every fault by name."""
