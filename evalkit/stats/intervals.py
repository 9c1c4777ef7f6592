"""Confidence intervals for proportions and for means of scenario rates.

Numbers in, bounds out; all functions are vectorised. Frames are handled in
:mod:`evalkit.stats.rates` and :mod:`evalkit.stats.reliability`, standard errors
in :mod:`evalkit.stats.clusters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalkit.stats.clusters import ClusterMean, cluster_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from evalkit.stats.clusters import Floats, Ints


class Interval(NamedTuple):
    """Lower and upper bounds: floats for scalar input, otherwise arrays."""

    low: Floats
    high: Floats


def wilson(n_passed: ArrayLike, n: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval of ``n_passed`` out of ``n`` independent trials.

    Parameters
    ----------
    n_passed
        Number of passed trials; a number or an array.
    n
        Number of trials; 0 gives NaN bounds, because nothing was measured.
    confidence
        Two-sided confidence level, between 0 and 1.

    Returns
    -------
    Interval
        ``low`` and ``high``, both inside [0, 1].

    Raises
    ------
    ValueError
        If a count is negative, or more passed than there were.

    Notes
    -----
    Assumes independent trials with one common rate. Several trials of several
    scenarios are not that: use :func:`clustered_wilson`. Source: Wilson (1927);
    Newcombe (1998), Statistics in Medicine 17:857.

    Examples
    --------
    All five passed, which is no proof of certainty:

    >>> low, high = wilson(5, 5)
    >>> round(float(low), 3), float(high)
    (0.566, 1.0)
    """
    import numpy as np

    passed, total = _counts(n_passed, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = passed / total
    return score_interval(rate, total, normal_quantile(confidence))


def clopper_pearson(n_passed: ArrayLike, n: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Return the exact (Clopper-Pearson) interval of ``n_passed`` out of ``n`` trials.

    It never covers less than it says, and is wider than Wilson's for it.
    Parameters, errors and assumptions are those of :func:`wilson`. Source:
    Clopper and Pearson (1934).

    Examples
    --------
    >>> low, high = clopper_pearson(0, 20)
    >>> float(low), round(float(high), 4)
    (0.0, 0.1684)
    """
    import numpy as np
    from scipy.special import betaincinv

    passed, total = _counts(n_passed, n)
    tail = (1 - checked_confidence(confidence)) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(passed > 0, betaincinv(passed, total - passed + 1, tail), 0.0)
        high = np.where(passed < total, betaincinv(passed + 1, total - passed, 1 - tail), 1.0)
    nothing = total == 0
    return Interval(np.where(nothing, np.nan, low)[()], np.where(nothing, np.nan, high)[()])


def clustered_wilson(
    rates: ArrayLike,
    *,
    n_trials: ArrayLike,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Return the clustered Wilson-t interval of a mean of scenario rates.

    Parameters
    ----------
    rates
        One rate a scenario, in [0, 1]; leave out scenarios without a rate.
    n_trials
        Number of measured trials behind each rate; one number or one a scenario.
    clusters
        Coarser clusters (scenarios about one document, say); ``None``: each
        scenario is its own.
    confidence
        Two-sided confidence level, between 0 and 1.

    Returns
    -------
    Interval
        NaN bounds below two clusters: one cluster shows no spread.

    Notes
    -----
    Wilson's interval with the effective sample size ``m (1 - m) / se ** 2``,
    kept between the number of clusters and the number of trials, and Student's
    t with clusters - 1 degrees of freedom. No spread at all counts as one
    observation a cluster. With one trial in each cluster it is plain Wilson.

    The target is the mean rate over scenarios that users may bring, of which
    these are a sample. Below ten clusters the interval is too wide to be of
    much use and covers a little less than it says. Source: an adaptation of
    Korn and Graubard (1998), chosen by simulation.

    Examples
    --------
    Four scenarios, five trials each:

    >>> low, high = clustered_wilson([1.0, 0.8, 1.0, 0.2], n_trials=5)
    >>> round(float(low), 3), round(float(high), 3)
    (0.197, 0.973)
    """
    import numpy as np

    values = np.atleast_1d(np.asarray(rates, dtype=np.float64))
    if np.isnan(values).any() or ((values < 0) | (values > 1)).any():
        raise ValueError("rates must lie in [0, 1]; leave out scenarios without a rate")
    trials = np.broadcast_to(np.asarray(n_trials, dtype=np.float64), values.shape)
    if (trials < 1).any():
        raise ValueError("n_trials must be at least 1 for each rate")
    spread = cluster_mean(values, clusters=clusters)
    bounds = clustered_interval(spread, np.array([trials.sum()]), confidence=confidence)
    return Interval(bounds.low[0], bounds.high[0])


def clustered_interval(
    spread: ClusterMean, n_trials: Floats, *, confidence: float, quantile: Floats | None = None
) -> Interval:
    """Return :func:`clustered_wilson` for each group of ``spread``, or with another quantile."""
    import numpy as np

    effective = effective_size(spread.mean, spread.se, spread.n_clusters)
    effective = np.clip(effective, spread.n_clusters, np.maximum(n_trials, spread.n_clusters))
    if quantile is None:
        alone = n_trials == spread.n_clusters
        quantile = quantile_over(spread.n_clusters, alone=alone, confidence=confidence)
    return score_interval(spread.mean, _from_two(effective, spread.n_clusters), quantile)


def cluster_count_interval(spread: ClusterMean, *, confidence: float) -> Interval:
    """Return Wilson's interval that counts each cluster as one observation."""
    sizes = _from_two(spread.n_clusters, spread.n_clusters)
    return score_interval(spread.mean, sizes, normal_quantile(confidence))


def fixed_suite_interval(
    rates: Floats, n_trials: Floats, groups: Ints, *, n_groups: int, confidence: float
) -> Interval:
    """Return intervals for the mean rate of exactly these scenarios, one a group.

    Only the noise of trials counts: ``sum(r (1 - r) / (k - 1)) / n ** 2`` plus
    the variance of one evenly mixed scenario, because few trials often show no
    spread where there is some. Student's t with ``sum(k - 1)`` degrees of
    freedom; never less than the trials themselves as effective size. NaN where
    a scenario has a single trial. In a simulation (2 to 100 scenarios, 2 to 10
    trials, 2,000 repeats a cell) no cell covered less than .943 of .95.
    """
    import numpy as np

    def total(weights: Floats) -> Floats:
        return np.bincount(groups, weights=weights, minlength=n_groups).astype(np.float64)

    n = np.bincount(groups, minlength=n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total(rates) / n
        per_trial = total(1 / n_trials)
        variance = total(rates * (1 - rates) / (n_trials - 1)) + 0.25 * per_trial / n
        effective = np.maximum(mean * (1 - mean) * n**2 / variance, n**2 / per_trial)
    quantile = student_quantile(confidence, total(n_trials - 1))
    repeated = np.bincount(groups, weights=n_trials < 2, minlength=n_groups) == 0
    return score_interval(mean, np.where(repeated & (n > 0), effective, np.nan), quantile)


def effective_size(mean: Floats, se: Floats, fallback: Ints) -> Floats:
    """Return how many independent trials would have this standard error."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(se > 0, mean * (1 - mean) / se**2, fallback)


def score_interval(rate: Floats, n: ArrayLike, quantile: ArrayLike) -> Interval:
    """Return Wilson's bounds for a rate, a (possibly fractional) size and a quantile."""
    import numpy as np

    size = np.asarray(n, dtype=np.float64)
    q = np.asarray(quantile, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shrink = 1 + q**2 / size
        centre = (rate + q**2 / (2 * size)) / shrink
        half = q / shrink * np.sqrt(rate * (1 - rate) / size + q**2 / (4 * size**2))
    # Rounding may leave the estimate an ulp outside at 0 and at 1.
    low = np.where(rate <= 0, 0.0, np.clip(centre - half, 0, rate))
    high = np.where(rate >= 1, 1.0, np.clip(centre + half, rate, 1))
    unknown = np.isnan(centre)
    return Interval(np.where(unknown, np.nan, low)[()], np.where(unknown, np.nan, high)[()])


def normal_quantile(confidence: float) -> float:
    """Return the two-sided quantile of the normal distribution."""
    from scipy.special import ndtri

    return float(ndtri((1 + checked_confidence(confidence)) / 2))


def student_quantile(confidence: float, df: ArrayLike) -> Floats:
    """Return the two-sided quantile of Student's t; NaN without a degree of freedom."""
    import numpy as np
    from scipy.special import stdtrit

    freedom = np.asarray(df, dtype=np.float64)
    level = (1 + checked_confidence(confidence)) / 2
    found = stdtrit(np.where(freedom > 0, freedom, 1.0), level)
    return np.asarray(np.where(freedom > 0, found, np.nan), dtype=np.float64)


def quantile_over(n_clusters: Ints, *, alone: NDArray[np.bool_], confidence: float) -> Floats:
    """Return Student's quantile over clusters; the normal one where each is a single trial."""
    import numpy as np

    student = student_quantile(confidence, n_clusters - 1)
    return np.where(alone, normal_quantile(confidence), student)


def checked_confidence(confidence: float) -> float:
    """Return a confidence level that lies strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, and must lie between 0 and 1, such as .95")
    return confidence


def _from_two(size: Floats | Ints, n_clusters: Ints) -> Floats:
    """Blank out sizes that rest on fewer than two clusters."""
    import numpy as np

    return np.where(n_clusters > 1, size, np.nan)


def _counts(n_passed: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Return both counts as floats, refusing what cannot be counts."""
    import numpy as np

    passed, total = np.asarray(n_passed, np.float64), np.asarray(n, np.float64)
    if not ((passed >= 0) & (passed <= total)).all():
        raise ValueError("n_passed must lie between 0 and n")
    return passed, total
