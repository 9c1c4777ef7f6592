"""A run against its baseline: not worse by more than the margin, worse, or not to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.gating.evidence import Evidence
from evalkit.gating.reference import Reference
from evalkit.gating.rules import MIN_SCENARIOS, Rules
from evalkit.gating.verdicts import Check, Outcome, as_floats
from evalkit.terminal import percent

if TYPE_CHECKING:
    import pandas as pd


class _Decision(NamedTuple):
    """What an interval of a difference says."""

    outcome: Outcome
    words: str


def check_regression(evidence: Evidence, reference: Reference, rules: Rules) -> list[Check]:
    """Compare the run's pass rate with the baseline's, scenario by scenario."""
    from evalkit.stats import compare

    row = compare(evidence, reference.data, confidence=rules.level).iloc[0]
    return [regression_check(row, what="pass rate", name=reference.name, rules=rules)]


def regression_check(row: pd.Series[Any], *, what: str, name: str, rules: Rules) -> Check:
    """Decide by one row of :func:`evalkit.stats.compare`."""
    difference, low, high = as_floats(
        row["difference"], row["difference_low"], row["difference_high"]
    )
    title = "regression" if what == "pass rate" else f"regression of {what}"
    if difference is None or low is None or high is None:
        why = row["note"] or "there is no interval"
        said = f"{what} cannot be compared with baseline {name!r}: {why}"
        return Check(title, "INCONCLUSIVE", said, limit=-rules.margin)
    decision = _decide(low, high, margin=rules.margin)
    if row["n_scenarios"] < MIN_SCENARIOS:
        decision = _Decision("INCONCLUSIVE", _too_few(row["n_scenarios"]))
    said = (
        f"{what} {percent(row['rate'])} against {percent(row['rate_baseline'])} in baseline "
        f"{name!r}: {points(difference)} points, {_level(rules)} interval {points(low)} to "
        f"{points(high)}: {decision.words}"
    )
    told = {"estimate": difference, "low": low, "high": high, "limit": -rules.margin}
    return Check(title, decision.outcome, said, **told)


def _decide(low: float, high: float, *, margin: float) -> _Decision:
    """Apply the rule: not inferior first, so that a tiny proven drop within the margin passes."""
    bar = f"{100 * margin:g} points"
    if low > -margin:
        lower = "; it is lower, but within the margin" if high < 0 else ""
        return _Decision("PASS", f"not worse by {bar} or more{lower}")
    if high < 0:
        return _Decision("FAIL", "worse than the baseline")
    return _Decision("INCONCLUSIVE", f"a drop of {bar} is neither shown nor ruled out")


def _too_few(n: int) -> str:
    return f"{n} scenario(s) to compare say too little; at least {MIN_SCENARIOS} are needed"


def points(difference: float) -> str:
    """Give a difference of rates in percentage points, with its sign."""
    return f"{100 * difference:+.1f}"


def _level(rules: Rules) -> str:
    return f"{100 * rules.level:.3g}%"
