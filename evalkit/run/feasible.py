"""Which scenarios cannot be run here, and why.

Either this version lacks a part (:func:`~evalkit.trial.unbuilt_parts`), or the agent is
another program that this machine cannot give the scenario's clock. Such a trial is
``incomplete``: leaving the part out would measure something else.
"""

from __future__ import annotations

from typing import NamedTuple

from evalkit.agents import AgentRef
from evalkit.errors import UsageError
from evalkit.grade import Ending
from evalkit.results import Manifest
from evalkit.suite import Scenario
from evalkit.trial import clock_parts, unbuilt_parts


class AgentClock(NamedTuple):
    """Which time the agent of a run sees."""

    name: str = ""
    """``scenario``; for another program ``libfaketime`` or ``real``; empty where none is set."""
    library: str = ""
    """Path of libfaketime, where the agent needs it."""
    problem: str = ""
    """Why the time is real, and what to do about that."""


def clock_of(agent: AgentRef, *, lane: str) -> AgentClock:
    """Find out which time an agent will see; tries libfaketime if that is needed."""
    if lane != "contract":
        return AgentClock()
    if not agent.is_program:
        return AgentClock("scenario")
    from evalkit.sandbox.faketime import plan_faking

    library, problem, advice = plan_faking(agent.executable)
    if problem:
        return AgentClock("real", "", f"{problem}: {advice}")
    return AgentClock("libfaketime", library)


def check_same_clock(manifest: Manifest, clock: AgentClock) -> None:
    """Refuse to go on with a run under another clock than it began with.

    Raises
    ------
    UsageError
        It names both.
    """
    if manifest.clock and manifest.clock != clock.name:
        raise UsageError(
            f"{manifest.run_id}: it began with the clock {manifest.clock!r}, and its agent would "
            f"have {clock.name!r} now, so its trials would not be comparable; "
            f"{clock.problem or 'start a new run'}"
        )


def find_hindrance(scenario: Scenario, *, lane: str, clock: AgentClock) -> Ending | None:
    """Say how a trial of a scenario ends that cannot be run; ``None`` if it can."""
    unbuilt = unbuilt_parts(scenario, lane=lane)
    if unbuilt:
        reason = f"this version cannot run {', '.join(unbuilt)} yet"
        return Ending("incomplete", "not_built", reason)
    clocks = clock_parts(scenario) if clock.problem else ()
    if not clocks:
        return None
    reason = (
        f"the agent is another program and would see the real time, but the scenario has "
        f"{' and '.join(clocks)}; {clock.problem}"
    )
    return Ending("incomplete", "real_clock", reason)
