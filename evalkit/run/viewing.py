"""A trial as graders see it, read from its ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from evalkit.grade import STAGE_CODES, Ending
from evalkit.graders import Trial
from evalkit.ledger import JSON, Event
from evalkit.reading import ending_of, trace_of
from evalkit.results import Manifest
from evalkit.suite import Scenario, Suite
from evalkit.trace import Trace
from evalkit.trial import database_gap, databases_of, files_of, states_of, written_into

_RAISED: Final = frozenset({"agent_raised", "agent_exited", "bad_reply"})
"""Endings whose reason quotes what an agent said in its fault."""


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
        fixtures = _fixture_bytes(suite)
        self._fixtures = {path: hashlib.sha256(data).hexdigest() for path, data in fixtures.items()}
        self._fixture_texts = {
            path: data.decode("utf-8", "ignore") for path, data in fixtures.items()
        }

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
            outcome=self._outcome(events, scenario),
            trial=trial,
            lane=self._manifest.lane,
            whole=_ran_to_its_end(ending, trace),
            duration_s=ending.duration_s,
        )

    def _outcome(self, events: Sequence[Event], scenario: Scenario) -> Mapping[str, JSON]:
        """Give the state of the world after the trial, as far as anybody looked."""
        outcome: dict[str, JSON] = {}
        if self._manifest.lane == "contract":
            fixtures = {"fixtures": self._fixtures, "fixture_texts": self._fixture_texts}
            seen = {**files_of(events), **databases_of(events)}
            outcome = {**seen, **fixtures, "requests": _requests(events)}
        outcome |= states_of(events)
        if counted := _counted(events):
            outcome["counted_prompts"] = counted
        if sinks := _sinks(events):
            outcome["sinks"] = sinks
        if scenario.canaries:
            outcome |= self._databases(events, scenario, sinks)
        gap = _log_gap(events, isolation=self._manifest.isolation)
        return {**outcome, "log_gap": gap} if gap else outcome

    def _databases(
        self, events: Sequence[Event], scenario: Scenario, sinks: Mapping[str, JSON]
    ) -> Mapping[str, JSON]:
        """Give what was written into databases, and why not all of it was seen."""
        given = scenario.fixtures.database if scenario.fixtures is not None else {}
        texts = {name: self._fixture_texts.get(source, "") for name, source in given.items()}
        written = written_into(events, given=texts)
        found: dict[str, JSON] = {"sinks": {**sinks, "database": written}} if written else {}
        gap = database_gap(events)
        return {**found, "database_gap": gap} if gap else found


def _log_gap(events: Sequence[Event], *, isolation: str) -> str:
    """Say why a part of the log was not seen; empty if all of it was."""
    if isolation == "none":
        return "nobody takes in the log of an agent that runs without isolation"
    if any(event.kind == "log" and event.data.get("truncated") for event in events):
        return "the agent printed more than its ledger keeps, so the middle was left out"
    return ""


def _counted(events: Sequence[Event]) -> list[JSON]:
    """Give what was sent only to have its tokens counted, with the turn: it left all the same."""
    found: list[JSON] = []
    turn = -1
    for event in events:
        turn += event.kind == "turn" and not event.data.get("again")
        if event.kind == "http" and event.data.get("to") == "model":
            found.append({"turn": max(turn, 0), "body": event.data.get("body")})
    return found


def _requests(events: Sequence[Event]) -> list[JSON]:
    """Give what the agent sent to the outside, answered by a fixture or not."""
    told = (event.data for event in events if event.kind == "http")
    return [dict(data) for data in told if data.get("to") == "fixture"]


def _sinks(events: Sequence[Event]) -> dict[str, list[JSON]]:
    """Give what came out where no trace tells it, by sink (see :mod:`evalkit.graders.sinks`)."""
    found: dict[str, list[JSON]] = {}
    for event in events:
        told = dict(event.data)
        if event.kind == "http" and told.get("to") != "model":
            found.setdefault("http", []).append(told)
        elif event.kind == "state" and "state" in told:
            found.setdefault("state", []).append(told["state"])
        elif event.kind == "trial_end" and told.get("reason_code") in _RAISED:
            found.setdefault("error", []).append(told["reason"])
    return found


def _fixture_bytes(suite: Suite) -> dict[str, bytes]:
    """Read the fixture files of a suite, by their path in its folder."""
    folder = suite.path.parent if suite.path is not None else Path.cwd()
    given = (scenario.fixtures for scenario in suite if scenario.fixtures is not None)
    sources = ((*fixtures.files.values(), *fixtures.database.values()) for fixtures in given)
    paths = set(chain.from_iterable(sources))
    return {path: (folder / path).read_bytes() for path in paths}


def _ran_to_its_end(ending: Ending, trace: Trace) -> bool:
    """Say whether the agent got to speak its last word.

    An agent that did something to its surroundings - an unscripted call, say - has
    failed, and yet may have run to its end: then its graders have their say too.
    """
    if ending.status == "passed":
        return True
    return ending.reason_code in STAGE_CODES and any(turn.replies for turn in trace.turns[-1:])
