"""A baseline as a record: what was pinned, its rates, and the frames that statistics take.

Everything here follows from counts. How a file is laid out and sealed is
:mod:`evalkit.baselines.sealing`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd

    from evalkit.ledger import JSON

FORMAT: Final = 1
"""Version of the file's layout; a reader refuses a newer one."""
MIN_RUNS: Final = 3
UNCALIBRATED: Final = "uncalibrated"
"""What every judge is until its agreement with people has been recorded."""
COSTS: Final = ("none", "unknown", "metered")
_DIGITS: Final = 6
_SHOWN: Final = 100
"""Scenarios that a notebook shows of a baseline."""


@dataclass(frozen=True, slots=True)
class PinnedRun:
    """One of the runs that a baseline pools."""

    run_id: str
    digest: str
    """Over the run's ledgers."""
    seed: int
    created_at: str
    finished_at: str
    commit: str
    """Of the checkout that it ran in; empty where there was none."""
    dirty: bool | None
    """Whether that checkout had changes; ``None``: not known."""
    n_passed: int = 0
    n_failed: int = 0
    rate: float = 0.0
    """Mean of the scenarios' rates in this run."""


@dataclass(frozen=True, slots=True)
class PinnedScenario:
    """One scenario, with how many of its trials passed and failed in each run."""

    id: str
    hash: str
    """Of its content; empty where it is not known (imported runs)."""
    tags: tuple[str, ...]
    cluster: str
    must_pass: bool
    min_pass_rate: float | None
    passed: tuple[int, ...]
    """One count a run, in the order of the baseline's runs."""
    failed: tuple[int, ...]
    rate: float = 0.0
    """Passed / (passed + failed) of all pooled trials."""
    median_rate: float = 0.0
    """Median over the runs of the scenario's rate in each."""

    @property
    def n_trials(self) -> tuple[int, ...]:
        """Trials in each run."""
        return tuple(map(sum, zip(self.passed, self.failed, strict=False)))


@dataclass(frozen=True, slots=True)
class PinnedGrader:
    """What one grader said of one scenario's trials, counted in each run."""

    scenario: str
    grader: str
    rubric: str
    passed: tuple[int, ...]
    """Trials in which all its grades passed."""
    failed: tuple[int, ...]
    """Trials in which one failed; in the trials that are left it could not measure."""
    mean: tuple[float | None, ...]
    """Mean of its values in each run, in [0, 1]; ``None`` where there are none."""


