"""Whether a run directory still says what the runner wrote: against slips, not against fraud.

Directories travel through caches, merges and hands. What is held together here costs no
look into a ledger; the ledgers themselves are not read. Whoever edits a run and its
digest alike is not found out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from evalkit.baselines.counting import has_own_digest
from evalkit.results import Run, Runs
from evalkit.terminal import one_line

_NAMED: Final = 5


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
        yield f"the plan holds no trial of {_listed(empty)}"
    if run.is_finished and run.digest is not None and not has_own_digest(run):
        yield (
            "the digest in its manifest is not that of its trials: trials or plan were changed "
            "after the run; run again"
        )
    wrong = [
        f"{record.scenario}.{record.trial} ({grade.grader}: {grade.status})"
        for record in run.records
        for grade in record.grades
        if record.status == "passed" and not grade.rubric and grade.status != "passed"
    ]
    if wrong:
        yield f"trials stand there as passed, and their grades say otherwise: {_listed(wrong)}"


def _listed(names: list[str]) -> str:
    """Name the first few, and count the rest."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(one_line(name, limit=80) for name in names[:_NAMED]) + more
