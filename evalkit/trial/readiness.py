"""Which parts of a scenario this version cannot carry out.

The suite format is validated whole; what is executed grows with evalkit. A
trial that needs a missing part ends ``incomplete`` and names it, because
leaving the part out would measure something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from evalkit.suite import (
    AdvanceTurn,
    DeliverTurn,
    Expect,
    RedeliverTurn,
    RestartTurn,
    Scenario,
    UserTurn,
)

LANES: Final = ("contract", "live", "quality", "imported")
_RUN_LANES: Final = frozenset({"contract", "live"})

_NOWHERE: Final = ("faults",)
_SCENARIO_PARTS: Final = {
    # A budget guards lanes that cost something; the contract lane costs nothing.
    "contract": _NOWHERE,
    "live": (*_NOWHERE, "network", "deliver", "reply_from", "fixtures", "clock", "budget"),
}
_TURNS: Final = {
    "contract": (UserTurn, DeliverTurn, RedeliverTurn, AdvanceTurn, RestartTurn),
    "live": (UserTurn, RedeliverTurn),
}
_EXPECT_PARTS: Final[Mapping[str, tuple[str, ...]]] = {"contract": (), "live": ("database",)}


def unbuilt_parts(scenario: Scenario, *, lane: str) -> tuple[str, ...]:
    """Name what a scenario needs in a lane, and this version does not have.

    Parameters
    ----------
    scenario
        What should happen.
    lane
        Where.

    Returns
    -------
    tuple of str
        Key paths, or the lane itself; empty if the trial can be run.
    """
    if lane not in _RUN_LANES:
        return (f"the {lane} lane",)
    return tuple(dict.fromkeys(_missing(scenario, lane)))


def _missing(scenario: Scenario, lane: str) -> Iterator[str]:
    yield from (f"`{part}`" for part in _SCENARIO_PARTS[lane] if _says(scenario, part))
    for turn in scenario.turns:
        if not isinstance(turn, _TURNS[lane]):
            yield f"a `{_kind(turn)}` turn"
    yield from _missing_checks(scenario, lane)


def clock_parts(scenario: Scenario) -> tuple[str, ...]:
    """Name where a scenario sets or moves the clock.

    An agent that sees the real time would measure something else there.
    """
    moves = any(isinstance(turn, AdvanceTurn) for turn in scenario.turns)
    said = (("`clock`", scenario.clock is not None), ("an `advance` turn", moves))
    return tuple(what for what, is_said in said if is_said)


def _says(scenario: Scenario, part: str) -> bool:
    """Say whether a scenario says anything under a key path."""
    value: object = scenario
    for key in part.split("."):
        value = getattr(value, key, None)
    return bool(value)


def _kind(turn: object) -> str:
    return type(turn).__name__.removesuffix("Turn").lower()


def _missing_checks(scenario: Scenario, lane: str) -> Iterator[str]:
    for place in (scenario, *scenario.turns):
        yield from _asked(place.expect, _EXPECT_PARTS[lane])


def _asked(asked: Expect | None, parts: Iterable[str]) -> Iterator[str]:
    return (f"`expect.{part}`" for part in parts if getattr(asked, part, None))
