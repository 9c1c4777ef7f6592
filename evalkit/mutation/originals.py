"""The trials of a run that may be broken: those that pass by the suite as it is now."""

from __future__ import annotations

from typing import NamedTuple

from evalkit.errors import LedgerError, TraceError
from evalkit.grade import Ending
from evalkit.graders import Trial
from evalkit.mutation.judging import GradingAgain
from evalkit.reading import ending_of
from evalkit.results import Run, TrialRecord
from evalkit.run.viewing import TrialViewer
from evalkit.suite import Scenario, Suite


class Originals(NamedTuple):
    """The trials of one scenario."""

    trials: tuple[Trial, ...]
    reason: str
    """Why there is none."""


class OriginalReader:
    """Reads and grades trials of one run.

    Parameters
    ----------
    suite
        Says what should have happened.
    run
        Has the ledgers.
    grading
        Decides which trials pass.
    """

    def __init__(self, suite: Suite, run: Run, grading: GradingAgain) -> None:
        self._run, self._grading = run, grading
        self._viewer = TrialViewer(suite, run.manifest)

    def passing(self, scenario: Scenario, n: int) -> Originals:
        """Give the first trials of a scenario that pass."""
        found: list[Trial] = []
        reason = "the run has no trial of it"
        for record in self._run.records:
            if record.scenario == scenario.id and len(found) < n:
                read = self._read(record, scenario)
                if isinstance(read, Trial):
                    found.append(read)
                else:
                    reason = f"trial {record.trial} {read.status}: {read.reason}"
        return Originals(tuple(found), "" if found else reason)

    def _read(self, record: TrialRecord, scenario: Scenario) -> Trial | Ending:
        """Give a trial that passes, else how it ended."""
        try:
            events = self._run.ledger(record.scenario, record.trial)
            trial = self._viewer.view(events, scenario, trial=record.trial)
        except (LedgerError, TraceError) as error:
            return Ending("incomplete", "ledger_broken", str(error))
        ending = ending_of(events)
        if ending.status == "passed":
            ending = self._graded(trial)
        return trial if ending.status == "passed" else ending

    def _graded(self, trial: Trial) -> Ending:
        first, second = (self._grading.ending_of(trial) for _ in range(2))
        if first.status != second.status:
            reason = "its graders say one thing now and another then"
            return Ending("incomplete", "grader_incomplete", reason)
        return first
