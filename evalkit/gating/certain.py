"""What needs no statistics: must-pass scenarios, thresholds of scenarios, leaked canaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from evalkit.gating.evidence import Evidence
from evalkit.gating.verdicts import Check, Outcome
from evalkit.terminal import some_of

if TYPE_CHECKING:
    import pandas as pd

CANARY: Final = "canary"
"""Name of the grader that finds leaks."""


def check_certain(evidence: Evidence) -> list[Check]:
    """Check what a single trial can decide, or what a scenario's own threshold says."""
    return [
        *_must_pass(evidence.trials),
        *_thresholds(evidence.trials),
        *_leaks(evidence.grades),
    ]


def _must_pass(trials: pd.DataFrame) -> Iterator[Check]:
    """Fail on one failed trial of a scenario that must pass."""
    wanted = trials.loc[trials["must_pass"].astype(bool)]
    failed = wanted.loc[wanted["status"] == "failed"]
    incomplete = wanted.loc[wanted["status"] == "incomplete"]
    if len(failed):
        yield Check("must_pass", "FAIL", f"must pass, and failed: {_counted(failed, wanted)}")
    if len(incomplete):
        said = f"must pass, and could not be measured: {_counted(incomplete, wanted)}"
        yield Check("must_pass", "INVALID", said)
    if len(wanted) and not len(failed) and not len(incomplete):
        n = wanted["scenario"].nunique()
        yield Check("must_pass", "PASS", f"every trial of {n} must-pass scenario(s) passed")


def _counted(some: pd.DataFrame, all_: pd.DataFrame) -> str:
    """Name scenarios with how many of their trials are meant."""
    planned, counts = Counter(all_["scenario"]), Counter(some["scenario"])
    named = [f"{name} ({n} of {planned[name]} trials)" for name, n in counts.items()]
    return some_of(named)


def _thresholds(trials: pd.DataFrame) -> Iterator[Check]:
    """Hold scenarios that name a rate to it."""
    wanted = trials.loc[trials["min_pass_rate"].notna()]
    for scenario, rows in wanted.groupby("scenario", sort=False):
        yield _threshold(str(scenario), rows)


def _threshold(scenario: str, rows: pd.DataFrame) -> Check:
    """Hold one scenario's rate to its threshold, incomplete trials counted against it."""
    limit = float(rows["min_pass_rate"].iloc[0])
    passed, failed = ((rows["status"] == word).sum() for word in ("passed", "failed"))
    measured, name = passed + failed, f"min_pass_rate of {scenario}"
    if not measured:
        return Check(name, "INVALID", f"{scenario}: no trial could be measured", limit=limit)
    rate = float(passed / measured)
    told = f"{scenario}: {passed} of {measured} trials passed, asked for is {limit:.0%}"
    if rate < limit:
        return Check(name, "FAIL", told, estimate=rate, limit=limit)
    if passed / len(rows) < limit:
        said = f"{told}; {len(rows) - measured} could not be measured, and it hangs on them"
        return Check(name, "INCONCLUSIVE", said, estimate=rate, limit=limit)
    return Check(name, "PASS", told, estimate=rate, limit=limit)


def _leaks(grades: pd.DataFrame | None) -> Iterator[Check]:
    """Fail on one leaked canary, whatever the rates say; what was not searched has not passed."""
    if grades is None or not len(grades):
        return
    searched = grades.loc[grades["grader"] == CANARY]
    passed = searched["passed"].astype("boolean")
    for outcome, which, words in (
        ("FAIL", ~passed.fillna(value=True), "a planted secret leaked in"),
        ("INVALID", passed.isna(), "not searched to the end for planted secrets:"),
    ):
        names = list(dict.fromkeys(searched.loc[which.astype(bool), "scenario"].astype(str)))
        if names:
            yield Check(CANARY, cast("Outcome", outcome), f"{words} {some_of(names)}")
