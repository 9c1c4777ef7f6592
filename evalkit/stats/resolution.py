"""What a suite can resolve: the smallest drops it can see, and what more would take.

Frames for a run or for a plan, and the sentence for a report. The arithmetic is
in :mod:`evalkit.stats.power`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalkit.stats.cells import By
from evalkit.stats.notes import FEW_SCENARIOS, Notes
from evalkit.stats.planning import Rows, Sizes, known_or_assumed, plans, plans_for_drops
from evalkit.stats.power import (
    Sides,
    few_break_drop,
    power_quantile,
    scenarios_for_few_break,
    scenarios_for_uniform,
    trials_for_few_break,
    trials_for_uniform,
    uniform_drop,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from evalkit.stats.clusters import Floats


def detectable_drops(  # noqa: PLR0913 - each is one thing that a plan says
    run: Any = None,
    *,
    by: By = None,
    n_scenarios: ArrayLike | None = None,
    n_trials: ArrayLike | None = None,
    n_trials_baseline: ArrayLike | None = None,
    rate: float | None = None,
    icc: float | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    sides: Sides = 1,
) -> pd.DataFrame:
    """Return the smallest drops of the pass rate that a comparison would see.

    There are two, because a drop that all scenarios share is much easier to see
    than one of the same size that comes from a few broken scenarios.

    Parameters
    ----------
    run
        The baseline: a run, a baseline, or the frame of its trials. ``None``:
        plan with assumed numbers; then ``rate``, ``n_scenarios`` and
        ``n_trials`` are needed.
    by
        As in :func:`evalkit.stats.pass_rates`; only with a run.
    n_scenarios, n_trials, n_trials_baseline
        Scenarios, and trials of each in the new run and in the baseline; numbers
        or lists of equal length, one row each. Left out: as many as ``run`` has;
        without a run the baseline has as many trials as the new run.
    rate
        Pass rate of the baseline; only without a run.
    icc
        Intra-class correlation: share of the variance of outcomes that lies
        between scenarios. Left out: measured where scenarios have two trials or
        more, else .5, and the note says so.
    power
        Chance that the drop is seen, at least .5.
    confidence, sides
        Confidence of the test. ``sides=1``: only a drop counts. ``sides=2``: a
        drop is seen when the two-sided interval of the difference excludes 0.

    Returns
    -------
    pandas.DataFrame
        One row a group and plan: the columns of ``by``; ``n_scenarios``;
        ``n_trials`` and ``n_trials_baseline`` (harmonic means where scenarios
        differ); ``rate``; ``within_variance`` (of a trial around its scenario's
        rate); ``drop_uniform`` (every scenario gets worse by it);
        ``drop_few_break`` (a few scenarios fall to 0); both as fractions, .13 is
        13 points, NaN where no drop can be seen; and ``note``, which says why.

    Raises
    ------
    ValueError
        If a number makes no sense or is missing, or a column is unknown.

    Notes
    -----
    ``SE ** 2 = (between + within / n_trials + within / n_trials_baseline) / n``
    (Miller 2024), times the sum of the normal quantiles. ``between``, the
    variance of the scenarios' true differences, is 0 for a uniform drop and
    ``d E[p ** 2] / E[p] - d ** 2`` where a share of the scenarios breaks, and d
    is solved for. A uniform drop is never given below ``1 / (n k / z ** 2 + 1 /
    rate)``, because an agent that got worse does not stay perfectly repeatable.
    Scenarios that share a cluster are assumed to break together.

    In a simulation of evalkit's paired interval (20 to 200 scenarios, 1 to 10
    trials, rate .8, ICC .5, power .8 asked) a few broken scenarios of the given
    size were seen in 76 to 89 % of runs, a uniform drop in only 52 to 78 %, the
    least at 20 scenarios: take the uniform figure as the best case.

    Examples
    --------
    >>> plans = detectable_drops(n_scenarios=[20, 50, 200], n_trials=[3, 3, 5],
    ...                          rate=0.8, icc=0.5)
    >>> plans[["n_scenarios", "n_trials", "drop_uniform", "drop_few_break"]].round(2)
       n_scenarios  n_trials  drop_uniform  drop_few_break
    0           20       3.0          0.13            0.26
    1           50       3.0          0.08            0.14
    2          200       5.0          0.03            0.05
    """
    import numpy as np

    quantile = power_quantile(power, confidence=confidence, sides=sides)
    basis = known_or_assumed(run, by=by, rate=rate, icc=icc)
    rows = plans(basis, Sizes(n_scenarios, n_trials, n_trials_baseline))
    plan, notes, measurable = rows.plan, rows.notes(), rows.measurable
    uniform, few_break = uniform_drop(plan, quantile), few_break_drop(plan, quantile)
    notes.add(measurable & np.isnan(uniform), "no drop that all scenarios share would be seen")
    alone = measurable & (plan.n_clusters < 2)
    unseen = measurable & ~alone & np.isnan(few_break)
    notes.add(unseen, "not even all scenarios breaking would be seen")
    notes.add(alone, "one scenario or cluster: there are no few that could break")
    few = measurable & ~alone & (plan.n_clusters < FEW_SCENARIOS)
    notes.add(few, "too few scenarios for more than a rough figure")
    return rows.groups.assign(
        n_scenarios=plan.n_scenarios.astype("int64"),
        n_trials=plan.n_trials,
        n_trials_baseline=plan.n_trials_baseline,
        rate=plan.rate,
        within_variance=plan.within,
        drop_uniform=uniform,
        drop_few_break=few_break,
        note=notes.texts(),
    )


def scenarios_needed(  # noqa: PLR0913 - each is one thing that a plan says
    drop: ArrayLike,
    run: Any = None,
    *,
    by: By = None,
    n_trials: int | None = None,
    rate: float | None = None,
    icc: float | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    sides: Sides = 1,
) -> pd.DataFrame:
    """Return how many scenarios a comparison needs in order to see a drop.

    Parameters
    ----------
    drop
        The drop, as a fraction (.05 is 5 points), or several.
    run, by, rate, icc, power, confidence, sides
        As in :func:`detectable_drops`.
    n_trials
        Trials of each scenario, on both sides. Left out: as many as ``run`` has.

    Returns
    -------
    pandas.DataFrame
        One row a group and drop: the columns of ``by``, ``drop``, ``n_trials``,
        ``n_scenarios_uniform``, ``n_scenarios_few_break`` (whole numbers; NaN
        where the drop cannot happen) and ``note``.

    Raises
    ------
    ValueError
        If a number makes no sense or is missing, or a column is unknown.

    Examples
    --------
    >>> scenarios_needed([0.05, 0.10], rate=0.8, icc=0.5, n_trials=3)[
    ...     ["drop", "n_scenarios_uniform", "n_scenarios_few_break"]]
       drop  n_scenarios_uniform  n_scenarios_few_break
    0  0.05                132.0                  237.0
    1  0.10                 33.0                   83.0
    """
    quantile = power_quantile(power, confidence=confidence, sides=sides)
    basis = known_or_assumed(run, by=by, rate=rate, icc=icc)
    unit = 1 if basis.planned else None
    rows, drops = plans_for_drops(drop, basis, Sizes(unit, n_trials, n_trials))
    plan = rows.plan
    return rows.groups.assign(
        drop=drops,
        n_trials=plan.n_trials,
        n_scenarios_uniform=scenarios_for_uniform(drops, plan, quantile),
        n_scenarios_few_break=scenarios_for_few_break(drops, plan, quantile),
        note=_possible(rows, drops).texts(),
    )


def trials_needed(  # noqa: PLR0913 - each is one thing that a plan says
    drop: ArrayLike,
    run: Any = None,
    *,
    by: By = None,
    n_scenarios: int | None = None,
    rate: float | None = None,
    icc: float | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    sides: Sides = 1,
) -> pd.DataFrame:
    """Return how many trials of each scenario a comparison needs in order to see a drop.

    More trials do not make up for few scenarios: where no number of trials is
    enough, the number is NaN and the note says how many scenarios it takes.

    Parameters
    ----------
    drop, run, by, rate, icc, power, confidence, sides
        As in :func:`scenarios_needed`.
    n_scenarios
        Number of scenarios. Left out: as many as ``run`` has.

    Returns
    -------
    pandas.DataFrame
        One row a group and drop: the columns of ``by``, ``drop``,
        ``n_scenarios``, ``n_trials_uniform``, ``n_trials_few_break`` (of each
        scenario, on both sides) and ``note``.

    Raises
    ------
    ValueError
        If a number makes no sense or is missing, or a column is unknown.

    Examples
    --------
    >>> needed = trials_needed([0.10, 0.25], rate=0.8, icc=0.5, n_scenarios=20)
    >>> needed[["drop", "n_trials_uniform", "n_trials_few_break"]]
       drop  n_trials_uniform  n_trials_few_break
    0  0.10               5.0                 NaN
    1  0.25               1.0                 5.0
    >>> needed["note"].iloc[0]
    'no number of trials shows a few broken scenarios: that takes 56 scenarios or more'
    """
    import numpy as np

    quantile = power_quantile(power, confidence=confidence, sides=sides)
    basis = known_or_assumed(run, by=by, rate=rate, icc=icc)
    rows, drops = plans_for_drops(drop, basis, Sizes(n_scenarios, 1, 1))
    plan = rows.plan
    few_break = trials_for_few_break(drops, plan, quantile)
    notes = _possible(rows, drops)
    noiseless = plan._replace(within=np.zeros_like(plan.within))
    notes.add(
        rows.measurable & np.isnan(few_break) & (drops <= plan.rate),
        "no number of trials shows a few broken scenarios: that takes {n:.0f} scenarios or more",
        n=scenarios_for_few_break(drops, noiseless, quantile),
    )
    return rows.groups.assign(
        drop=drops,
        n_scenarios=plan.n_scenarios.astype("int64"),
        n_trials_uniform=trials_for_uniform(drops, plan, quantile),
        n_trials_few_break=few_break,
        note=notes.texts(),
    )


def resolution_text(drops: pd.DataFrame | pd.Series[Any]) -> str:
    """Say in one sentence what a suite can resolve.

    Parameters
    ----------
    drops
        One row of :func:`detectable_drops`.

    Raises
    ------
    ValueError
        If it is not exactly one row.

    Examples
    --------
    >>> resolution_text(detectable_drops(n_scenarios=20, n_trials=3, rate=0.8, icc=0.5))
    'these 20 scenarios x 3 trials detect a 13-point drop; a few broken scenarios: 26'
    """
    row = _one_row(drops)
    n, k = int(row["n_scenarios"]), float(row["n_trials"])
    if n == 0 or row["within_variance"] != row["within_variance"]:
        return f"what this run can detect is unknown: {row['note']}"
    plural = n != 1
    suite = f"these {n} scenarios" if plural else "this 1 scenario"
    size = f"{suite} x {k:.3g} trial{'' if k == 1 else 's'}"
    uniform, few = row["drop_uniform"], row["drop_few_break"]
    if uniform != uniform and few != few:
        return f"{size} cannot detect any drop" + (f": {row['note']}" if row["note"] else "")
    seen = f"{_article(uniform)}-point drop" if uniform == uniform else "no drop shared by all"
    broken = _points(few) if few == few else "not detected"
    return f"{size} detect{'' if plural else 's'} {seen}; a few broken scenarios: {broken}"


def _possible(rows: Rows, drops: Floats) -> Notes:
    """Return the notes of each row, with the drops that the rate leaves no room for."""
    notes = rows.notes()
    notes.add(
        rows.measurable & (drops > rows.plan.rate),
        "the rate is only {rate:.3g}: it cannot drop so far",
        rate=rows.plan.rate,
    )
    return notes


def _one_row(drops: pd.DataFrame | pd.Series[Any]) -> Any:
    """Return the single row of a frame."""
    import pandas as pd

    if not isinstance(drops, pd.DataFrame):
        return drops
    if len(drops) != 1:
        raise ValueError(f"expected one row of detectable_drops, got {len(drops)}")
    return drops.iloc[0]


def _points(drop: float) -> str:
    """Return a fraction in points: whole ones, or tenths below one point."""
    points = 100 * drop
    return f"{points:.0f}" if points >= 1 else f"{max(points, 0.1):.1f}"


def _article(drop: float) -> str:
    """Return points with the article that they are spoken with."""
    points = _points(drop)
    vowel = points.startswith("8") or points in ("11", "18")
    return f"{'an' if vowel else 'a'} {points}"
