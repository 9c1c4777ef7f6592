"""Whether a run directory still says what the runner wrote: against slips, not against fraud.

Directories travel through caches, merges and hands. What is held together here costs no
look into a ledger; the ledgers themselves are not read. Whoever edits a run and its
digest alike is not found out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalkit.baselines.counting import has_own_digest
from evalkit.results import Run, Runs
from evalkit.terminal import some_of


def runs_in(given: Any) -> tuple[Any, ...]:
    """Give the run, or the runs, that the gate was given; none for a frame."""
    if isinstance(given, Runs):
        return given.runs
    return (given,) if hasattr(given, "manifest") else ()


def contradictions(given: Any) -> Iterator[str]:
    """Say where a run directory contradicts itself."""
    for run in runs_in(given):
        if isinstance(run, Run):
            yield from (f"{run.id}: {problem}" for problem in _in(run))


def _in(run: Run) -> Iterator[str]:
    empty = [planned.id for planned in run.manifest.plan if planned.n_trials < 1]
    if empty:
        yield f"the plan holds no trial of {some_of(empty)}"
    if not run.is_unchanged or (run.is_finished and not has_own_digest(run)):
        yield "its manifest or its trials were changed after the run; run again"
    wrong = [
        f"{record.scenario}.{record.trial} ({grade.grader}: {grade.status})"
        for record in run.records
        for grade in record.grades
        if record.status == "passed" and not grade.rubric and grade.status != "passed"
    ]
    if wrong:
        yield f"trials stand there as passed, and their grades say otherwise: {some_of(wrong)}"
