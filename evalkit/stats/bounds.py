"""Bounds beside Wilson's: one-sided exact ones, and Jeffreys'.

Numbers in, bounds out. Two-sided Wilson and Clopper-Pearson are in
:mod:`evalkit.stats.intervals`. All of these assume independent trials with one
common rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.stats.intervals import Interval, clopper_pearson, wilson

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from evalkit.stats.clusters import Floats


def exact_lower_bound(n_passed: ArrayLike, n: ArrayLike, *, confidence: float = 0.95) -> Floats:
    """Return the rate that lies below the true one with at least this confidence.

    Parameters
    ----------
    n_passed, n
        Passed trials and all trials; numbers or arrays. No trials give NaN.
    confidence
        One-sided confidence level, between 0 and 1.

    Returns
    -------
    float or numpy.ndarray
        The one-sided bound of Clopper and Pearson (1934).

    Raises
    ------
    ValueError
        If a count is negative, or more passed than there were.

    Examples
    --------
    All passed is not certainty. To show 95 % takes 59 trials without a failure:

    >>> exact_lower_bound([3, 5, 10, 59, 299], [3, 5, 10, 59, 299]).round(3).tolist()
    [0.368, 0.549, 0.741, 0.95, 0.99]
    """
    return clopper_pearson(n_passed, n, confidence=_two_sided(confidence)).low


def exact_upper_bound(n_passed: ArrayLike, n: ArrayLike, *, confidence: float = 0.95) -> Floats:
    """Return the rate that lies above the true one with at least this confidence.

    Parameters and errors are those of :func:`exact_lower_bound`.

    Examples
    --------
    Not one leak in 100 trials: at most this many in the long run.

    >>> round(float(exact_upper_bound(0, 100)), 4)
    0.0295
    """
    return clopper_pearson(n_passed, n, confidence=_two_sided(confidence)).high


def jeffreys(n_passed: ArrayLike, n: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Return the Jeffreys interval of ``n_passed`` out of ``n`` independent trials.

    The equal-tailed quantiles of Beta(passed + 1/2, failed + 1/2), as they are:
    where all or none passed, the interval does not hold the observed rate.

    Parameters
    ----------
    n_passed, n
        Passed trials and all trials; numbers or arrays. No trials give NaN.
    confidence
        Two-sided confidence level, between 0 and 1.

    Raises
    ------
    ValueError
        If a count is negative, or more passed than there were.

    Notes
    -----
    Source: Brown, Cai and DasGupta (2001), Statistical Science 16:101.

    Examples
    --------
    >>> [round(float(bound), 6) for bound in jeffreys(81, 263)]
    [0.254522, 0.365647]
    """
    import numpy as np
    from scipy.special import betaincinv

    # Wilson refuses what cannot be counts, and has no bounds where nothing was measured.
    unknown = np.isnan(wilson(n_passed, n, confidence=confidence).low)
    passed, total = np.asarray(n_passed, np.float64), np.asarray(n, np.float64)
    a, b, tail = passed + 0.5, total - passed + 0.5, (1 - confidence) / 2
    low, high = betaincinv(a, b, tail), betaincinv(a, b, 1 - tail)
    return Interval(np.where(unknown, np.nan, low)[()], np.where(unknown, np.nan, high)[()])


def _two_sided(confidence: float) -> float:
    """Return the level of the two-sided interval that has this one-sided bound."""
    if not 0.5 < confidence < 1:
        raise ValueError(
            f"confidence is {confidence!r}, and must lie between .5 and 1, such as .95"
        )
    return 2 * confidence - 1
