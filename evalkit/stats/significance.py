"""Tests of whether two runs over the same scenarios differ: numbers in, p-values out.

McNemar's test is for one trial a scenario, the sign-flip permutation for means of
several. Neither pairs trial j with trial j: trials of a scenario have no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from evalkit.stats.clusters import Floats

McNemarMethod = Literal["mid-p", "exact", "asymptotic", "continuity-corrected"]

_BITS = 8
# Sums closer than this share of the largest possible one are ties: rates are
# ratios of small integers, so real differences of sums are far larger.
_TIE = 1e-9


def mcnemar(
    newly_passing: ArrayLike, newly_failing: ArrayLike, *, method: McNemarMethod = "mid-p"
) -> Any:
    """Return McNemar's two-sided p-value for scenarios with one trial on each side.

    Parameters
    ----------
    newly_passing
        Number of scenarios that fail in the baseline and pass in the run; a
        number or an array.
    newly_failing
        Number of scenarios that pass in the baseline and fail in the run.
    method
        ``"mid-p"`` (close to its level also for few scenarios), ``"exact"``
        (binomial, conservative), ``"asymptotic"`` or ``"continuity-corrected"``
        (both chi-squared, for many scenarios).

    Returns
    -------
    float or numpy.ndarray
        The p-value; 1 where no scenario differs, by every method.

    Raises
    ------
    ValueError
        If a count is negative or no whole number, or the method is unknown.

    Notes
    -----
    Assumes that scenarios are independent of each other. Scenarios that agree
    do not count. Source: McNemar (1947); Fagerland, Lydersen and Laake (2013),
    BMC Medical Research Methodology 13:91, who recommend the mid-p.

    Examples
    --------
    >>> round(float(mcnemar(6, 16)), 4), round(float(mcnemar(6, 16, method="exact")), 4)
    (0.0347, 0.0525)
    """
    import numpy as np

    gained, lost = (np.asarray(n, dtype=np.float64) for n in (newly_passing, newly_failing))
    if not all(((n >= 0) & (n == np.floor(n)) & np.isfinite(n)).all() for n in (gained, lost)):
        raise ValueError("newly_passing and newly_failing must be counts: 0, 1, 2, ...")
    if method not in get_args(McNemarMethod):
        raise ValueError(f"method is {method!r}, and must be {', '.join(get_args(McNemarMethod))}")
    binomial = method in ("mid-p", "exact")
    p_value = _binomial(gained, lost, method) if binomial else _chi_squared(gained, lost, method)
    return np.where(gained + lost > 0, p_value, 1.0)[()]


def _binomial(gained: Floats, lost: Floats, method: str) -> Floats:
    """Return the two-sided binomial p-value, exact or with half the weight of what was seen."""
    import numpy as np
    from scipy.special import bdtr, gammaln

    n, fewer, more = gained + lost, np.minimum(gained, lost), np.maximum(gained, lost)
    exact = np.minimum(2 * bdtr(fewer, n.astype(np.int64), 0.5), 1.0)
    if method == "exact":
        return np.asarray(exact)
    logs = gammaln(n + 1) - gammaln(fewer + 1) - gammaln(more + 1) - n * np.log(2)
    # What is as extreme as the observed lies on both sides, unless both are one.
    return np.asarray(exact - np.exp(logs) * np.where(gained == lost, 0.5, 1.0))


def _chi_squared(gained: Floats, lost: Floats, method: str) -> Floats:
    """Return the p-value of the chi-squared statistic with one degree of freedom."""
    import numpy as np
    from scipy.special import chdtrc

    correction = 1.0 if method == "continuity-corrected" else 0.0
    distance = np.maximum(np.abs(gained - lost) - correction, 0)
    return np.asarray(chdtrc(1, distance**2 / np.maximum(gained + lost, 1)), dtype=np.float64)


class SignFlip(NamedTuple):
    """What :func:`sign_flip_test` found."""

    p_value: float
    """Two-sided p-value; NaN without a difference to flip the sign of."""
    n_signs: int
    """Number of scenarios (or clusters) that differ, each with a sign to flip."""
    exact: bool
    """Whether all sign patterns were counted, rather than drawn."""


def sign_flip_test(
    differences: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> SignFlip:
    """Test by flipping signs whether differences of scenario rates centre on zero.

    If run and baseline are alike, each difference could as well have had the
    other sign. The p-value is the share of sign patterns whose mean is at least
    as far from zero as the one observed.

    Parameters
    ----------
    differences
        One difference of rates a scenario (run minus baseline), without NaN.
    clusters
        Label of the coarser cluster of each scenario, whose signs flip together;
        ``None``: each scenario is its own.
    n_resamples
        Number of patterns to draw; where there are no more patterns than this,
        all of them are counted.
    seed
        Seed of the patterns: the same input and seed give the same p-value.

    Returns
    -------
    SignFlip
        Where nothing differs the p-value is 1; without any scenario it is NaN.
        Drawn patterns give ``(1 + hits) / (1 + n_resamples)``, never 0.

    Raises
    ------
    ValueError
        If a difference is NaN or infinite, or ``n_resamples`` is below 1.

    Notes
    -----
    Assumes independent clusters. Time is proportional to scenarios times
    resamples, memory to resamples. Source: Fisher (1935), The Design of
    Experiments; Phipson and Smyth (2010) for the added 1.

    Examples
    --------
    Six scenarios, all of them worse: two of the 64 patterns are as extreme.

    >>> sign_flip_test([-0.2, -0.4, -0.2, -1.0, -0.6, -0.2])
    SignFlip(p_value=0.03125, n_signs=6, exact=True)
    """
    import numpy as np

    if n_resamples < 1:
        raise ValueError(f"n_resamples is {n_resamples}, and must be at least 1")
    moved = _by_cluster(differences, clusters)
    if moved.size == 0:
        return SignFlip(np.nan, 0, exact=True)
    limit = _TIE * np.abs(moved).sum()
    moved = moved[np.abs(moved) > limit]
    exact = 2 ** len(moved) <= n_resamples
    sums = _all_sums(moved) if exact else _drawn_sums(moved, n_resamples, seed)
    hits = int((np.abs(sums) >= np.abs(moved.sum()) - limit).sum())
    p_value = hits / len(sums) if exact else (1 + hits) / (1 + n_resamples)
    return SignFlip(p_value, len(moved), exact)


def _by_cluster(differences: ArrayLike, clusters: ArrayLike | None) -> Floats:
    """Sum the differences of each cluster."""
    import numpy as np

    from evalkit.stats.clusters import codes

    values = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("differences hold NaN: leave out scenarios without a rate on a side")
    if clusters is None:
        return values
    return np.bincount(codes(clusters), weights=values).astype(np.float64)


def _all_sums(moved: Floats) -> Floats:
    """Return the sum of every sign pattern."""
    import numpy as np

    sums = np.zeros(1)
    for difference in moved:
        sums = np.concatenate([sums + difference, sums - difference])
    return sums


def _drawn_sums(moved: Floats, n_resamples: int, seed: int) -> Floats:
    """Return the sums of random sign patterns, eight signs at a time.

    A random byte is eight signs, and looks up the sum of eight differences in a
    table of 256: an eighth of the work, and never more memory than the result.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    sums = np.zeros(n_resamples)
    for table in _tables(moved):
        sums += table[rng.integers(0, 2**_BITS, n_resamples, dtype=np.uint8)]
    return sums


def _tables(moved: Floats) -> Iterator[np.ndarray[Any, np.dtype[np.float64]]]:
    """Give the 256 signed sums of each eight differences."""
    import numpy as np

    patterns = np.arange(2**_BITS)[:, None] >> np.arange(_BITS) & 1
    signs = 1.0 - 2.0 * patterns
    padded = np.append(moved, np.zeros(-len(moved) % _BITS)).reshape(-1, _BITS)
    return (signs @ eight for eight in padded)
