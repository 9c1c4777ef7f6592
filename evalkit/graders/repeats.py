"""Repeated tool calls: which calls are the same, which repeats are too many, and cycles.

Two calls are the same if they have the same name and equal arguments, compared
by JSON's types (``1`` is ``1.0``; ``true`` is not ``1``). A **duplicate** is a
call that was made before and did not fail then (``error``, ``timeout``): trying
again what failed is sane, asking again for what one was given or denied is not.
Patience ends at :data:`MAX_ATTEMPTS` attempts that all fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from evalkit.matching import equal
from evalkit.matching.values import is_list, is_number
from evalkit.trace import ToolCall

MAX_ATTEMPTS: Final = 5
"""Attempts at the same failing call; more are looping. Retry policies of the
usual clients (urllib3, botocore, the model SDKs) give up after 3 to 5."""

_RETRIED: Final = frozenset({"error", "timeout"})
_LONGEST_PERIOD: Final = 8


def same_calls(calls: Sequence[ToolCall]) -> list[list[int]]:
    """Group the positions of equal calls, in order of first appearance.

    Examples
    --------
    >>> same_calls([ToolCall("a", {"n": 1}), ToolCall("b"), ToolCall("a", {"n": 1.0})])
    [[0, 2], [1]]
    """
    groups: list[list[int]] = []
    by_look: dict[Hashable, list[list[int]]] = {}
    for index, call in enumerate(calls):
        alike = by_look.setdefault(_look(call), [])
        known = next((group for group in alike if _same(calls[group[0]], call)), None)
        if known is None:
            known = []
            alike.append(known)
            groups.append(known)
        known.append(index)
    return groups


def _same(one: ToolCall, other: ToolCall) -> bool:
    if one.args is None or other.args is None:
        return one.args is other.args and one.raw_args == other.raw_args
    return one.name == other.name and equal(one.args, other.args)


def _look(call: ToolCall) -> Hashable:
    """Give what equal calls share and can be hashed, so that few pairs are compared."""
    if call.args is None:
        return call.name, call.raw_args
    return call.name, frozenset((key, _outline(value)) for key, value in call.args.items())


def _outline(value: Any) -> Hashable:
    if value is None or isinstance(value, bool | str):
        return type(value).__name__, value
    if is_number(value):
        return "number", "nan" if math.isnan(value) else value
    if is_list(value) or isinstance(value, Mapping):
        return "list" if is_list(value) else "object", len(value)
    return type(value).__name__


class Repeats(NamedTuple):
    """What the calls of one stretch repeat."""

    duplicates: tuple[int, ...]
    """Positions of calls that should not have been made again."""
    stubborn: tuple[tuple[int, ...], ...]
    """Positions of each call that failed more often than patience allows."""


def find_repeats(
    calls: Sequence[ToolCall],
    *,
    may_repeat: Callable[[ToolCall], bool] = lambda _: False,
    n_wanted: Callable[[ToolCall], int] = lambda _: 1,
) -> Repeats:
    """Find the repeats that are too many.

    Parameters
    ----------
    calls
        In the order made.
    may_repeat
        Whether a call's tool may be called again freely.
    n_wanted
        How many calls equal to this one the suite expects.

    Examples
    --------
    >>> find_repeats([ToolCall("a"), ToolCall("b"), ToolCall("a")]).duplicates
    (2,)
    """
    duplicates: list[int] = []
    stubborn: list[tuple[int, ...]] = []
    for group in same_calls(calls):
        first = calls[group[0]]
        if len(group) == 1 or may_repeat(first):
            continue
        extra = _beyond(calls, group, n_free=1)
        if extra:
            extra = _beyond(calls, group, n_free=max(1, n_wanted(first)))
        duplicates += extra
        failing = _all_failing(calls, group)
        if len(failing) > MAX_ATTEMPTS:
            stubborn.append(failing)
    return Repeats(tuple(sorted(duplicates)), tuple(stubborn))


def _beyond(calls: Sequence[ToolCall], group: Iterable[int], *, n_free: int) -> list[int]:
    """List the calls that came after enough equal ones had not failed."""
    beyond, n_answered = [], 0
    for index in group:
        if n_answered >= n_free:
            beyond.append(index)
        n_answered += calls[index].status not in _RETRIED
    return beyond


def _all_failing(calls: Sequence[ToolCall], group: Iterable[int]) -> tuple[int, ...]:
    """Give the attempts before the first that did not fail."""
    failing = []
    for index in group:
        if calls[index].status not in _RETRIED:
            break
        failing.append(index)
    return tuple(failing)


class Cycle(NamedTuple):
    """The same sequence of different calls, several times in a row."""

    start: int
    period: int
    rounds: int

    @property
    def positions(self) -> range:
        """Positions of all its calls."""
        return range(self.start, self.start + self.period * self.rounds)


def find_cycle(items: Sequence[Hashable], *, min_rounds: int) -> Cycle | None:
    """Find the cycle of two to eight items that covers most of a sequence.

    Examples
    --------
    >>> find_cycle("xababab", min_rounds=2)
    Cycle(start=1, period=2, rounds=3)
    >>> find_cycle("aaaa", min_rounds=2)
    """
    cycles = [
        cycle
        for period in range(2, _LONGEST_PERIOD + 1)
        for cycle in _cycles(items, period)
        if cycle.rounds >= min_rounds
    ]
    return max(cycles, key=lambda cycle: len(cycle.positions), default=None)


def _cycles(items: Sequence[Hashable], period: int) -> Iterator[Cycle]:
    """Give each longest stretch in which every item equals the one a period before."""
    start = 0
    for index in range(period, len(items) + 1):
        if index < len(items) and items[index] == items[index - period]:
            continue
        rounds = (index - start) // period
        if rounds > 1 and len(set(items[start : start + period])) > 1:
            yield Cycle(start, period, rounds)
        start = index - period + 1
