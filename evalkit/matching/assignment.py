"""Expected tool calls against the calls that were made: who has whom, and what is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from evalkit.matching.bipartite import bits
from evalkit.matching.calls import Expectation, ExpectedCall, MadeCall
from evalkit.matching.nodes import Difference
from evalkit.matching.problem import Order, Problem, refs_of
from evalkit.matching.search import Assignment, assign, max_steps

ExtraCalls = Literal["free", "forbid"] | Collection[str]
"""Whether calls may be left over; a collection names the tools whose calls may."""


class Miss(NamedTuple):
    """An expectation that too few calls satisfy."""

    expected: int
    """Position of the expectation."""
    n_found: int
    n_wanted: int
    tool_called: bool
    """Whether the tool was called at all: wrong arguments or wrong tool."""
    nearest: int | None
    """Position of the call of this tool that comes closest."""
    differences: tuple[Difference, ...]
    """What keeps that call from satisfying it."""


class LeftOver(NamedTuple):
    """A call that may not be left over."""

    call: int
    expected: int | None
    """The expectation that it exceeds; ``None`` for a call that nobody asked for."""


@dataclass(frozen=True, slots=True)
class CallMatch:
    """What :func:`match_calls` found."""

    pairs: tuple[tuple[int, int], ...]
    """(expectation, call) by position; no call occurs twice."""
    misses: tuple[Miss, ...]
    left_over: tuple[LeftOver, ...]
    n_required: int
    n_filled: int
    n_calls: int
    refs: Mapping[str, Any]
    """Id -> the calls given to that expectation, as ``$ref`` reads them."""
    undecided: str = ""
    """Why the search had to stop before it could tell; empty if it could."""

    @property
    def matched(self) -> bool:
        """Whether every rule is kept; never while undecided."""
        return not (self.misses or self.left_over or self.undecided)

    @property
    def precision(self) -> float:
        """Share of the calls made that some expectation has; 1 without calls."""
        return len(self.pairs) / self.n_calls if self.n_calls else 1.0

    @property
    def recall(self) -> float:
        """Share of the required calls that were made; 1 if none is required."""
        return self.n_filled / self.n_required if self.n_required else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def match_calls(
    expected: Sequence[ExpectedCall],
    calls: Sequence[MadeCall],
    *,
    order: Order = "any",
    extra_calls: ExtraCalls = "free",
) -> CallMatch:
    """Give each expectation its calls, one call never to two of them.

    Parameters
    ----------
    expected
        The expectations.
    calls
        The calls made, in order, also those that failed.
    order
        ``any``; ``in_order``: the calls of each expectation after those of the one
        before it; ``exact``: besides, no other call may be left over.
    extra_calls
        ``free``, ``forbid``, or the names of the tools whose calls may be left over.
        With ``exact``, ``free`` means ``forbid``.

    Returns
    -------
    CallMatch
        A perfect assignment wherever one exists and is found within the cap on
        steps; otherwise one that says well what is missing.

    Notes
    -----
    ``after`` asks for a call later than the required calls of those it names.
    A ``$ref`` reads the required calls of the expectation it names, which must
    come earlier. Of an expectation with ``times.max``, no fitting call may be left over.

    Examples
    --------
    >>> from evalkit.trace import ToolCall
    >>> found = match_calls(
    ...     [ExpectedCall("book", {"flight_id": "AA123"})],
    ...     [ToolCall("book", {"flight_id": "AA999"})],
    ... )
    >>> found.matched, str(found.misses[0].differences[0])
    (False, "flight_id: expected 'AA123', got 'AA999'")
    """
    problem = Problem(
        [Expectation.of(one) for one in expected],
        calls,
        order,
        _refused(calls, order=order, extra_calls=extra_calls),
    )
    return _reported(problem, assign(problem))


def _refused(calls: Sequence[MadeCall], *, order: Order, extra_calls: ExtraCalls) -> int:
    """Mark the calls that may not be left over."""
    if extra_calls == "free" and order != "exact":
        return 0
    allowed = () if extra_calls in ("free", "forbid") else frozenset(extra_calls)
    return sum(1 << index for index, call in enumerate(calls) if call.name not in allowed)


def _reported(problem: Problem, found: Assignment) -> CallMatch:
    """Turn places and bits back into expectations and calls."""
    places = problem.places
    pairs = sorted((places[place].expected, call) for place, call in found.pairs.items())
    refs = refs_of(problem, found.pairs)
    stopped = f"no assignment was found within {max_steps(problem)} steps, nor that there is none"
    return CallMatch(
        tuple(pairs),
        tuple(_misses(problem, found, refs=refs)),
        tuple(_left_over(problem, found)),
        problem.n_required,
        sum(places[place].required for place in found.pairs),
        len(problem.calls),
        refs,
        stopped if found.undecided else "",
    )


def _left_over(problem: Problem, found: Assignment) -> Iterator[LeftOver]:
    """Name the calls that had to be given to somebody and were not."""
    held = sum(1 << call for call in found.pairs.values())
    for call in bits(found.masks.must & ~held):
        exceeded = (
            index
            for index, one in enumerate(problem.expected)
            if one.call.n_at_most is not None and problem.fitting[index] >> call & 1
        )
        yield LeftOver(call, next(exceeded, None))


def _misses(problem: Problem, found: Assignment, *, refs: Mapping[str, Any]) -> Iterator[Miss]:
    """Name the expectations with too few calls, each with the call that comes closest."""
    users = {call: problem.places[place].expected for place, call in found.pairs.items()}
    for index, one in enumerate(problem.expected):
        n_found = sum(place in found.pairs for place in problem.required[index])
        if n_found == one.call.n_required:
            continue
        nearest, differences = _nearest(problem, index, users=users, refs=refs) or (None, ())
        called = any(made.name == one.call.tool for made in problem.calls)
        yield Miss(index, n_found, one.call.n_required, called, nearest, differences)


def _nearest(
    problem: Problem,
    index: int,
    *,
    users: Mapping[int, int],
    refs: Mapping[str, Any],
) -> tuple[int, tuple[Difference, ...]] | None:
    """Find the call of the same tool with the fewest differences, a free one before one in use."""
    one = problem.expected[index]
    rated = []
    for call, made in enumerate(problem.calls):
        if made.name == one.call.tool and users.get(call) != index:
            found = one.differences(made, refs)
            rated.append((len(found) or 1, call in users, call, found))
    if not rated:
        return None
    *_, call, found = min(rated, key=lambda item: item[:3])
    return call, tuple(found) or (_why_not(problem, index, call=call, users=users),)


def _why_not(problem: Problem, index: int, *, call: int, users: Mapping[int, int]) -> Difference:
    """Say why a call that fits in itself was not given to an expectation."""
    one = problem.expected[index].call
    if call in users:
        return Difference("", "one more such call", "one that another expectation has")
    if problem.order != "any":
        return Difference("order", "the calls in the order of the list", f"it as call {call + 1}")
    names = sorted({*one.after, *problem.expected[index].needs})
    return Difference("order", f"a call after {', '.join(names)}", f"it as call {call + 1}")
