"""The first event, the leaves, and the trials that differ; real times never count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeAlias

from evalkit.diffing.ordering import ABSENT, canonical
from evalkit.ledger import JSON, Event, encode
from evalkit.matching.nodes import join_path
from evalkit.results import Run

_Path: TypeAlias = tuple[str | int, ...]

_CONTEXT: Final = 2
"""Events shown before the first that differs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event that two ledgers do not share."""

    position: int
    """0-based, in the order that was compared."""
    first: Event | None
    """``None``: this ledger has ended."""
    second: Event | None
    path: str
    """The first key that differs, such as ``data.args.city``; empty where an event is missing."""
    values: tuple[JSON, JSON]
    """What stands there; :data:`ABSENT` where only the other side has the key."""
    context: tuple[Event, ...]
    """The events just before, which both have."""


class TrialDifference(NamedTuple):
    """A trial that two runs do not agree about."""

    scenario: str
    trial: int
    reason: str


def first_difference(
    first: Sequence[Event], second: Sequence[Event], *, in_canonical_order: bool = False
) -> Difference | None:
    """Find the first event that differs, real times apart.

    Parameters
    ----------
    first, second
        The ledgers of two trials.
    in_canonical_order
        Whether to compare them in :func:`canonical` order.

    Returns
    -------
    Difference or None
        ``None`` if there is none.

    Examples
    --------
    >>> before = [Event(1, "reply", {"turn": 0, "text": "Booked AA123."})]
    >>> after = [Event(1, "reply", {"turn": 0, "text": "Booked AA999."})]
    >>> first_difference(before, after).path
    'data.text'
    """
    if in_canonical_order:
        first, second = canonical(first), canonical(second)
    for position, (one, other) in enumerate(zip_longest(first, second)):
        path, values = _first_leaf(one, other)
        if values:
            context = tuple(first[max(0, position - _CONTEXT) : position])
            return Difference(position, one, other, path, values, context)
    return None


def leaves_that_differ(
    first: Sequence[Event], second: Sequence[Event], *, in_canonical_order: bool = False
) -> list[str]:
    """List every value that differs, real times apart; its length is the measure.

    Parameters
    ----------
    first, second
        The ledgers of two trials.
    in_canonical_order
        Whether to compare them in :func:`canonical` order.

    Returns
    -------
    list of str
        Paths such as ``[3].data.args.city``; a value that only one side has counts.

    Examples
    --------
    >>> before = [Event(1, "log", {"text": "a"})]
    >>> leaves_that_differ(before, [Event(1, "log", {"text": "b"}), Event(2, "log", {})])
    ['[0].data.text', '[1].data', '[1].kind', '[1].parent', '[1].seq', '[1].span']
    """
    if in_canonical_order:
        first, second = canonical(first), canonical(second)
    return [
        f"[{position}].{_shown(path)}"
        for position, pair in enumerate(zip_longest(first, second))
        for path, _ in _different_leaves(*pair)
    ]


def trials_that_differ(
    first: Run, second: Run, *, in_canonical_order: bool = False
) -> list[TrialDifference]:
    """List the planned trials of two runs whose digests are not equal, or that only one has.

    A trial that did not finish has no digest, so it is never equal to another.

    Parameters
    ----------
    first, second
        The runs.
    in_canonical_order
        Whether ledgers that are equal in :func:`canonical` order do not differ.
    """
    digests = [{(r.scenario, r.trial): r.digest for r in run.records} for run in (first, second)]
    found = []
    for key in dict.fromkeys([*digests[0], *digests[1]]):
        one, other = (each.get(key) for each in digests)
        reason = _why_different(one, other)
        is_same = reason == _UNEQUAL and in_canonical_order and _same(first, second, key)
        if reason and not is_same:
            found.append(TrialDifference(*key, reason))
    return found


_UNEQUAL: Final = "the digests differ"


def _why_different(one: str | None, other: str | None) -> str:
    """Say why two digests are not equal; ``None``: no such trial, empty: not finished."""
    match (one, other):
        case (None, _):
            return "only the second run has it"
        case (_, None):
            return "only the first run has it"
        case ("", ""):
            return "finished in neither run"
        case ("", _):
            return "not finished in the first run"
        case (_, ""):
            return "not finished in the second run"
    return "" if one == other else _UNEQUAL


def _same(first: Run, second: Run, key: tuple[str, int]) -> bool:
    one, other = first.ledger(*key), second.ledger(*key)
    return first_difference(one, other, in_canonical_order=True) is None


def _as_data(event: Event) -> dict[str, JSON]:
    """Give what the digest of an event covers."""
    named = ("seq", "kind", "data", "span", "parent")
    return {name: getattr(event, name) for name in named}


def _first_leaf(one: Event | None, other: Event | None) -> tuple[str, Any]:
    """Give the first difference of two events: path and values, or nothing."""
    if one is None or other is None:
        return "", tuple(ABSENT if each is None else _as_data(each) for each in (one, other))
    if encode(_as_data(one)) == encode(_as_data(other)):
        return "", ()
    path, values = min(_different_leaves(one, other), key=_rank)
    return _shown(path), values


def _rank(leaf: tuple[_Path, Any]) -> tuple[bool, bool, list[Any]]:
    """Name what says most: the kind, then the data; numbers and ids last."""
    path = leaf[0]
    places = [(0, step, "") if isinstance(step, int) else (1, 0, step) for step in path]
    return path[0] != "kind", path[0] != "data", places


def _different_leaves(
    one: Event | None, other: Event | None
) -> Iterator[tuple[_Path, tuple[JSON, JSON]]]:
    left, right = (dict(_event_leaves(event)) for event in (one, other))
    for path in dict.fromkeys([*left, *right]):
        values = left.get(path, ABSENT), right.get(path, ABSENT)
        if any(value is ABSENT for value in values) or encode(values[0]) != encode(values[1]):
            yield path, values


def _event_leaves(event: Event | None) -> Iterator[tuple[_Path, JSON]]:
    return iter(()) if event is None else _leaves(_as_data(event), ())


def _leaves(value: JSON, path: _Path) -> Iterator[tuple[_Path, JSON]]:
    """Give every scalar, and every empty list or mapping, with its path."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value, key=str):
            yield from _leaves(value[key], (*path, str(key)))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _shown(path: _Path) -> str:
    return reduce(join_path, path, "")
