"""Intervals of a paired difference that textbooks and other tools print.

evalkit decides with Newcombe's (:func:`~evalkit.stats.newcombe_paired`) and MOVER.
These are here to check a number that somebody else computed: all but Tango's cover
far too little where few scenarios changed sides, or all of them the same way.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from evalkit.stats.intervals import Interval, normal_quantile

Method = Literal["tango", "bonett-price", "agresti-min", "wald"]

_ADDED: dict[str, tuple[float, float]] = {
    "wald": (0.0, 0.0),
    "agresti-min": (0.5, 2.0),
    "bonett-price": (1.0, 2.0),
}
"""Pseudo-scenarios that a method adds to each changed cell, and to all."""


class _Table(NamedTuple):
    """A paired table, by what changed sides."""

    gained: float
    lost: float
    n: float


def paired_table_interval(
    newly_passing: int, newly_failing: int, *, n: int, method: Method, confidence: float = 0.95
) -> Interval:
    """Return the interval of a difference of paired rates, one trial a scenario, as others do.

    Parameters
    ----------
    newly_passing, newly_failing
        Scenarios that passed in the run only, and in its baseline only.
    n
        Scenarios in both.
    method
        ``"tango"`` (score interval, Tango 1998), ``"bonett-price"`` (2012),
        ``"agresti-min"`` (2005) or ``"wald"``.
    confidence
        Two-sided confidence level.

    Returns
    -------
    Interval
        Of the run's rate minus the baseline's, in [-1, 1].

    Raises
    ------
    ValueError
        If the counts are no counts, or the method is unknown.

    Examples
    --------
    >>> low, high = paired_table_interval(6, 16, n=161, method="tango")
    >>> round(float(low), 4), round(float(high), 4)
    (-0.124, -0.0054)
    """
    if not (newly_passing >= 0 <= newly_failing and newly_passing + newly_failing <= n and n > 0):
        raise ValueError("newly_passing and newly_failing must be counts, together at most n")
    quantile = normal_quantile(confidence)
    table = _Table(newly_passing, newly_failing, n)
    if method == "tango":
        return _tango(table, quantile)
    if method not in _ADDED:
        raise ValueError(f"method is {method!r}; it can be tango, {', '.join(_ADDED)}")
    each, all_ = _ADDED[method]
    return _symmetric(_Table(table.gained + each, table.lost + each, n + all_), quantile)


def _symmetric(table: _Table, quantile: float) -> Interval:
    """Return the estimate and as much to either side, within [-1, 1]."""
    import numpy as np

    gained, lost, n = table
    difference = (gained - lost) / n
    half = quantile * np.sqrt((gained + lost) / n - difference**2) / np.sqrt(n)
    return _interval(max(difference - half, -1.0), min(difference + half, 1.0))


def _interval(low: float, high: float) -> Interval:
    """Return two numbers as every interval here is given."""
    import numpy as np

    return Interval(np.asarray(low, np.float64)[()], np.asarray(high, np.float64)[()])


def _tango(table: _Table, quantile: float) -> Interval:
    """Return the differences at which the score test is at its quantile."""
    estimate = (table.gained - table.lost) / table.n
    return _interval(
        _root(table, quantile, inside=estimate, outside=-1.0),
        _root(table, -quantile, inside=estimate, outside=1.0),
    )


def _root(table: _Table, quantile: float, *, inside: float, outside: float) -> float:
    """Return where the score, which falls with the difference, crosses a quantile."""
    from scipy.optimize import brentq

    # At the very ends the score has no variance; a difference of 1 is its own bound.
    edge = outside * (1 - 1e-12)
    if inside == outside or (_score(table, edge) - quantile) * quantile <= 0:
        return outside
    return float(brentq(lambda d: _score(table, d) - quantile, inside, edge, xtol=1e-12))


def _score(table: _Table, difference: float) -> float:
    """Return the score statistic for a difference, at its most likely share of losses."""
    gained, lost, n = table
    b = (2 * n - gained + lost) * difference - gained - lost
    c = -lost * difference * (1 - difference)
    share = ((b**2 - 8 * n * c) ** 0.5 - b) / (4 * n)
    variance = n * (2 * share + difference * (1 - difference))
    apart = gained - lost - n * difference
    return 0.0 if apart == 0 else float(apart / max(variance, 1e-300) ** 0.5)
