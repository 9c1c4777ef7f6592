"""Deciding which call is given to which place.

Without ``after`` and ``$ref`` one maximum matching (order ``any``) or one
alignment (``in_order``, ``exact``) decides. With them the question is hard in
general, so the places that others depend on are pinned to calls by
backtracking, and a branch is cut off as soon as even the relaxed rest cannot
fill every required place. The number of steps has a cap that depends on the
sizes alone; what is not decided by then is *undecided* and never a match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evalkit.matching.alignment import align_in_order
from evalkit.matching.bipartite import Graph, bits, cover_columns, cover_rows
from evalkit.matching.problem import Masks, Pins, Problem

_WORK = 20_000_000
"""Cells (places x calls) that one search may look at: some seconds."""
_FEWEST, _MOST = 200, 5_000
"""Steps that are always allowed, and that are never exceeded."""
_TRIED = 16
"""Calls tried for a place when only the report of a failure is at stake."""


class Assignment(NamedTuple):
    """Which place has which call, and how far that gets."""

    score: int
    """Required places filled, less calls left over that must not be."""
    pairs: Mapping[int, int]
    """Place -> call."""
    masks: Masks
    undecided: bool = False
    """Whether the search was cut short, so that a better one may exist."""


def assign(problem: Problem) -> Assignment:
    """Find an assignment that satisfies everything, or else a good one to report.

    Returns
    -------
    Assignment
        Everything is satisfied exactly if its score is the number of required places.
    """
    found = _satisfy(problem)
    if found is not None and not found.undecided:
        return found
    return _best_effort(problem)._replace(undecided=found is not None)


def max_steps(problem: Problem) -> int:
    """Say how many steps a search may take."""
    cells = max(1, len(problem.places) * len(problem.calls))
    return min(_MOST, max(_FEWEST, _WORK // cells))


def _satisfy(problem: Problem) -> Assignment | None:
    """Search for an assignment that satisfies everything; ``None`` if there is none."""
    goal, pinned = problem.n_required, problem.pinned
    pins: dict[int, int | None] = {}
    found = _relaxed(problem, pins, strict=True)
    if found.score < goal or not pinned:
        return found if found.score == goal else None
    choices = [_choices(problem, found.masks, pins=pins)]
    steps = max_steps(problem)
    while choices:
        place, call = pinned[len(choices) - 1], next(choices[-1], None)
        if call is None:
            choices.pop()
            pins.pop(place, None)
            continue
        if steps == 0:
            return found._replace(undecided=True)
        steps, pins[place] = steps - 1, call
        found = _relaxed(problem, pins, strict=True)
        if found.score < goal:
            continue
        if len(choices) == len(pinned):
            return found
        choices.append(_choices(problem, found.masks, pins=pins))
    return None


def _choices(problem: Problem, masks: Masks, *, pins: Pins) -> Iterator[int]:
    """Give the calls that the next place may have, earliest first.

    Places of one expectation are alike, so their calls may as well ascend.
    """
    place = problem.pinned[len(pins)]
    alike = problem.required[problem.places[place].expected]
    held = [call for other in alike if (call := pins.get(other)) is not None]
    return bits(masks.places[place] & -1 << max(held, default=-1) + 1)


def _best_effort(problem: Problem) -> Assignment:
    """Pin place after place to what keeps the score highest, without turning back."""
    pins: dict[int, int | None] = {}
    best = _relaxed(problem, pins, strict=False)
    for place in problem.pinned:
        tried: list[tuple[Assignment, int | None]] = []
        for call in _few(_choices(problem, best.masks, pins=pins)):
            tried.append((_relaxed(problem, {**pins, place: call}, strict=False), call))
            if tried[-1][0].score == best.score:
                break
        best, pins[place] = max(tried, key=lambda pair: pair[0].score)
    return best


def _few(choices: Iterator[int]) -> Iterator[int | None]:
    """Give some choices, and at last none at all."""
    for _, call in zip(range(_TRIED), choices, strict=False):
        yield call
    yield None


def _relaxed(problem: Problem, pins: Pins, *, strict: bool) -> Assignment:
    """Assign everything as if places that are not pinned were independent."""
    masks = problem.masks(pins, strict=strict)
    pairs = _matched(problem, masks) if problem.order == "any" else _aligned(problem, masks)
    filled = sum(problem.places[place].required for place in pairs)
    covered = sum(1 << call for call in pairs.values())
    return Assignment(filled - (masks.must & ~covered).bit_count(), pairs, masks)


def _matched(problem: Problem, masks: Masks) -> dict[int, int]:
    """Fill required places first, then give away calls that must be, then all others."""
    graph = Graph(masks.places, len(problem.calls))
    places = problem.places
    pairs = cover_rows(graph, [at for at, place in enumerate(places) if place.required])
    if masks.must:
        may_go = (1 << len(problem.calls)) - 1 & ~masks.must
        pairs = cover_columns(graph, pairs, wanted=bits(masks.must), droppable=may_go)
    if len(pairs) < len(places):
        pairs = cover_columns(graph, pairs, wanted=range(len(problem.calls)))
    return pairs


def _aligned(problem: Problem, masks: Masks) -> dict[int, int]:
    """Keep the order of the list."""
    return align_in_order(
        masks.places,
        n_required=[int(place.required) for place in problem.places],
        n_calls=len(problem.calls),
        must=masks.must,
    )
