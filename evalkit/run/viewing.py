"""A trial as graders see it, read from its ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalkit.grade import STAGE_CODES, Ending
from evalkit.graders import Trial
from evalkit.ledger import JSON, Event
from evalkit.reading import ending_of, trace_of
from evalkit.results import Manifest
from evalkit.suite import Scenario, Suite
from evalkit.trace import Trace
from evalkit.trial import files_of


class TrialViewer:
    """Reads trials of one run from their ledgers.

    Parameters
    ----------
    suite
        What should have happened.
    manifest
        Where and how the trials ran.
    """

    def __init__(self, suite: Suite, manifest: Manifest) -> None:
        self._manifest = manifest
        self._fixtures = _fixture_hashes(suite)

    def view(
        self,
        events: Sequence[Event],
        scenario: Scenario,
        *,
        trial: int,
        ending: Ending | None = None,
    ) -> Trial:
        """Read one trial.

        Parameters
        ----------
        events
            The whole ledger.
        scenario
            What should have happened.
        trial
            Its number.
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
            outcome=self._outcome(events),
            trial=trial,
            lane=self._manifest.lane,
            whole=_ran_to_its_end(ending, trace),
            duration_s=ending.duration_s,
        )

    def _outcome(self, events: Sequence[Event]) -> Mapping[str, JSON]:
        """Give the state of the world after the trial, as far as anybody looked."""
        outcome: dict[str, JSON] = {}
        if self._manifest.lane == "contract":
            outcome = {**files_of(events), "fixtures": self._fixtures}
        gap = _log_gap(events, isolation=self._manifest.isolation)
        return {**outcome, "log_gap": gap} if gap else outcome


def _log_gap(events: Sequence[Event], *, isolation: str) -> str:
    """Say why a part of the log was not seen; empty if all of it was."""
    if isolation == "none":
        return "nobody takes in the log of an agent that runs without isolation"
    if any(event.kind == "log" and event.data.get("truncated") for event in events):
        return "the agent printed more than its ledger keeps, so the middle was left out"
    return ""


def _fixture_hashes(suite: Suite) -> dict[str, str]:
    """Hash the fixture files of a suite, by their path in its folder."""
    folder = suite.path.parent if suite.path is not None else Path.cwd()
    given = (scenario.fixtures for scenario in suite if scenario.fixtures is not None)
    paths = {path for fixtures in given for path in fixtures.files.values()}
    return {path: hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in paths}


def _ran_to_its_end(ending: Ending, trace: Trace) -> bool:
    """Say whether the agent got to speak its last word.

    An agent that did something to its surroundings - an unscripted call, say - has
    failed, and yet may have run to its end: then its graders have their say too.
    """
    if ending.status == "passed":
        return True
    return ending.reason_code in STAGE_CODES and any(turn.replies for turn in trace.turns[-1:])
