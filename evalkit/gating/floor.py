"""A run's pass rate, or mean grade, against a bar that it must clear."""

from __future__ import annotations

from typing import NamedTuple

from evalkit.gating.evidence import Evidence
from evalkit.gating.rules import MIN_SCENARIOS, Rules
from evalkit.gating.verdicts import Check, as_floats
from evalkit.terminal import percent


class _Level(NamedTuple):
    """An estimate with its interval."""

    what: str
    estimate: float | None
    low: float | None
    high: float | None
    n_scenarios: int


def check_floor(evidence: Evidence, rules: Rules) -> list[Check]:
    """Hold all scenarios of a run to the floor; nothing where none is asked for.

    The floor is a contract about the estimate. Whether the interval proves it is told
    beside it, and decides only where ``floor_proven`` asks for that.
    """
    if rules.floor is None:
        return []
    level = _mean_grade(evidence, rules) if rules.floor_on == "mean_grade" else None
    return [_held(level or _pass_rate(evidence, rules), rules.floor, proven=rules.floor_proven)]


def _held(level: _Level, floor: float, *, proven: bool) -> Check:
    what, estimate, low, high, n = level
    numbers = {"estimate": estimate, "low": low, "high": high, "limit": floor}
    if estimate is None:
        return Check("floor", "INVALID", f"there is no {what}: nothing was measured", limit=floor)
    told = f"{what} {percent(estimate)} over {n} scenario(s){_between(low, high)}"
    bar = f"the floor of {percent(floor)}"
    if estimate < floor:
        sure = "proven" if high is not None and high < floor else "not proven: too few trials"
        return Check("floor", "FAIL", f"{told} missed {bar} ({sure})", **numbers)
    if n < MIN_SCENARIOS:
        few = f"with fewer than {MIN_SCENARIOS} scenarios that says too little"
        return Check("floor", "INCONCLUSIVE", f"{told} is above {bar}, but {few}", **numbers)
    if low is None or low < floor:
        if proven:
            said = (
                f"{told} is above {bar}, but the interval reaches below it: too few trials to tell"
            )
            return Check("floor", "INCONCLUSIVE", said, **numbers)
        return Check("floor", "PASS", f"{told} is above {bar} (not proven)", **numbers)
    return Check("floor", "PASS", f"{told} is above {bar} (proven)", **numbers)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"


def _pass_rate(evidence: Evidence, rules: Rules) -> _Level:
    from evalkit.stats import pass_rates

    row = pass_rates(evidence, confidence=rules.level).iloc[0]
    estimate, low, high = as_floats(row["rate"], row["rate_low"], row["rate_high"])
    return _Level("pass rate", estimate, low, high, int(row["n_scenarios"]))


def _mean_grade(evidence: Evidence, rules: Rules) -> _Level:
    """Average grades over each trial, trials over scenarios; a trial that lacks one has none."""
    from evalkit.stats import clustered_wilson

    if evidence.grades is None or not len(evidence.grades):
        return _Level("mean grade", None, None, None, 0)
    keys = [k for k in ("run_id", "scenario", "trial") if k in evidence.trials.columns]
    by_trial = evidence.grades.groupby(keys)["value"].agg(lambda v: v.mean(skipna=False))
    rows = evidence.trials.merge(by_trial.reset_index(), on=keys, how="left")
    # What failed for another reason than a grade (it crashed, say) is worth nothing, whatever
    # its grades; a frame that names no reason codes has no grade for such a trial.
    code = rows.get("reason_code", "grader_failed")
    crashed = (rows["status"] == "failed") & (rows["value"].isna() | (code != "grader_failed"))
    known = rows["value"].mask(crashed, 0.0).mask(rows["status"] == "incomplete")
    values = known.groupby(rows["scenario"])
    means, counts = values.mean().dropna(), values.count()
    if not len(means):
        return _Level("mean grade", None, None, None, 0)
    bounds = clustered_wilson(means, n_trials=counts[means.index], confidence=rules.level)
    low, high = as_floats(bounds.low, bounds.high)
    return _Level("mean grade", float(means.mean()), low, high, len(means))