@dataclass(frozen=True)  # without slots, which would leave no room for the cached frames
class Baseline:
    """Sealed results of several runs of one suite and one agent.

    It goes into every function of :mod:`evalkit.stats` in place of a run: each
    pooled trial is a row of :attr:`trials`.
    """

    name: str
    suite: str
    suite_hash: str
    lane: str
    agent: str
    agent_hash: str
    graders: Mapping[str, str]
    """Version of each grader that graded any of the trials."""
    more_graders: tuple[str, ...]
    """Graders that were asked for beside those of the suite."""
    models: tuple[str, ...]
    """Models that were seen in use."""
    cost: str
    """``metered``; ``none``: no model was called, or only the scripted one; ``unknown``:
    nobody saw whether one was."""
    cost_usd: float | None
    """Of all trials; ``None`` where it is not known."""
    runs: tuple[PinnedRun, ...]
    scenarios: tuple[PinnedScenario, ...]
    by_grader: tuple[PinnedGrader, ...]
    created_at: str
    """When the last of its runs ended: pinning the same runs again gives the same file."""
    evalkit: str
    """Version that pinned it."""
    judge: str = UNCALIBRATED
    rate: float = 0.0
    """Mean of the scenarios' rates."""
    median_rate: float = 0.0
    """Median of the runs' rates."""
    format: int = field(default=FORMAT)

    @property
    def n_trials(self) -> int:
        """Trials that are pooled."""
        return sum(sum(scenario.n_trials) for scenario in self.scenarios)

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a pooled trial.

        Columns: ``run_id``, ``suite``, ``scenario``, ``trial``, ``lane``,
        ``status``, ``tags``, ``cluster``, ``scenario_hash``. Trials of a
        scenario are numbered within their run, those that passed first: a
        baseline keeps counts, not which trial it was.
        """
        from evalkit.baselines.frames import trials_of

        return trials_of(self)

    @cached_property
    def grades(self) -> pd.DataFrame:
        """One row a pooled trial and grader, with the columns of ``run.grades``.

        ``passed`` follows from the counts. ``value`` is 1 or 0 where the mean
        leaves no other choice, else ``NaN``: it is not known. Reasons and
        evidence are not kept.
        """
        from evalkit.baselines.frames import grades_of

        return grades_of(self)

    @cached_property
    def grader_means(self) -> pd.DataFrame:
        """One row a run, scenario, grader and rubric.

        Columns: ``run_id``, ``scenario``, ``grader``, ``rubric``, ``n_passed``,
        ``n_failed``, ``n_incomplete`` (trials), ``mean`` (of the values, in [0, 1]).
        """
        from evalkit.baselines.frames import means_of

        return means_of(self)

    @cached_property
    def sha256(self) -> str:
        """The seal: a hash over everything that the file says."""
        from evalkit.baselines.sealing import seal_of

        return seal_of(self)

    def to_json(self) -> dict[str, JSON]:
        """Give the content of the file as a JSON object, with its seal."""
        from evalkit.baselines.sealing import content_of

        return {**content_of(self), "sha256": self.sha256}

    def __repr__(self) -> str:
        return (
            f"<Baseline {self.name}: {len(self.runs)} runs, {self.n_trials} trials, "
            f"rate {self.rate:.3f}>"
        )

    def _repr_html_(self) -> str:
        from evalkit.markup import escape, table

        title = (
            f"<p><strong>Baseline {escape(self.name)}</strong> of {escape(self.suite)} "
            f"({escape(self.lane)} lane): {len(self.runs)} runs, {self.n_trials} trials, "
            f"rate {self.rate:.1%}, median of runs {self.median_rate:.1%}, "
            f"cost {escape(self.cost)}</p>"
        )
        rows = [
            {
                "scenario": each.id,
                "rate": each.rate,
                "n_passed": sum(each.passed),
                "n_failed": sum(each.failed),
            }
            for each in sorted(self.scenarios, key=lambda each: each.rate)
        ]
        return title + table(rows, limit=_SHOWN)


def with_rates(baseline: Baseline) -> Baseline:
    """Fill in everything that follows from the counts.

    A scenario's rate pools its trials; a rate over scenarios is the mean of theirs.
    """
    scenarios = tuple(
        replace(
            each,
            rate=_rounded(_rate(sum(each.passed), sum(each.failed))),
            median_rate=_rounded(median(map(_rate, each.passed, each.failed))),
        )
        for each in baseline.scenarios
    )
    runs = tuple(_counted(run, scenarios, i) for i, run in enumerate(baseline.runs))
    return replace(
        baseline,
        scenarios=scenarios,
        runs=runs,
        rate=_mean([_rate(sum(each.passed), sum(each.failed)) for each in scenarios]),
        median_rate=_rounded(median(run.rate for run in runs)),
    )


def _counted(run: PinnedRun, scenarios: Sequence[PinnedScenario], i: int) -> PinnedRun:
    return replace(
        run,
        n_passed=sum(each.passed[i] for each in scenarios),
        n_failed=sum(each.failed[i] for each in scenarios),
        rate=_mean([_rate(each.passed[i], each.failed[i]) for each in scenarios]),
    )


def _rate(n_passed: int, n_failed: int) -> float:
    return n_passed / (n_passed + n_failed)


def _mean(rates: Sequence[float]) -> float:
    return _rounded(fmean(rates))


def _rounded(rate: float) -> float:
    """Keep the digits that a reviewer can use; the counts hold the rest."""
    return round(rate, _DIGITS)
