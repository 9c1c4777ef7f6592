"""A trial as graders see it, read from its ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalkit.grade import STAGE_CODES, Ending
from evalkit.graders import Trial
from evalkit.ledger import JSON, Event
from evalkit.recording import ending_of, trace_of
from evalkit.suite import Scenario
from evalkit.trace import Trace
from evalkit.trial import files_of


def trial_seen(
    events: Sequence[Event],
    scenario: Scenario,
    *,
    trial: int,
    lane: str,
    ending: Ending | None = None,
) -> Trial:
    """Read a trial from its ledger.

    Parameters
    ----------
    events
        The whole ledger.
    scenario
        What should have happened.
    trial, lane
        Which trial it is, and where it ran.
    ending
        How it ended; by default what the ledger says.

    Raises
    ------
    TraceError
        If the ledger cannot be read as a trace.
    """
    ending = ending or ending_of(events)
    trace = trace_of(events)
    return Trial(
        scenario=scenario,
        trace=trace,
        outcome=_outcome(events, lane),
        trial=trial,
        lane=lane,
        whole=_ran_to_its_end(ending, trace),
        duration_s=ending.duration_s,
    )


def _outcome(events: Sequence[Event], lane: str) -> Mapping[str, JSON]:
    """Give the state of the world after the trial; elsewhere nobody looked at it."""
    return {"files": files_of(events)} if lane == "contract" else {}


def _ran_to_its_end(ending: Ending, trace: Trace) -> bool:
    """Say whether the agent got to speak its last word.

    An agent that did something to its surroundings - an unscripted call, say - has
    failed, and yet may have run to its end: then its graders have their say too.
    """
    if ending.status == "passed":
        return True
    return ending.reason_code in STAGE_CODES and any(turn.replies for turn in trace.turns[-1:])
