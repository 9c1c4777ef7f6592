"""Ids, ``after`` and ``$ref`` among the expected calls of one list: what cannot be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol

from evalkit.suite.fields import KeyPath, suggestion


class Call(Protocol):
    """What an expected call has that matters here."""

    @property
    def id(self) -> str | None:
        """Its id, for the others to name."""

    @property
    def after(self) -> Sequence[str]:
        """Ids of the calls that come before it."""

    @property
    def args(self) -> Mapping[str, Any]:
        """Patterns of its arguments."""


def order_problems(calls: Sequence[Call]) -> Iterator[tuple[KeyPath, str]]:
    """Find ids given twice, and ``after`` and ``$ref`` that name nothing or run in a circle."""
    yield from _repeated_ids(calls)
    ids = {call.id for call in calls if call.id}
    for index, call in enumerate(calls):
        for position, wanted in enumerate(call.after):
            if wanted not in ids:
                yield (index, "after", position), _unknown(wanted, ids)
        for path, wanted in references(call.args):
            if wanted not in ids:
                yield (index, "args", *path), _unknown(wanted, ids)
    yield from _circles(calls)


def _repeated_ids(calls: Sequence[Call]) -> Iterator[tuple[KeyPath, str]]:
    counts = Counter(call.id for call in calls if call.id)
    for index, call in enumerate(calls):
        if call.id and counts[call.id] > 1:
            yield (
                (index, "id"),
                f"`{call.id}` is the id of {counts[call.id]} calls: keep one",
            )


def _unknown(wanted: str, ids: set[str]) -> str:
    if not ids:
        return f"no expected call has the id `{wanted}`: give that call an `id`"
    hint = suggestion(wanted, ids) or f" There is {', '.join(f'`{i}`' for i in sorted(ids))}."
    return f"no expected call has the id `{wanted}`.{hint}"


def references(pattern: Any) -> Iterator[tuple[KeyPath, str]]:
    """Walk a pattern and give each ``$ref`` with the id of the call that it names."""
    if isinstance(pattern, dict):
        steps: Iterable[tuple[str | int, Any]] = pattern.items()
    elif isinstance(pattern, list | tuple):
        steps = enumerate(pattern)
    else:
        return
    for step, value in steps:
        wanted = _referred(value) if step == "$ref" else None
        if wanted is not None:
            yield (step,), wanted
        yield from (((step, *path), name) for path, name in references(value))


def _referred(reference: Any) -> str | None:
    """Read the call's id from either spelling of ``$ref``; the matcher refuses any other."""
    if isinstance(reference, str):
        return reference.partition(".result")[0]
    call = reference.get("call") if isinstance(reference, dict) else None
    return call if isinstance(call, str) else None


def _circles(calls: Sequence[Call]) -> Iterator[tuple[KeyPath, str]]:
    graph = {call.id: [name for name in call.after if name] for call in calls if call.id}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        index = next(i for i, call in enumerate(calls) if call.id == circle[0])
        yield (index, "after"), f"runs in a circle: {' after '.join(map(str, circle))}"
