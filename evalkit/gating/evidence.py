"""What the gate sees of a run, or of the frame of its trials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalkit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Evidence:
    """One run's trials and grades, and what its suite demands of each scenario."""

    name: str
    suite: str
    lane: str
    """Empty where the trials do not say, or not alike."""
    trials: pd.DataFrame
    """With the columns ``must_pass`` and ``min_pass_rate``; one row a planned trial."""
    grades: pd.DataFrame | None = None

    @property
    def n_planned(self) -> int:
        """Trials that were planned."""
        return len(self.trials)

    @property
    def n_incomplete(self) -> int:
        """Trials without a result."""
        return int((self.trials["status"] == "incomplete").sum())

    @property
    def n_scenarios(self) -> int:
        """Scenarios that were planned."""
        return int(self.trials["scenario"].nunique())

    def with_failures_for_incomplete(self) -> Evidence:
        """Give the same evidence with every incomplete trial counted as failed."""
        worst = self.trials["status"].replace("incomplete", "failed")
        return replace(self, trials=self.trials.assign(status=worst))


def evidence_of(run: Any) -> Evidence:
    """Look at a run, or at a frame of trials.

    Raises
    ------
    UsageError
        If it is neither.
    """
    import pandas as pd

    trials = run if isinstance(run, pd.DataFrame) else getattr(run, "trials", None)
    if not isinstance(trials, pd.DataFrame):
        raise UsageError(
            f"the gate looks at a run or at the frame of its trials, not at {type(run).__name__}; "
            "load one with: ek.load_run(folder)"
        )
    missing = [name for name in ("scenario", "status") if name not in trials.columns]
    if missing:
        raise UsageError(f"trials: there is no column {missing[0]!r}")
    grades = getattr(run, "grades", None)
    return Evidence(
        name=_only(trials, "run_id") or getattr(run, "name", ""),
        suite=_only(trials, "suite"),
        lane=_only(trials, "lane"),
        trials=_with_demands(trials, getattr(run, "manifest", None)),
        grades=grades if isinstance(grades, pd.DataFrame) else None,
    )


def _only(trials: pd.DataFrame, column: str) -> str:
    """Give the one value of a column; empty where there are none or several."""
    values = set(trials[column]) if column in trials.columns else set()
    return str(values.pop()) if len(values) == 1 else ""


def _with_demands(trials: pd.DataFrame, manifest: Any) -> pd.DataFrame:
    """Add what the suite demands of each scenario."""
    plan = {entry.id: entry for entry in getattr(manifest, "plan", ())}
    if plan:
        must = trials["scenario"].map(lambda name: plan[name].must_pass)
        least = trials["scenario"].map(lambda name: plan[name].min_pass_rate)
        return trials.assign(must_pass=must.astype(bool), min_pass_rate=least.astype("float64"))
    silent = {"must_pass": False, "min_pass_rate": float("nan")}
    return trials.assign(**{k: v for k, v in silent.items() if k not in trials.columns})
