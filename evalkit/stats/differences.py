"""Confidence intervals for the difference of two rates: numbers in, bounds out.

All three combine the Wilson bounds of the two rates (the method of variance
estimates recovery, MOVER), so that a difference is never certain only because
nothing varied. Frames are handled in :mod:`evalkit.stats.paired`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalkit.stats.clusters import ClusterMean, cluster_mean
from evalkit.stats.intervals import (
    Interval,
    clustered_interval,
    normal_quantile,
    quantile_over,
    score_interval,
    wilson,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from evalkit.stats.clusters import Floats

_ENOUGH_PAIRS = 5


def newcombe_independent(
    n_passed: ArrayLike,
    n: ArrayLike,
    *,
    n_passed_baseline: ArrayLike,
    n_baseline: ArrayLike,
    confidence: float = 0.95,
) -> Interval:
    """Return Newcombe's score interval for the difference of two independent rates.

    Parameters
    ----------
    n_passed, n
        Passed trials and all trials of the run; numbers or arrays.
    n_passed_baseline, n_baseline
        The same of the baseline.
    confidence
        Two-sided confidence level, between 0 and 1.

    Returns
    -------
    Interval
        Bounds of run minus baseline, inside [-1, 1]; NaN where a side has no trial.

    Raises
    ------
    ValueError
        If a count is negative, or more passed than there were.

    Notes
    -----
    Assumes that all trials are independent, as those of one scenario are; runs
    over the same scenarios are paired and need :func:`mover_difference`. Source:
    method 10 of Newcombe (1998), Statistics in Medicine 17:873.

    Examples
    --------
    >>> low, high = newcombe_independent(56, 70, n_passed_baseline=48, n_baseline=80)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0524, 0.3339)
    """
    import numpy as np

    run = wilson(n_passed, n, confidence=confidence)
    baseline = wilson(n_passed_baseline, n_baseline, confidence=confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.asarray(n_passed, np.float64) / np.asarray(n, np.float64)
        other = np.asarray(n_passed_baseline, np.float64) / np.asarray(n_baseline, np.float64)
    return _combined(_Margin(rate, *run), _Margin(other, *baseline), np.zeros(()))


def newcombe_paired(
    newly_passing: ArrayLike,
    newly_failing: ArrayLike,
    *,
    both_passed: ArrayLike,
    both_failed: ArrayLike,
    confidence: float = 0.95,
) -> Interval:
    """Return Newcombe's score interval for the difference of two paired rates.

    Parameters
    ----------
    newly_passing, newly_failing
        Numbers of scenarios that only the run, or only the baseline, passed;
        numbers or arrays.
    both_passed, both_failed
        Numbers of scenarios on which the two agree.
    confidence
        Two-sided confidence level, between 0 and 1.

    Returns
    -------
    Interval
        Bounds of run minus baseline, inside [-1, 1]; NaN without any scenario.

    Raises
    ------
    ValueError
        If a count is negative.

    Notes
    -----
    Assumes independent scenarios with one trial on each side. Source: method 10
    of Newcombe (1998), Statistics in Medicine 17:2635, with its continuity
    correction of the correlation. Counted exactly for 5 to 100 scenarios, rates of
    .8 and .9 and 10 to 30 % that differ, it covers at least .953 of .95; where all
    that differ do so one way and rates are near .5, it may fall to .915.

    Examples
    --------
    >>> low, high = newcombe_paired(6, 16, both_passed=59, both_failed=80)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.1186, -0.0046)
    """
    import numpy as np

    counts = np.broadcast_arrays(newly_passing, newly_failing, both_passed, both_failed)
    gained, lost, passed, failed = (np.asarray(count, dtype=np.float64) for count in counts)
    if not all((count >= 0).all() for count in (gained, lost, passed, failed)):
        raise ValueError("the numbers of scenarios must be 0 or more")
    n, quantile = gained + lost + passed + failed, normal_quantile(confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate, other = (passed + gained) / n, (passed + lost) / n
        covariance = (passed * failed - gained * lost) / n**2
    run, baseline = (_Margin(x, *score_interval(x, n, quantile)) for x in (rate, other))
    return _combined(run, baseline, _corrected_correlation(covariance, rates=(rate, other), n=n))


def mover_difference(
    rates: ArrayLike,
    baseline: ArrayLike,
    *,
    n_trials: ArrayLike = 1,
    n_trials_baseline: ArrayLike = 1,
    clusters: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_groups: int | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Return the interval of a mean difference over scenarios that both sides ran.

    Parameters
    ----------
    rates, baseline
        One rate a scenario in [0, 1], in the same order of scenarios; leave out
        scenarios without a rate on either side.
    n_trials, n_trials_baseline
        Number of measured trials behind each rate; one number, or one a scenario.
    clusters
        Label of the coarser cluster of each scenario; ``None``: each is its own.
    groups, n_groups
        Integer code (0, 1, ...) of the group of each scenario, and how many
        groups there are; ``None``: one group, and scalar bounds.
    confidence
        Two-sided confidence level, between 0 and 1.

    Returns
    -------
    Interval
        Bounds of run minus baseline, inside [-1, 1]; NaN below two clusters.

    Raises
    ------
    ValueError
        If the two sides differ in length, a rate lies outside [0, 1] or is NaN,
        or a rate has less than one trial.

    Notes
    -----
    MOVER (Newcombe 1998; Zou and Donner 2008) with the clustered Wilson-t bounds
    of each side (:func:`clustered_wilson`) and the correlation of the scenario
    rates, over clusters where these are coarser; below five, a positive correlation
    is not used. With one trial on both sides of every scenario, and no coarser
    clusters, it is :func:`newcombe_paired`.

    The target is the mean difference over scenarios that users may bring, of
    which these are a sample. Where few scenarios changed, and all one way, its
    two tails are unequal: read the two-sided interval, not a one-sided bound.
    In simulations of 5 to 1,000 scenarios with 1 to 10 trials (changes of 5
    points) no setting covered less than .90 of .95, most of them .94 to .98; a
    one-sided drop of 10 points on 20 scenarios, ten trials each, came to .88.

    Examples
    --------
    >>> low, high = mover_difference([0.8, 0.4, 1.0, 0.0], [1.0, 0.8, 1.0, 0.2],
    ...                              n_trials=5, n_trials_baseline=5)
    >>> round(float(low), 3), round(float(high), 3)
    (-0.695, 0.468)
    """
    import numpy as np

    x, y = _checked_rates(rates, baseline)
    trials = [_checked_trials(k, x) for k in (n_trials, n_trials_baseline)]

    def spread_of(values: Floats) -> ClusterMean:
        return cluster_mean(values, clusters=clusters, groups=groups, n_groups=n_groups)

    run, other, apart = spread_of(x), spread_of(y), spread_of(x - y)
    group = np.zeros(len(x), np.int64) if groups is None else np.asarray(groups, np.int64)
    totals = [np.bincount(group, weights=k, minlength=len(run.n)).astype(float) for k in trials]
    alone = (totals[0] == run.n_clusters) & (totals[1] == run.n_clusters)
    quantile = quantile_over(run.n_clusters, alone=alone, confidence=confidence)
    margins = [
        _Margin(side.mean, *clustered_interval(side, k, confidence=confidence, quantile=quantile))
        for side, k in zip((run, other), totals, strict=True)
    ]
    bounds = _combined(margins[0], margins[1], _correlation(run, other, apart, alone=alone))
    return Interval(bounds.low[0], bounds.high[0]) if groups is None else bounds


