"""Traces with one thing changed: a call left out, a reply rewritten.

Where tools tell apart from the wire what ran, both sides are changed alike: a mutant
is an agent whose model asked otherwise, so that the suite's expectations are what
must notice, not a contradiction inside the trace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evalkit.ledger import encode
from evalkit.trace import ToolCall, Trace


def without_calls(trace: Trace, positions: Iterable[int]) -> Trace:
    """Leave out some calls, also where they were asked for, and their spans."""
    left_out = set(positions)
    twins = {_twin(trace, position) for position in left_out}
    gone = {trace.tool_calls[position].span_id for position in left_out} - {""}
    return replace(
        trace,
        tool_calls=_but(trace.tool_calls, left_out),
        asked_calls=_but(trace.asked_calls, twins),
        spans=tuple(span for span in trace.spans if span.id not in gone),
    )


def _but(calls: tuple[ToolCall, ...], left_out: Iterable[int | None]) -> tuple[ToolCall, ...]:
    return tuple(call for position, call in enumerate(calls) if position not in set(left_out))


def with_calls(trace: Trace, position: int, calls: Iterable[ToolCall]) -> Trace:
    """Make further calls before the call at ``position``, or after all."""
    added = tuple(replace(call, span_id="", id="") for call in calls)
    made, asked = trace.tool_calls, trace.asked_calls
    if asked or trace.watched_tools:
        twin = _twin(trace, position) if position < len(made) else None
        at = len(asked) if twin is None else twin
        asked = (*asked[:at], *added, *asked[at:])
    return replace(
        trace, tool_calls=(*made[:position], *added, *made[position:]), asked_calls=asked
    )


def with_changed_call(trace: Trace, position: int, **changes: Any) -> Trace:
    """Change fields of one call, also where it was asked for."""
    twin = _twin(trace, position)
    asked = trace.asked_calls
    return replace(
        trace,
        tool_calls=_changed(trace.tool_calls, position, **changes),
        asked_calls=asked if twin is None else _changed(asked, twin, **changes),
    )


def _changed(calls: tuple[ToolCall, ...], position: int, **changes: Any) -> tuple[ToolCall, ...]:
    new = replace(calls[position], **changes)
    return (*calls[:position], new, *calls[position + 1 :])


def with_swapped_calls(trace: Trace, one: int, other: int) -> Trace:
    """Let two calls change places; each answer of the model keeps its number."""
    twins = _twin(trace, one), _twin(trace, other)
    asked = trace.asked_calls
    if twins[0] is not None and twins[1] is not None:
        asked = _swapped(asked, twins[0], twins[1])
    return replace(trace, tool_calls=_swapped(trace.tool_calls, one, other), asked_calls=asked)


def _swapped(calls: tuple[ToolCall, ...], one: int, other: int) -> tuple[ToolCall, ...]:
    swapped = list(calls)
    swapped[one] = replace(calls[other], asked_by=calls[one].asked_by)
    swapped[other] = replace(calls[one], asked_by=calls[other].asked_by)
    return tuple(swapped)


def _twin(trace: Trace, position: int) -> int | None:
    """Find where a call that was made had been asked for."""
    look = _look(trace.tool_calls[position])
    n_before = sum(_look(call) == look for call in trace.tool_calls[:position])
    alike = [place for place, call in enumerate(trace.asked_calls) if _look(call) == look]
    return alike[n_before] if n_before < len(alike) else None


def _look(call: ToolCall) -> bytes:
    return encode([call.name, call.args, call.raw_args, call.turn])


def with_reply(trace: Trace, turn: int, text: str) -> Trace:
    """Let the last reply of a turn read otherwise."""
    said = trace.turns[turn]
    new = replace(said, replies=(*said.replies[:-1], text))
    return replace(trace, turns=(*trace.turns[:turn], new, *trace.turns[turn + 1 :]))
