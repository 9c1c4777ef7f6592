"""Rows of a query against the rows that are expected, each a list or a mapping by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from evalkit.ledger import JSON
from evalkit.matching import Difference, compile_pattern, show
from evalkit.matching.bipartite import Graph, cover_rows

_NAMED: Final = 3
"""Rows that a reason names."""
_SHOWN: Final = 120

_Row = Sequence[JSON]


def row_misses(
    wanted: Sequence[Any], rows: Sequence[_Row], *, columns: Sequence[str], order: str, n_rows: int
) -> list[str]:
    """Say what rows are not, each as the rest of a sentence; nothing if all is right.

    Parameters
    ----------
    wanted
        A pattern for each row.
    rows
        What there is.
    columns
        Their names.
    order
        ``exact``, or ``any``: then each row may match any pattern, one to one.
    n_rows
        How many rows there were, which may be more than were kept.

    Examples
    --------
    >>> row_misses([{"id": 1}], [[2]], columns=["id"], order="exact", n_rows=1)
    ['id: expected 1, got 2']
    """
    patterns = [_RowPattern.of(one, columns) for one in wanted]
    judge = _unordered if order == "any" else _ordered
    misses = list(judge(patterns, rows))
    if n_rows == len(wanted):
        return misses
    counted = f"gave {_counted(n_rows)}, expected {len(wanted)}"
    return [counted, *misses[:_NAMED]]


def _counted(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


class _RowPattern(NamedTuple):
    """What one row should be."""

    written: Any
    columns: Sequence[str]
    compiled: Any

    @classmethod
    def of(cls, written: Any, columns: Sequence[str]) -> _RowPattern:
        """Compile what a suite says of a row."""
        return cls(written, columns, compile_pattern(written))

    def differences(self, row: _Row) -> list[Difference]:
        """List where a row is otherwise, by column."""
        if isinstance(self.written, Mapping):
            value = dict(zip(self.columns, row, strict=True))
            return self.compiled.differences(value)  # type: ignore[no-any-return]
        if isinstance(self.written, Sequence) and len(self.written) == len(row):
            pairs = zip(self.columns, self.written, row, strict=True)
            return [
                difference
                for column, one, value in pairs
                for difference in compile_pattern(one).differences(value, path=column)
            ]
        return self.compiled.differences(list(row))  # type: ignore[no-any-return]

    def matches(self, row: _Row) -> bool:
        """Tell whether a row is as it should be."""
        by_column = isinstance(self.written, Mapping)
        value = dict(zip(self.columns, row, strict=True)) if by_column else list(row)
        return bool(self.compiled.matches(value))

    def __str__(self) -> str:
        return show(self.written, _SHOWN)


def _ordered(patterns: Sequence[_RowPattern], rows: Sequence[_Row]) -> Iterator[str]:
    several = len(patterns) > 1 or len(rows) > 1
    for number, (pattern, row) in enumerate(zip(patterns, rows, strict=False), start=1):
        if not pattern.matches(row):
            label = f"row {number}: " if several else ""
            yield f"{label}{_listed(pattern.differences(row))}"
    for number, pattern in enumerate(patterns[len(rows) :], start=len(rows) + 1):
        yield f"row {number} is missing: {pattern}"
    for number, row in enumerate(rows[len(patterns) :], start=len(patterns) + 1):
        yield f"row {number} was not expected: {show(list(row), _SHOWN)}"


def _unordered(patterns: Sequence[_RowPattern], rows: Sequence[_Row]) -> Iterator[str]:
    edges = [
        sum(1 << place for place, row in enumerate(rows) if pattern.matches(row))
        for pattern in patterns
    ]
    pairs = cover_rows(Graph(edges, n_columns=len(rows)))
    taken = set(pairs.values())
    free = [row for place, row in enumerate(rows) if place not in taken]
    for place, pattern in enumerate(patterns):
        if place not in pairs:
            yield f"no row matches {pattern}{_nearest(pattern, free)}"
    if len(free) > len(patterns) - len(pairs):
        for row in free[:_NAMED]:
            yield f"not expected: {show(list(row), _SHOWN)}"


def _nearest(pattern: _RowPattern, rows: Sequence[_Row]) -> str:
    """Name the row that lacks least."""
    if not rows:
        return ""
    differences = min((pattern.differences(row) for row in rows), key=len)
    return f"; nearest: {_listed(differences)}"


def _listed(differences: Sequence[Difference]) -> str:
    named = ", ".join(map(str, differences[:_NAMED]))
    return named if len(differences) <= _NAMED else f"{named} ..."
