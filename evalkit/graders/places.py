"""Where a scenario says what it expects: for the whole trial, or for one of its turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from evalkit.graders.base import Trial
from evalkit.suite import Expect, Forbid, Scenario

T = TypeVar("T")


class Place(NamedTuple):
    """What a scenario says of the whole trial (``turn`` is ``None``) or of one turn."""

    turn: int | None
    """0-based, as the calls of a trace count their turns."""
    expect: Expect | None
    forbid: Forbid | None


def places_of(scenario: Scenario) -> Iterator[Place]:
    """Give the scenario's own expectations, then those of each turn."""
    yield Place(None, scenario.expect, scenario.forbid)
    for index, turn in enumerate(scenario.turns):
        yield Place(index, turn.expect, turn.forbid)


def expected(
    scenario: Scenario, pick: Callable[[Expect], T | None]
) -> Iterator[tuple[int | None, T]]:
    """Give every expectation of one kind, with its turn."""
    for turn, expect, _ in places_of(scenario):
        found = None if expect is None else pick(expect)
        if found is not None:
            yield turn, found


def turn_label(trial: Trial, turn: int | None) -> str:
    """Give ``turn 2: `` as the suite counts turns; nothing where there is one turn only."""
    return "" if turn is None or len(trial.scenario.turns) == 1 else f"turn {turn + 1}: "
