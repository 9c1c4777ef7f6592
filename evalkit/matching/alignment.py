"""The best order-keeping assignment of places to calls, by dynamic programming."""

from __future__ import annotations

from collections.abc import Sequence


def align_in_order(
    rows: Sequence[int], *, n_required: Sequence[int], n_calls: int, must: int = 0
) -> dict[int, int]:
    """Give places their calls so that both stay in order.

    Parameters
    ----------
    rows
        For each place the calls that fit, as bits.
    n_required
        For each place 1 if it must be filled, 0 if it may stay empty.
    n_calls
        Number of calls.
    must
        Bits of the calls that have to be given to some place.

    Returns
    -------
    dict
        Place -> call. Of all order-keeping assignments one with the most required
        places filled less calls left over that must not be, then with the most
        places filled.

    Examples
    --------
    >>> align_in_order([0b001, 0b110], n_required=[1, 1], n_calls=3)
    {0: 0, 1: 1}
    """
    big = n_calls + len(rows) + 1
    skip_cost = [big * (must >> call & 1) for call in range(n_calls)]
    best = _tables(rows, [big * needed + 1 for needed in n_required], skip_cost=skip_cost)
    pairs: dict[int, int] = {}
    place = call = 0
    while place < len(rows) and call < n_calls:
        gain = big * n_required[place] + 1 + best[place + 1][call + 1]
        if rows[place] >> call & 1 and best[place][call] == gain:
            pairs[place] = call
            place, call = place + 1, call + 1
        elif best[place][call] == best[place + 1][call]:
            place += 1
        else:
            call += 1
    return pairs


def _tables(
    rows: Sequence[int], gains: Sequence[int], *, skip_cost: Sequence[int]
) -> list[list[int]]:
    """Fill ``best[place][call]``: what the places and calls from there on can earn."""
    n_calls = len(skip_cost)
    last = [0] * (n_calls + 1)
    for call in reversed(range(n_calls)):
        last[call] = last[call + 1] - skip_cost[call]
    best = [last]
    for row, gain in zip(reversed(rows), reversed(gains), strict=True):
        below, here = best[-1], [0] * (n_calls + 1)
        for call in reversed(range(n_calls)):
            value = max(below[call], here[call + 1] - skip_cost[call])
            if row >> call & 1:
                value = max(value, gain + below[call + 1])
            here[call] = value
        best.append(here)
    return best[::-1]