class _Margin(NamedTuple):
    """A rate with the bounds of its own interval."""

    rate: Floats
    low: Floats
    high: Floats


def _combined(run: _Margin, baseline: _Margin, correlation: Floats) -> Interval:
    """Recover the variance of the difference from the bounds of each side."""
    import numpy as np

    difference = run.rate - baseline.rate
    below = _distance(run.rate - run.low, baseline.high - baseline.rate, correlation)
    above = _distance(run.high - run.rate, baseline.rate - baseline.low, correlation)
    low, high = (np.clip(bound, -1, 1) for bound in (difference - below, difference + above))
    return Interval(low[()], high[()])


def _distance(run: Floats, baseline: Floats, correlation: Floats) -> Floats:
    """Return the length of the third side of a triangle."""
    import numpy as np

    squares = run**2 - 2 * correlation * run * baseline + baseline**2
    return np.asarray(np.sqrt(np.maximum(squares, 0)), dtype=np.float64)


def _correlation(
    run: ClusterMean, baseline: ClusterMean, apart: ClusterMean, *, alone: NDArray[np.bool_]
) -> Floats:
    """Return the correlation of the two means, 0 where a side has no spread.

    It follows from the standard errors of both sides and of their difference, so
    that it rests on the same clusters.
    """
    import numpy as np

    covariance = (run.se**2 + baseline.se**2 - apart.se**2) / 2
    spread = (run.se > 0) & (baseline.se > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        plain = np.where(spread, np.clip(covariance / (run.se * baseline.se), -1, 1), 0.0)
        # Two pairs always correlate perfectly, and would all but cancel the interval.
        plain = np.where(run.n_clusters < _ENOUGH_PAIRS, np.minimum(plain, 0), plain)
        # One trial each: n - 1 turns the variance of the mean into that of an outcome.
        single = covariance * (run.n - 1)
    corrected = _corrected_correlation(single, rates=(run.mean, baseline.mean), n=run.n)
    return np.where(alone, corrected, plain)


def _corrected_correlation(
    covariance: Floats, *, rates: tuple[Floats, Floats], n: ArrayLike
) -> Floats:
    """Return the correlation of two outcomes, a positive one shrunk for continuity."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        shrunk = np.maximum(covariance - 1 / (2 * np.asarray(n, np.float64)), 0)
        kept = np.where(covariance > 0, shrunk, covariance)
        scale = np.sqrt(rates[0] * (1 - rates[0]) * rates[1] * (1 - rates[1]))
        return np.where(scale > 0, np.clip(kept / scale, -1, 1), 0.0)


def _checked_rates(rates: ArrayLike, baseline: ArrayLike) -> tuple[Floats, Floats]:
    """Return the rates of both sides, which must be of the same scenarios."""
    import numpy as np

    x, y = (np.atleast_1d(np.asarray(values, dtype=np.float64)) for values in (rates, baseline))
    if x.shape != y.shape:
        raise ValueError(
            f"rates has {x.size} scenarios and baseline {y.size}; both must hold the same "
            "scenarios in the same order"
        )
    if not all(((side >= 0) & (side <= 1)).all() for side in (x, y)):
        raise ValueError("rates must lie in [0, 1]; leave out scenarios without a rate on a side")
    return x, y


def _checked_trials(n_trials: ArrayLike, rates: Floats) -> Floats:
    """Return the number of trials behind each rate."""
    import numpy as np

    trials = np.broadcast_to(np.asarray(n_trials, dtype=np.float64), rates.shape)
    if not (trials >= 1).all():
        raise ValueError("n_trials must be at least 1 for each rate")
    return trials
