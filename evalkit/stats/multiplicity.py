"""P-values of several comparisons, adjusted for their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from evalkit.stats.clusters import Floats

Adjustment = Literal["holm", "bh"]


def adjust_p_values(p_values: ArrayLike, *, method: Adjustment = "holm") -> Floats:
    """Adjust p-values for the number of comparisons that they come from.

    Parameters
    ----------
    p_values
        One p-value a comparison. NaN stands for a comparison without a test: it
        stays NaN and does not count as a comparison.
    method
        ``"holm"``: the chance of any false alarm among all comparisons stays
        below the level; for whatever may block a build. ``"bh"``
        (Benjamini-Hochberg): the expected share of false alarms among the
        findings does; for lists of where to look.

    Returns
    -------
    numpy.ndarray
        Adjusted p-values in the same order; compare them with the level itself.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1] or the method is unknown.

    Notes
    -----
    Holm (1979) assumes nothing about how the comparisons depend on each other;
    Benjamini and Hochberg (1995) that they are independent or positively so.

    Examples
    --------
    >>> adjust_p_values([0.01, 0.04, float("nan"), 0.03]).round(3).tolist()
    [0.03, 0.06, nan, 0.06]
    >>> adjust_p_values([0.01, 0.04, 0.03], method="bh").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    import numpy as np

    given = np.array(p_values, dtype=np.float64, ndmin=1)
    known = ~np.isnan(given)
    if not ((given[known] >= 0) & (given[known] <= 1)).all():
        raise ValueError("p_values must lie between 0 and 1; NaN stands for no test")
    if method not in get_args(Adjustment):
        raise ValueError(f"method is {method!r}, and must be holm or bh")
    given[known] = (_holm if method == "holm" else _benjamini_hochberg)(given[known])
    return given


def _holm(p_values: Floats) -> Floats:
    """Step down: the smallest p counts for all comparisons, the next for one less."""
    import numpy as np

    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted


def _benjamini_hochberg(p_values: Floats) -> Floats:
    """Step up: each p is scaled by comparisons / rank, and no smaller p ends above it."""
    import numpy as np

    order = np.argsort(-p_values, kind="stable")
    size = len(order)
    factors = size / np.arange(size, 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.minimum.accumulate(p_values[order] * factors), 1.0)
    return adjusted
