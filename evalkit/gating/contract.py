"""The rule of the contract lane: every planned trial passed.

Trials there are copies of one scripted trial, so there is nothing to estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalkit.gating.evidence import Evidence
from evalkit.gating.verdicts import Check
from evalkit.terminal import one_line, some_of

if TYPE_CHECKING:
    import pandas as pd

NAME: Final = "every trial passed"
_LINE: Final = 200


def check_contract(evidence: Evidence) -> list[Check]:
    """Hold every planned trial to having passed."""
    trials = evidence.trials
    if not len(trials):
        return [Check(NAME, "INVALID", "no trial was planned, so nothing was measured")]
    failed = trials.loc[trials["status"] == "failed"]
    incomplete = trials.loc[trials["status"] == "incomplete"]
    checks = []
    if len(failed):
        checks.append(Check(NAME, "FAIL", _told(failed, len(trials), "failed")))
    if len(incomplete):
        said = _told(incomplete, len(trials), "could not be measured")
        checks.append(Check(NAME, "INVALID", said))
    return checks or [Check(NAME, "PASS", f"{_all(len(trials))} passed")]


def _all(n: int) -> str:
    return "the one planned trial" if n == 1 else f"all {n} planned trials"


def _told(trials: pd.DataFrame, n_planned: int, what: str) -> str:
    """Count trials, and name the first of them with their reasons."""
    reasons = trials["reason"] if "reason" in trials.columns else [""] * len(trials)
    named = [
        f"{scenario} ({one_line(str(reason).strip().partition(chr(10))[0], limit=_LINE)})"
        if reason
        else str(scenario)
        for scenario, reason in zip(trials["scenario"], reasons, strict=True)
    ]
    distinct = list(dict.fromkeys(named))
    said = some_of(distinct, separator="; ")
    return f"{len(trials)} of {n_planned} trials {what}: {said}"
