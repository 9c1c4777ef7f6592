"""Maximum matching in a bipartite graph whose edges are bits of integers.

Rows want columns; a row's edges are one integer whose bit ``c`` says that the
row may have column ``c``. Adjacency as bits makes one search step one ``&``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property


def bits(mask: int) -> Iterator[int]:
    """Give the positions of the bits that are set, lowest first.

    Examples
    --------
    >>> list(bits(0b1010))
    [1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True)
class Graph:
    """Edges from rows to columns, both ways round."""

    rows: Sequence[int]
    n_columns: int

    @cached_property
    def columns(self) -> list[int]:
        """For each column the rows that may have it, as bits."""
        columns = [0] * self.n_columns
        for row, mask in enumerate(self.rows):
            for column in bits(mask):
                columns[column] |= 1 << row
        return columns


def cover_rows(graph: Graph, wanted: Iterable[int] | None = None) -> dict[int, int]:
    """Give as many of the wanted rows as possible a column of their own.

    Parameters
    ----------
    graph
        The edges.
    wanted
        Rows to cover, in the order in which they choose; all by default.

    Returns
    -------
    dict
        Row -> column: a maximum matching of the wanted rows (augmenting paths).

    Examples
    --------
    >>> cover_rows(Graph([0b11, 0b01], n_columns=2))
    {0: 1, 1: 0}
    """
    pairs: dict[int, int] = {}
    owners: dict[int, int] = {}
    for row in range(len(graph.rows)) if wanted is None else wanted:
        _augment(row, edges=graph.rows, pairs=pairs, owners=owners)
    return pairs


def cover_columns(
    graph: Graph, pairs: dict[int, int], *, wanted: Iterable[int], droppable: int = 0
) -> dict[int, int]:
    """Cover more columns without uncovering any row.

    Parameters
    ----------
    graph
        The edges.
    pairs
        A matching, row -> column; not changed.
    wanted
        Columns to cover.
    droppable
        Bits of the columns that may lose their row to a wanted one.

    Returns
    -------
    dict
        A matching that covers the same rows (or more) and as many wanted columns
        as any matching can (Mendelsohn and Dulmage 1958).
    """
    owners = dict(pairs)
    held = {column: row for row, column in pairs.items()}
    for column in wanted:
        if column not in held:
            _augment(column, edges=graph.columns, pairs=held, owners=owners, droppable=droppable)
    return {row: column for column, row in held.items()}


def _augment(
    start: int,
    *,
    edges: Sequence[int],
    pairs: dict[int, int],
    owners: dict[int, int],
    droppable: int = 0,
) -> bool:
    """Give ``start`` a partner along a shortest alternating path, in place."""
    came_from: dict[int, int] = {}
    taken = sum(1 << right for right in owners)
    queue, seen, fallback = [start], 0, None
    for left in queue:
        if free := edges[left] & ~taken:
            right = next(bits(free))
            came_from[right] = left
            _flip(right, came_from, pairs=pairs, owners=owners)
            return True
        fresh = edges[left] & ~seen
        seen |= fresh
        for right in bits(fresh):
            came_from[right] = left
            queue.append(owners[right])
            if fallback is None and droppable >> owners[right] & 1:
                fallback = right
    if fallback is None:
        return False
    del pairs[owners[fallback]]
    _flip(fallback, came_from, pairs=pairs, owners=owners)
    return True


def _flip(
    right: int, came_from: dict[int, int], *, pairs: dict[int, int], owners: dict[int, int]
) -> None:
    """Swap matched and unmatched edges from the end of a path back to its start."""
    while True:
        left = came_from[right]
        previous = pairs.get(left)
        pairs[left], owners[right] = right, left
        if previous is None:
            return
        right = previous
