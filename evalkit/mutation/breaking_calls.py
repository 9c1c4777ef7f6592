"""Operators on tool calls: dropped, repeated, swapped, failed, other tools, loops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from evalkit.graders.places import places_of
from evalkit.ledger import JSON, encode
from evalkit.matching import show
from evalkit.mutation.altering import (
    with_calls,
    with_changed_call,
    with_swapped_calls,
    without_calls,
)
from evalkit.mutation.expected import expectations_of, fits
from evalkit.mutation.records import Mutant, Subject
from evalkit.suite import CallExpect, ForbiddenCall
from evalkit.trace import ToolCall

_RETRIED = frozenset({"error", "timeout"})
ORDER_IS_FREE = "order is not asked for"


def written(call: ToolCall) -> str:
    """Write a call shortly, for a sentence."""
    return (
        f"{call.name} {'(arguments are no JSON)' if call.args is None else show(dict(call.args))}"
    )


def drop_call(subject: Subject) -> Iterator[Mutant]:
    """Leave out each call in turn."""
    for position, call in enumerate(subject.trace.tool_calls):
        trace = without_calls(subject.trace, [position])
        yield Mutant(f"without the call {written(call)}", trace, call.turn, position)


def repeat_call(subject: Subject) -> Iterator[Mutant]:
    """Make each call once more, right after itself."""
    for position, call in enumerate(subject.trace.tool_calls):
        yield Mutant(
            f"{written(call)} made once more",
            with_calls(subject.trace, position + 1, [call]),
            call.turn,
            position,
            excluded=_may_repeat(subject, call),
        )


def _may_repeat(subject: Subject, call: ToolCall) -> str:
    """Say why one may make a call again, where one may."""
    if call.status in _RETRIED:
        return "trying again what failed is no mistake"
    for expect in subject.trial.scenario, *subject.trial.scenario.turns:
        path = expect.expect.path if expect.expect else None
        if path and call.name in path.poll:
            return f"the suite lets {call.name} be polled"
    alike = sum(_look(call) == _look(other) for other in subject.trace.tool_calls)
    wanted = (one for one in expectations_of(subject, call.turn) if fits(one, call))
    if any(_allows_more(one, alike) for one in wanted):
        return f"the suite expects further calls of {call.name} (`times`)"
    return ""


def _allows_more(wanted: CallExpect, n: int) -> bool:
    return wanted.times is not None and (wanted.times.max is None or wanted.times.max > n)


def _look(call: ToolCall) -> bytes:
    return encode([call.name, call.args, call.status])


def swap_calls(subject: Subject) -> Iterator[Mutant]:
    """Let each two neighbouring calls of a turn change places."""
    calls = subject.trace.tool_calls
    for position, (one, other) in enumerate(itertools.pairwise(calls)):
        if one.turn == other.turn:
            yield Mutant(
                f"{written(other)} before {written(one)}",
                with_swapped_calls(subject.trace, position, position + 1),
                one.turn,
                position,
                excluded=_unordered(one, other),
                remark=ORDER_IS_FREE,
            )


def _unordered(one: ToolCall, other: ToolCall) -> str:
    """Say why two calls have no order, where they have none."""
    if _look(one) == _look(other):
        return "the two calls are equal"
    if one.asked_by is not None and one.asked_by == other.asked_by:
        return "the model asked for both at once"
    return ""


def fail_call(subject: Subject) -> Iterator[Mutant]:
    """Let each call fail, while the reply stays as it is."""
    for position, call in enumerate(subject.trace.tool_calls):
        if call.status in ("ok", "unknown"):
            failed = {"status": "error", "result": "the tool failed"}
            trace = with_changed_call(subject.trace, position, **failed)
            what = f"{written(call)} failed, and the reply says what it said"
            yield Mutant(what, trace, call.turn, position)


def claim_without_calls(subject: Subject) -> Iterator[Mutant]:
    """Leave out all calls of a turn, while the reply stays as it is."""
    for turn, said in enumerate(subject.trace.turns):
        positions = _positions(subject, turn)
        if len(positions) > 1 and any(said.replies):
            trace = without_calls(subject.trace, positions)
            what = f"none of {len(positions)} calls made, and the reply says what it said"
            yield Mutant(what, trace, turn)


def _positions(subject: Subject, turn: int) -> list[int]:
    calls = enumerate(subject.trace.tool_calls)
    return [position for position, call in calls if call.turn == turn]


def loop_calls(subject: Subject) -> Iterator[Mutant]:
    """Make the last two different calls of a turn once more: A-B-A-B."""
    calls = subject.trace.tool_calls
    for turn in range(len(subject.trace.turns)):
        positions = _positions(subject, turn)
        pairs = [
            pair
            for pair in itertools.pairwise(positions)
            if _look(calls[pair[0]]) != _look(calls[pair[1]])
        ]
        if pairs:
            first, second = pairs[-1]
            again = [calls[first], calls[second]]
            what = f"{again[0].name}, {again[1].name} — two times round"
            trace = with_calls(subject.trace, second + 1, again)
            yield Mutant(what, trace, turn, second, excluded=_all_failed(*again))


def _all_failed(*calls: ToolCall) -> str:
    all_failed = all(call.status in _RETRIED for call in calls)
    return "trying again what failed is no mistake" if all_failed else ""


def call_forbidden_tool(subject: Subject) -> Iterator[Mutant]:
    """Call each tool that the suite forbids."""
    for place in places_of(subject.trial.scenario):
        for banned in place.forbid.tools if place.forbid else ():
            call = ToolCall(banned.tool, _banned_args(subject, banned))
            yield _added(subject, call, turn=place.turn, how="forbidden")


def _banned_args(subject: Subject, banned: ForbiddenCall) -> dict[str, JSON]:
    """Give the arguments that are forbidden, or where only a pattern is, any."""
    usual = subject.tools.arguments(banned.tool)
    literal = not any(_is_pattern(value) for value in banned.args.values())
    return {**usual, **banned.args} if literal else usual


def _is_pattern(value: JSON) -> bool:
    if isinstance(value, Mapping):
        return any(str(k).startswith("$") or _is_pattern(item) for k, item in value.items())
    return isinstance(value, list | tuple) and any(map(_is_pattern, value))


def _added(subject: Subject, call: ToolCall, *, turn: int | None, how: str) -> Mutant:
    """Make a further call at the end of a turn."""
    at = max(len(subject.trace.turns) - 1, 0) if turn is None else turn
    before = [n for n, made in enumerate(subject.trace.tool_calls) if made.turn <= at]
    call = replace(call, turn=at)
    trace = with_calls(subject.trace, max(before, default=-1) + 1, [call])
    return Mutant(f"{how} call {written(call)}", trace, at, argument=call.name)


def call_unexpected_tool(subject: Subject) -> Iterator[Mutant]:
    """Call each tool of the agent that a turn neither uses nor names."""
    if not subject.trace.tools_observed:
        return
    for turn in range(len(subject.trace.turns)):
        for name in other_tools(subject, turn):
            call = ToolCall(name, subject.tools.arguments(name))
            mutant = _added(subject, call, turn=turn, how="unexpected")
            yield replace(mutant, excluded=allowed(subject, name, turn=turn))


def other_tools(subject: Subject, turn: int) -> list[str]:
    """Name the tools of the agent that a turn neither uses nor names."""
    known = {call.name for call in subject.trace.tool_calls if call.turn == turn}
    known |= {wanted.tool for wanted in expectations_of(subject, turn)}
    known |= set(_banned(subject, turn))
    return [name for name in subject.tools.names if name not in known]


def _banned(subject: Subject, turn: int) -> Iterator[str]:
    for place in places_of(subject.trial.scenario):
        if place.turn in (None, turn) and place.forbid:
            yield from (banned.tool for banned in place.forbid.tools)


def allowed(subject: Subject, name: str, *, turn: int) -> str:
    """Say that a suite allows a tool besides those expected, where it does."""
    for place in places_of(subject.trial.scenario):
        tools = place.expect.tools if place.expect and place.turn in (None, turn) else None
        if tools and isinstance(tools.extra_calls, tuple) and name in tools.extra_calls:
            return f"the suite allows {name} besides"
    return ""
