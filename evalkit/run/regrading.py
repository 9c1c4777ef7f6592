"""Grading a run again, without running anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from evalkit.errors import LedgerError, TraceError, UsageError
from evalkit.grade import Ending, Grade
from evalkit.graders import Trial, grade_trial, known_graders
from evalkit.ledger import Event, digest
from evalkit.reading import ending_of
from evalkit.results import (
    Manifest,
    PlannedScenario,
    Run,
    RunWriter,
    TrialRecord,
    load_run,
    trial_record,
)
from evalkit.run.agreeing import Copies
from evalkit.run.hiding import without_values
from evalkit.run.loading import PathLike, load_suite
from evalkit.run.planning import GraderName, grader_names, new_manifest, planned
from evalkit.run.viewing import TrialViewer
from evalkit.suite import Scenario, Suite
from evalkit.trace import Trace

Match: TypeAlias = Mapping[str, str] | Callable[[str], str | None] | None
"""From a run's scenario id to the suite's; ``None``: they are the same."""


def grade_run(
    run: Run | PathLike,
    suite: Suite | PathLike,
    *,
    match: Match = None,
    graders: Sequence[GraderName] = (),
    out: PathLike | None = None,
) -> Run:
    """Apply a suite's expectations to trials that ran before, here or elsewhere.

    Parameters
    ----------
    run
        The run, or its directory.
    suite
        Its scenarios say what should have happened.
    match
        Maps the run's scenario ids to the suite's: a mapping or a function; an
        id without a match ends its trials ``incomplete``. By default ids are equal.
    graders
        Further graders for every scenario.
    out
        Folder for the new run directory; by default beside the old one.

    Returns
    -------
    Run
        A new run that names the old one as parent and shares its ledgers.
        Grades that came with the old run (a benchmark's reward, say) are kept.

    Raises
    ------
    SuiteError, UsageError
        If suite or arguments are wrong.

    Notes
    -----
    A scenario of the suite that the run has no trial of is planned once, and
    ``incomplete``: it was not measured.
    """
    run = run if isinstance(run, Run) else load_run(run)
    suite = suite if isinstance(suite, Suite) else load_suite(suite)
    more = grader_names(graders)
    pairing = _Pairing(run, suite, match)
    folder = Path(out) if out is not None else run.folder.parent
    plan = pairing.plan(run.manifest.plan, suite)
    manifest = replace(_manifest(run, suite, plan, folder=folder), more_graders=more)
    writer = RunWriter.create(folder / manifest.run_id, manifest)
    try:
        regrader = _Regrader(run, suite, pairing, more=more)
        for key in manifest.keys():  # noqa: SIM118 - not a mapping
            writer.add(regrader.record(*key))
    finally:
        writer.finish()
    return load_run(writer.folder)


class _Pairing:
    """Which scenario of the suite each scenario of the run is."""

    def __init__(self, run: Run, suite: Suite, match: Match) -> None:
        known = {scenario.id: scenario for scenario in suite}
        self.scenarios: dict[str, Scenario | None] = {
            entry.id: known.get(_matched(match, entry.id) or "") for entry in run.manifest.plan
        }
        self.unmeasured = [
            scenario
            for scenario in suite
            if scenario not in self.scenarios.values() and scenario.id not in self.scenarios
        ]
        if not any(self.scenarios.values()):
            theirs, ours = ", ".join(list(self.scenarios)[:3]), ", ".join(list(known)[:3])
            raise UsageError(
                f"no scenario of run {run.id} ({theirs} ...) is one of suite {suite.name!r} "
                f"({ours} ...); say which is which with match="
            )

    def plan(self, entries: Sequence[PlannedScenario], suite: Suite) -> tuple[PlannedScenario, ...]:
        """Plan every trial of the run, and once each scenario that it lacks."""
        by_id = {entry.id: entry for entry in planned(suite, n_trials=1)}
        mine = tuple(self._entry(entry, by_id) for entry in entries)
        return mine + tuple(by_id[scenario.id] for scenario in self.unmeasured)

    def _entry(
        self, entry: PlannedScenario, by_id: Mapping[str, PlannedScenario]
    ) -> PlannedScenario:
        scenario = self.scenarios[entry.id]
        if scenario is None:
            return entry
        tags = tuple(dict.fromkeys((*entry.tags, *scenario.tags)))
        return replace(by_id[scenario.id], id=entry.id, n_trials=entry.n_trials, tags=tags)


def _matched(match: Match, foreign: str) -> str | None:
    if match is None:
        return foreign
    return match.get(foreign) if isinstance(match, Mapping) else match(foreign)


def _manifest(
    run: Run, suite: Suite, plan: tuple[PlannedScenario, ...], *, folder: Path
) -> Manifest:
    """Write down a run that shares its parent's ledgers."""
    old = run.manifest
    new = new_manifest(suite, lane=old.lane, plan=plan)
    ledgers = (run.folder / old.ledgers).resolve()
    return replace(
        new,
        agent=old.agent,
        agent_hash=old.agent_hash,
        seed=old.seed,
        isolation=old.isolation,
        barrier=old.barrier,
        clock=old.clock,
        source=old.source,
        models=old.models,
        parent=run.id,
        ledgers=os.path.relpath(ledgers, (folder / new.run_id).resolve()),
    )


class _Regrader:
    """Grades one trial after the other."""

    def __init__(self, run: Run, suite: Suite, pairing: _Pairing, *, more: tuple[str, ...]) -> None:
        self._run = run
        self._viewer = TrialViewer(suite, run.manifest)
        self._pairing = pairing
        self._more = more
        self._old = {(record.scenario, record.trial): record for record in run.records}
        self._copies = Copies(run.manifest)

    def record(self, scenario_id: str, trial: int) -> TrialRecord:
        """Grade one trial; what cannot be graded is incomplete, with the reason."""
        key = (scenario_id, trial)
        old = self._old.get(key)
        if old is None:
            return _ungraded(key, "no_trial", "the run has no trial of this scenario")
        scenario = self._pairing.scenarios[scenario_id]
        if scenario is None:
            unmatched = _ungraded(key, "no_scenario", "no scenario of the suite matches it")
            return replace(unmatched, tags=old.tags, grades=old.grades)
        try:
            events = self._run.ledger(*key)
            return self._graded(old, scenario, events)
        except (LedgerError, TraceError) as error:
            return replace(_ungraded(key, "ledger_broken", str(error)), tags=old.tags)

    def _graded(self, old: TrialRecord, scenario: Scenario, events: Sequence[Event]) -> TrialRecord:
        trial = self._viewer.view(events, scenario, trial=old.trial)
        tell = partial(
            trial_record,
            old.scenario,
            old.trial,
            trial.trace,
            grades=self._grades(old, trial),
            seed=old.seed,
            digest=digest(events),
            tags=tuple(dict.fromkeys((*old.tags, *scenario.tags))),
            cluster=scenario.cluster or "",
        )
        record = tell(ending=ending_of(events))
        fault = self._copies.fault_of(record, events)
        return without_values(record if fault is None else tell(ending=fault), scenario)

    def _grades(self, old: TrialRecord, trial: Trial) -> tuple[Grade, ...]:
        """Grade anew, and keep what no grader of ours had said."""
        foreign = tuple(grade for grade in old.grades if grade.grader not in known_graders())
        return foreign + grade_trial(trial, more=self._more)


def _ungraded(key: tuple[str, int], code: str, reason: str) -> TrialRecord:
    """Record a trial that no grader could look at."""
    ending = Ending("incomplete", code, reason)
    return trial_record(*key, Trace(tools_observed=False), ending=ending, grades=())
