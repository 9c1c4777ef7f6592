"""What the gate sees of a run, or of the frame of its trials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from evalkit.errors import UsageError
from evalkit.gating.integrity import contradictions, runs_in

if TYPE_CHECKING:
    import pandas as pd

_STATUSES: Final = ("passed", "failed", "incomplete")
_LANES: Final = ("contract", "live", "quality", "imported")


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
    problems: tuple[str, ...] = ()
    """Where the run directory contradicts itself."""

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
        """Give the same evidence with every incomplete trial and grade counted as failed."""
        worst = self.trials["status"].astype(object).replace("incomplete", "failed")
        grades = self.grades
        if grades is not None:
            passed = grades["passed"].astype("boolean").fillna(value=False)
            grades = grades.assign(passed=passed)
        return replace(self, trials=self.trials.assign(status=worst), grades=grades)


def evidence_of(run: Any) -> Evidence:
    """Look at a run, or at a frame of trials.

    Raises
    ------
    UsageError
        If it is neither, or a row of the frame says nothing that can be decided by.
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
    _refuse_unclear(trials)
    grades = getattr(run, "grades", None)
    return Evidence(
        name=_only(trials, "run_id") or getattr(run, "name", ""),
        suite=_only(trials, "suite"),
        lane=_only(trials, "lane"),
        trials=_with_demands(trials, run),
        grades=grades if isinstance(grades, pd.DataFrame) else None,
        problems=tuple(contradictions(run)),
    )


def _refuse_unclear(trials: pd.DataFrame) -> None:
    """Refuse words that are none of ours: what is not counted must not count as passed."""
    if trials["scenario"].isna().any():
        raise UsageError("trials: there are rows without a scenario")
    words = {"status": _STATUSES} | ({"lane": _LANES} if "lane" in trials.columns else {})
    for column, known in words.items():
        found = trials[column] if column == "status" else trials[column].dropna()
        unknown = found.loc[~found.isin(known)]
        if len(unknown):
            raise UsageError(
                f"trials: {column} {unknown.iloc[0]!r} is not one of {', '.join(known)}"
            )


def _only(trials: pd.DataFrame, column: str) -> str:
    """Give the one value of a column; empty where there are none or several."""
    values = set(trials[column]) if column in trials.columns else set()
    return str(values.pop()) if len(values) == 1 else ""


def _with_demands(trials: pd.DataFrame, run: Any) -> pd.DataFrame:
    """Add what the suite demands; of several demands of one scenario, the highest holds."""
    plan = [entry for one in runs_in(run) for entry in one.manifest.plan]
    must: Any = trials.get("must_pass", False)
    least: Any = trials.get("min_pass_rate", float("nan"))
    if plan:
        must = trials["scenario"].isin({entry.id for entry in plan if entry.must_pass})
        asked = sorted(
            (entry.min_pass_rate, entry.id) for entry in plan if entry.min_pass_rate is not None
        )
        least = trials["scenario"].map({name: rate for rate, name in asked})
    told = trials.assign(must_pass=must, min_pass_rate=least)
    told = told.astype({"must_pass": bool, "min_pass_rate": "float64"})
    by_scenario = told.groupby("scenario", sort=False, observed=True)
    highest = by_scenario[["must_pass", "min_pass_rate"]].transform("max")
    return told.assign(must_pass=highest["must_pass"], min_pass_rate=highest["min_pass_rate"])
