"""The frames of a baseline: one row a pooled trial, made from counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from evalkit.results.frames import frame

if TYPE_CHECKING:
    import pandas as pd

    from evalkit.baselines.records import Baseline, PinnedGrader

_TRIALS: Final = (
    "run_id", "suite", "scenario", "trial", "lane", "status", "tags", "cluster", "scenario_hash",
)  # fmt: skip
_MEANS: Final = (
    "run_id", "scenario", "grader", "rubric", "n_passed", "n_failed", "n_incomplete", "mean",
)  # fmt: skip


def trials_of(baseline: Baseline) -> pd.DataFrame:
    """Give one row a pooled trial, run by run."""
    import pandas as pd

    made = pd.DataFrame(list(_trial_rows(baseline)), columns=list(_TRIALS))
    return made.astype({"trial": "int64"})


def _trial_rows(baseline: Baseline) -> Iterator[tuple[Any, ...]]:
    for place, run in enumerate(baseline.runs):
        for each in baseline.scenarios:
            told = (each.tags, each.cluster or each.id, each.hash)
            n_passed = each.passed[place]
            for trial in range(n_passed + each.failed[place]):
                status = "passed" if trial < n_passed else "failed"
                yield (
                    run.run_id, baseline.suite, each.id, trial, baseline.lane, status, *told,
                )  # fmt: skip


def grades_of(baseline: Baseline) -> pd.DataFrame:
    """Give one row a pooled trial and grader; trials that passed come first here too."""
    return frame("grades", list(_grade_rows(baseline)))


def _grade_rows(baseline: Baseline) -> Iterator[tuple[Any, ...]]:
    for run_id, place, n_trials, said in _said(baseline):
        n_passed, n_failed = said.passed[place], said.failed[place]
        mean = said.mean[place]
        # Only a mean at its end leaves its values no choice.
        known = mean if mean in (0.0, 1.0) else None
        for trial in range(n_trials):
            passed = trial < n_passed if trial < n_passed + n_failed else None
            value = None if passed is None else known
            key = (run_id, said.scenario, trial, said.grader, said.rubric)
            yield (*key, value, None, passed, "", {}, None)


def means_of(baseline: Baseline) -> pd.DataFrame:
    """Give one row a run, scenario, grader and rubric."""
    import pandas as pd

    rows = [
        (
            *(run_id, said.scenario, said.grader, said.rubric),
            *(said.passed[i], said.failed[i], n_trials - said.passed[i] - said.failed[i]),
            said.mean[i],
        )
        for run_id, i, n_trials, said in _said(baseline)
    ]
    return pd.DataFrame(rows, columns=list(_MEANS)).astype({"mean": "float64"})


def _said(baseline: Baseline) -> Iterator[tuple[str, int, int, PinnedGrader]]:
    """Give each grader's counts with the run's id and place, and how many trials it had."""
    n_trials = {each.id: each.n_trials for each in baseline.scenarios}
    for place, run in enumerate(baseline.runs):
        for said in baseline.by_grader:
            yield run.run_id, place, n_trials[said.scenario][place], said
