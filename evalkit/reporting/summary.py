"""What a report on one run says, computed once and then only shown.

A figure that two views show comes from the same place here, so that a report
never contradicts itself. The statistics are :mod:`evalkit.stats`'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalkit.grade import Status, worst
from evalkit.stats import pass_hat_k, pass_rates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Spread", "Summary", "summarise"]

_KS = (1, 2, 3, 4, 5, 10, 20, 50)


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity over the trials for which it is known."""

    n_known: int
    n_trials: int
    total: float
    median: float
    p95: float
    longest: float

    @property
    def is_complete(self) -> bool:
        """Whether every trial's value is known, so that the total is one."""
        return 0 < self.n_known == self.n_trials


@dataclass(frozen=True, slots=True)
class Summary:
    """One run's figures, for the views of a report."""

    run: Any
    """Has ``trials``, ``grades``, ``manifest`` and ``folder``."""
    confidence: float
    overall: Mapping[str, Any]
    """The row of :func:`evalkit.stats.pass_rates` over all scenarios."""
    by_scenario: pd.DataFrame
    """Its rows by scenario; nothing measured first, then the lowest rate."""
    reliability: pd.DataFrame
    """Rows of :func:`evalkit.stats.pass_hat_k`; empty with one trial a scenario."""

    @property
    def status(self) -> Status:
        """Failed if any trial failed, else incomplete if any is, else passed."""
        states = list(self.run.trials["status"])
        return worst(states) if states else "incomplete"

    @property
    def n_failing_scenarios(self) -> int:
        """How many scenarios have a failed trial."""
        return int((self.by_scenario["n_failed"] > 0).sum())

    @property
    def trials_per_scenario(self) -> int:
        """The most trials that any scenario has."""
        return int(self.by_scenario["n_planned"].max()) if len(self.by_scenario) else 0

    def spread(self, column: str) -> Spread:
        """Describe a numeric column of the trials; unknown values are counted, not zero."""
        values = self.run.trials[column].astype("float64")
        known = values.dropna()
        median, p95 = known.quantile([0.5, 0.95]).tolist()
        return Spread(len(known), len(values), float(known.sum()), median, p95, known.max())

    def rates(self, by: str) -> pd.DataFrame:
        """Return the pass rates by a column, tag or grader, lowest first."""
        return _by_harm(pass_rates(self.run, by=by, confidence=self.confidence))


def summarise(run: Any, *, confidence: float = 0.95) -> Summary:
    """Compute what a report on a run shows.

    Parameters
    ----------
    run
        A run, as from :func:`evalkit.results.load_run`.
    confidence
        Level of every interval.

    Returns
    -------
    Summary
        Give it to the functions of :mod:`evalkit.reporting.views`.
    """
    by_scenario = pass_rates(run, by="scenario", confidence=confidence)
    most = int(by_scenario["n_planned"].max()) if len(by_scenario) else 0
    reliability = pass_hat_k(
        run, k=[k for k in sorted({*_KS, most}) if k <= max(most, 1)], confidence=confidence
    )
    overall = pass_rates(run, confidence=confidence).iloc[0]
    return Summary(
        run=run,
        confidence=confidence,
        overall={str(name): value for name, value in overall.items()},
        by_scenario=_by_harm(by_scenario),
        reliability=reliability if most > 1 else reliability.iloc[:0],
    )


def _by_harm(rates: pd.DataFrame) -> pd.DataFrame:
    """Sort rates: what could not be measured first, then the lowest."""
    return rates.sort_values(
        ["rate", "n_failed"], ascending=[True, False], na_position="first", kind="stable"
    ).reset_index(drop=True)
