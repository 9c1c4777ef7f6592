"""Calls that ran, joined with the calls that the model asked for.

A tool's span may hold neither arguments nor result, because instrumentations keep
content to themselves; then those of the call that it answers stand in for them. Which
one that is is told by the call's id, else by its arguments, else by the tool's name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import TypeVar

from evalkit.trace import ToolCall

_Key = TypeVar("_Key", bound=Hashable)


def joined(
    ran: Mapping[_Key, ToolCall], asked: Mapping[_Key, ToolCall]
) -> dict[_Key, tuple[ToolCall, _Key | None]]:
    """Complete what ran from what was asked for.

    Parameters
    ----------
    ran, asked
        Calls by any key, in their order.

    Returns
    -------
    dict
        For each key of ``ran``, the call and the key of the one that it answers;
        ``None`` where nobody asked for it.

    Examples
    --------
    >>> ran = {"r": ToolCall("book", {}, untold=("args", "result"))}
    >>> asked = {"a": ToolCall("book", {"flight_id": "AA123"}, result="booked")}
    >>> call, key = joined(ran, asked)["r"]
    >>> call.args, call.result, key
    ({'flight_id': 'AA123'}, 'booked', 'a')
    """
    answers: dict[_Key, _Key] = {}
    free = _by_name(asked)
    for fits in (_same_id, _same_arguments, _may_be_same):
        for key, call in ran.items():
            if key not in answers:
                _answer(key, call, answers, asked=free.get(call.name, {}), fits=fits)
    return {
        key: (_completed(call, asked[answers[key]]), answers[key])
        if key in answers
        else (call, None)
        for key, call in ran.items()
    }


def _by_name(calls: Mapping[_Key, ToolCall]) -> dict[str, dict[_Key, ToolCall]]:
    found: dict[str, dict[_Key, ToolCall]] = {}
    for key, call in calls.items():
        found.setdefault(call.name, {})[key] = call
    return found


def _answer(
    key: _Key,
    call: ToolCall,
    answers: dict[_Key, _Key],
    *,
    asked: dict[_Key, ToolCall],
    fits: Callable[[ToolCall, ToolCall], bool],
) -> None:
    """Take the first call that fits, if one does."""
    found = next((one for one, other in asked.items() if fits(other, call)), None)
    if found is not None:
        answers[key] = found
        del asked[found]


def _same_id(asked: ToolCall, ran: ToolCall) -> bool:
    return bool(ran.id) and asked.id == ran.id


def _same_arguments(asked: ToolCall, ran: ToolCall) -> bool:
    return "args" not in ran.untold and asked.args == ran.args and asked.turn <= ran.turn


def _may_be_same(asked: ToolCall, ran: ToolCall) -> bool:
    # Two ids that differ are two calls; of a call without arguments any may be the one.
    return "args" in ran.untold and asked.turn <= ran.turn and not (asked.id and ran.id)


def _completed(ran: ToolCall, asked: ToolCall) -> ToolCall:
    args = asked.args if "args" in ran.untold else ran.args
    result = asked.result if "result" in ran.untold and ran.status == "ok" else ran.result
    return replace(ran, args=args, result=result, id=ran.id or asked.id)
