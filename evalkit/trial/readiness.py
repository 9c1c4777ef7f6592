"""Which parts of a scenario this version cannot carry out.

The suite format is validated whole; what is executed grows with evalkit. A
trial that needs a missing part ends ``incomplete`` and names it, because
leaving the part out would measure something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from evalkit.suite import AdvanceTurn, Expect, Forbid, Scenario, UserTurn

LANES: Final = ("contract", "live", "quality", "imported")
_RUN_LANES: Final = frozenset({"contract", "live"})

_NOWHERE: Final = ("network", "canaries", "deliver", "reply_from", "faults")
_SCENARIO_PARTS: Final = {
    # A budget guards lanes that cost something; the contract lane costs nothing.
    "contract": (*_NOWHERE, "fixtures.database", "fixtures.http"),
    "live": (*_NOWHERE, "fixtures", "clock", "budget"),
}
_TURNS: Final = {"contract": (UserTurn, AdvanceTurn), "live": (UserTurn,)}
_EXPECT_PARTS: Final = ("database", "state", "http")
_FORBID_PARTS: Final = ("http",)


def unbuilt_parts(scenario: Scenario, *, lane: str, is_program: bool = False) -> tuple[str, ...]:
    """Name what a scenario needs in a lane, and this version does not have.

    Parameters
    ----------
    scenario
        What should happen.
    lane
        Where.
    is_program
        Whether the agent is another program: it sees the real time, so a scenario
        that sets the clock would measure something else.

    Returns
    -------
    tuple of str
        Key paths, or the lane itself; empty if the trial can be run.
    """
    if lane not in _RUN_LANES:
        return (f"the {lane} lane",)
    missing = [*_missing(scenario, lane), *(_clocks(scenario) if is_program else ())]
    return tuple(dict.fromkeys(missing))


def unbuilt_checks(scenario: Scenario) -> tuple[str, ...]:
    """Name the expectations that no grader of this version can check.

    They matter for any trial, also one that was recorded elsewhere.
    """
    return tuple(dict.fromkeys(_missing_checks(scenario)))


def _missing(scenario: Scenario, lane: str) -> Iterator[str]:
    yield from (f"`{part}`" for part in _SCENARIO_PARTS[lane] if _says(scenario, part))
    for turn in scenario.turns:
        if not isinstance(turn, _TURNS[lane]):
            yield f"a `{_kind(turn)}` turn"
    yield from _missing_checks(scenario)


def _clocks(scenario: Scenario) -> Iterator[str]:
    """Name where a scenario sets or moves the clock."""
    if scenario.clock is not None:
        yield "`clock` for an agent that is another program"
    if any(isinstance(turn, AdvanceTurn) for turn in scenario.turns):
        yield "an `advance` turn for an agent that is another program"


def _says(scenario: Scenario, part: str) -> bool:
    """Say whether a scenario says anything under a key path."""
    value: object = scenario
    for key in part.split("."):
        value = getattr(value, key, None)
    return bool(value)


def _kind(turn: object) -> str:
    return type(turn).__name__.removesuffix("Turn").lower()


def _missing_checks(scenario: Scenario) -> Iterator[str]:
    for place in (scenario, *scenario.turns):
        yield from _asked("expect", place.expect, _EXPECT_PARTS)
        yield from _asked("forbid", place.forbid, _FORBID_PARTS)


def _asked(key: str, asked: Expect | Forbid | None, parts: Iterable[str]) -> Iterator[str]:
    return (f"`{key}.{part}`" for part in parts if getattr(asked, part, None))
