"""What a report on two sides says, computed once and then only shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from evalkit.baselines import DEFAULT_FOLDER, Baseline
from evalkit.errors import UsageError
from evalkit.gating import Check, Verdict, gate
from evalkit.reporting.sides import Side, find_side, name_of, unlike
from evalkit.results import Run
from evalkit.stats import compare, compare_scenarios, detectable_drops, resolution_text

if TYPE_CHECKING:
    import pandas as pd

CONTRACT: Final = "contract"
"""The lane in which nothing is estimated."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run beside what it is compared with, for the views of a report."""

    run: Run
    baseline: Side
    """A pinned baseline, or the other run."""
    verdict: Verdict | None
    """The gate's; ``None`` where two single runs are compared and nothing is gated."""
    overall: Mapping[str, Any]
    """The row of :func:`evalkit.stats.compare` over all paired scenarios."""
    scenarios: pd.DataFrame
    """What :func:`evalkit.stats.compare_scenarios` gives."""
    resolution: str
    """Which drops the suite can detect; empty in the contract lane."""
    cautions: tuple[str, ...]
    """In what two single runs were not measured alike."""
    margin: float
    confidence: float

    @property
    def is_pinned(self) -> bool:
        """Whether the run is compared with a pinned baseline."""
        return isinstance(self.baseline, Baseline)

    @property
    def is_scripted(self) -> bool:
        """Whether the run is of the contract lane, where nothing is estimated."""
        return self.run.manifest.lane == CONTRACT

    @property
    def other(self) -> str:
        """Name the other side, with what it is."""
        return f"{'baseline' if self.is_pinned else 'run'} {name_of(self.baseline)}"

    @property
    def regression(self) -> Check | None:
        """The check of the gate that compared the two pass rates, if it got so far."""
        checks = self.verdict.checks if self.verdict else ()
        return next((check for check in checks if check.name == "regression"), None)

    @property
    def n_scenarios(self) -> int:
        """Scenarios that are planned on either side."""
        return len(set(self.run.trials["scenario"]) | set(self.baseline.trials["scenario"]))

    @property
    def n_compared(self) -> int:
        """Scenarios that are the same, with a rate on both sides."""
        return int(self.overall["n_scenarios"])

    @property
    def n_unrated(self) -> int:
        """Scenarios that are the same, but without a rate on a side."""
        return len(self.unrated)

    @property
    def n_not_compared(self) -> int:
        """Scenarios that were added, removed or changed."""
        return int(sum(self.overall[f"n_{word}"] for word in ("added", "removed", "changed")))

    @property
    def compared(self) -> pd.DataFrame:
        """The scenarios that are compared, those that lost most first."""
        found = self.scenarios.loc[self.scenarios["difference"].notna()]
        return found.sort_values("difference", kind="stable", ignore_index=True)

    @property
    def unrated(self) -> pd.DataFrame:
        """The scenarios that are the same, but without a rate on a side."""
        same = self.scenarios["change"] == "same"
        return self.scenarios.loc[same & self.scenarios["difference"].isna()]

    def by(self, part: str) -> pd.DataFrame | None:
        """Compare by tag or grader, what lost most first; ``None`` where one side knows none."""
        if self.is_scripted or not all(_knows(side, part) for side in (self.run, self.baseline)):
            return None
        rows = compare(self.run, self.baseline, by=part, confidence=self.confidence)
        return rows.sort_values("difference", kind="stable", ignore_index=True)


def compare_with(
    run: Run,
    baseline: str | os.PathLike[str] | Side,
    *,
    folder: str = DEFAULT_FOLDER,
    margin: float = 0.05,
    floor: float | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Compute what a report on a run and its baseline shows.

    Parameters
    ----------
    run
        The run that is judged.
    baseline
        A pinned baseline, by name or by its file: then the gate judges. Or
        another run, or its directory: then the two are only compared, save that
        in the contract lane its rule, which needs no baseline, is applied.
    folder
        Where named baselines lie.
    margin, floor, confidence
        As in :func:`evalkit.gating.gate`.

    Returns
    -------
    Comparison
        Give it to the functions of :mod:`evalkit.reporting.comparing`.

    Raises
    ------
    UsageError
        If there is no such baseline, a run is compared with itself, or a floor
        is asked for where nothing is gated.
    BaselineError, LedgerError
        If what is there cannot be used.
    """
    other = find_side(baseline, folder=folder)
    if isinstance(other, Run):
        _refuse_two_runs(run, other, floor)
    rules = {"margin": margin, "floor": floor, "confidence": confidence}
    verdict = _verdict(run, other, rules)
    overall = compare(run, other, confidence=confidence).iloc[0]
    scenarios = compare_scenarios(run, other)
    return Comparison(
        run=run,
        baseline=other,
        verdict=verdict,
        overall={str(name): value for name, value in overall.items()},
        scenarios=scenarios,
        resolution=verdict.resolution if verdict else _resolution(other, scenarios, confidence),
        cautions=tuple(unlike(run, other)) if isinstance(other, Run) else (),
        margin=margin,
        confidence=confidence,
    )


def _refuse_two_runs(run: Run, other: Run, floor: float | None) -> None:
    """Refuse what cannot be asked of two single runs."""
    if run.id == other.id:
        raise UsageError(f"run {run.id} would be compared with itself; name another as baseline")
    if floor is not None:
        raise UsageError(
            "floor is a rule of the gate, and two single runs are not gated: name a pinned "
            "baseline, leave floor out, or ask the gate: evalkit gate RUN --floor RATE"
        )


def _verdict(run: Run, other: Side, rules: Mapping[str, Any]) -> Verdict | None:
    """Ask the gate where its verdict means one: not about two single runs."""
    if isinstance(other, Baseline):
        return gate(run, baseline=other, **rules)
    return gate(run) if run.manifest.lane == CONTRACT else None


def _resolution(other: Side, scenarios: pd.DataFrame, confidence: float) -> str:
    """Say which drops the scenarios that two runs share can show; empty where there is none."""
    measured = scenarios.loc[(scenarios["change"] == "same") & (scenarios["n_measured"] > 0)]
    if not len(measured):
        return ""
    drops = detectable_drops(
        other,
        n_scenarios=len(measured),
        n_trials=float(measured["n_measured"].mean()),
        confidence=confidence,
        sides=2,
    )
    return resolution_text(drops)


def _knows(side: Side, part: str) -> bool:
    """Tell whether a side has tags or grades at all."""
    if part == "tag":
        return bool(side.trials["tags"].map(len).any())
    return bool(len(side.grades))
