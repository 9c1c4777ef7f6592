"""Means over scenarios and their standard errors.

Every standard error of evalkit comes from :func:`cluster_mean`. Which rows of
a frame belong together is decided in :mod:`evalkit.stats.cells`; intervals are
built from both in :mod:`evalkit.stats.intervals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.integer[Any]]

# Sums of squares below this are rounding, not spread: rates are ratios of small
# integers, so real spread is many orders of magnitude larger.
_NO_SPREAD = 1e-18


class ClusterMean(NamedTuple):
    """Means of values and what is known about their spread; one element a group."""

    mean: Floats
    """Plain mean of the values; NaN for a group without values."""
    se: Floats
    """Standard error over clusters; NaN below two clusters."""
    n: Ints
    """Number of values."""
    n_clusters: Ints
    """Number of clusters that they come from."""


def cluster_mean(
    values: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_groups: int | None = None,
) -> ClusterMean:
    """Average values and estimate the standard error when they come in clusters.

    The variance is the sandwich estimator with the correction C/(C-1) for C
    clusters: ``C/(C-1) * sum(residual sums per cluster ** 2) / n ** 2``. Where
    each value is a cluster of its own it is the usual ``var(ddof=1) / n``.

    Parameters
    ----------
    values
        One number a row (a scenario's rate, or a trial's 0/1), without NaN.
    clusters
        Label of the cluster of each value; ``None``: each is its own.
    groups
        Integer code (0, 1, ...) of the group of each value; ``None``: one group.
    n_groups
        Number of groups, where some may have no value.

    Returns
    -------
    ClusterMean
        Arrays with one element a group.

    Notes
    -----
    Assumes that clusters are independent of each other. The estimator is that
    of Liang and Zeger (1986) for a mean; Miller (2024) uses it for evaluations.

    Examples
    --------
    Two scenarios with two trials each: as four independent trials the error
    would be 0.25; counted by scenario it is 0.5.

    >>> result = cluster_mean([1, 1, 0, 0], clusters=["a", "a", "b", "b"])
    >>> float(result.mean[0]), float(result.se[0])
    (0.5, 0.5)
    """
    import numpy as np

    numbers = np.asarray(values, dtype=np.float64)
    if np.isnan(numbers).any():
        raise ValueError("values hold NaN: leave out what has no value, and count it")
    group = np.zeros(len(numbers), np.int64) if groups is None else np.asarray(groups, np.int64)
    size = _n_groups(group, n_groups)
    n = np.bincount(group, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(group, weights=numbers, minlength=size) / n
    return _with_spread(numbers - mean[group], group, mean=mean, n=n, clusters=clusters)


def _n_groups(group: Ints, n_groups: int | None) -> int:
    """Return how many groups there are, counting those without a value."""
    if n_groups is not None:
        return n_groups
    return int(group.max()) + 1 if len(group) else 1


def _with_spread(
    residuals: Floats, group: Ints, *, mean: Floats, n: Ints, clusters: ArrayLike | None
) -> ClusterMean:
    """Add the standard error over clusters to the means."""
    import numpy as np

    sums, owner = _cluster_sums(residuals, group, clusters)
    n_clusters = np.bincount(owner, minlength=len(n))
    squares = np.bincount(owner, weights=sums**2, minlength=len(n))
    squares[squares < _NO_SPREAD] = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = n_clusters / (n_clusters - 1) * squares / n**2
        se = np.where(n_clusters > 1, np.sqrt(variance), np.nan)
    return ClusterMean(mean, se, n, n_clusters)


def _cluster_sums(
    residuals: Floats, group: Ints, clusters: ArrayLike | None
) -> tuple[Floats, Ints]:
    """Sum residuals within each cluster of each group; return sums and their groups."""
    import numpy as np

    if clusters is None:
        return residuals, group
    code = codes(clusters)
    n_codes = int(code.max()) + 1 if len(code) else 1
    pairs, place = np.unique(group * n_codes + code, return_inverse=True)
    sums = np.bincount(place, weights=residuals, minlength=len(pairs)).astype(np.float64)
    return sums, pairs // n_codes


def codes(labels: Any) -> Ints:
    """Give labels the numbers 0, 1, ... in order of appearance; a missing label is a label too."""
    import numpy as np
    import pandas as pd

    found, _ = pd.factorize(pd.Series(labels), use_na_sentinel=False)
    return np.asarray(found, dtype=np.int64)
