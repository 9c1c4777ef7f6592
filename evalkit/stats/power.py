"""How small a drop can be seen: the arithmetic of power and sample size.

Numbers in, numbers out. The frames for a run or a plan, and the sentence for a
report, are in :mod:`evalkit.stats.resolution`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from evalkit.stats.clusters import Floats

Sides = Literal[1, 2]


class Plan(NamedTuple):
    """A comparison of two runs over the same scenarios; one element a plan."""

    rate: Floats
    """Mean pass rate of the baseline."""
    within: Floats
    """Mean variance of one trial around its scenario's own rate."""
    n_scenarios: Floats
    n_clusters: Floats
    """Groups of scenarios that break together; as many as scenarios where each is its own."""
    n_trials: Floats
    """Trials of each scenario in the new run."""
    n_trials_baseline: Floats

    @property
    def noise(self) -> Floats:
        """Variance that trials add to one scenario's difference."""
        return self.within * (1 / self.n_trials + 1 / self.n_trials_baseline)

    @property
    def concentration(self) -> Floats:
        """``E[p ** 2] / E[p]``, never below what a rate without any spread has."""
        import numpy as np

        with np.errstate(invalid="ignore", divide="ignore"):
            return np.maximum((self.rate - self.within) / self.rate, self.rate)


def sample_size(
    difference: ArrayLike,
    *,
    between_variance: ArrayLike,
    within_variance: ArrayLike = 0.0,
    n_trials: ArrayLike = 1,
    power: float = 0.8,
    confidence: float = 0.95,
    sides: Sides = 2,
) -> Floats:
    """Return how many scenarios a paired comparison needs for a difference of mean rates.

    Parameters
    ----------
    difference
        True difference of the mean rates, above 0.
    between_variance
        Variance, over scenarios, of the true difference of their rates.
    within_variance
        Mean variance of a trial around its scenario's rate, the same on both sides.
    n_trials
        Trials of each scenario, on each side.
    power
        Chance to see the difference.
    confidence, sides
        Confidence of the test, and whether it looks in one direction or in two.

    Returns
    -------
    float or numpy.ndarray
        Not rounded; round up.

    Raises
    ------
    ValueError
        If a difference is not above 0, a variance below 0, or a level not in (0, 1).

    Notes
    -----
    ``(z_test + z_power) ** 2 * (between + 2 * within / n_trials) / difference ** 2``
    with normal quantiles (Miller 2024). From about twenty scenarios on the normal
    approximation is close; below, a few more are needed.

    Examples
    --------
    Miller's example: 969 questions for three points.

    >>> round(float(sample_size(0.03, between_variance=1 / 9)), 4)
    968.9975
    """
    import numpy as np

    d, between, within, k = (
        np.asarray(value, dtype=np.float64)
        for value in (difference, between_variance, within_variance, n_trials)
    )
    if not ((d > 0).all() and (between >= 0).all() and (within >= 0).all() and (k >= 1).all()):
        raise ValueError("difference must be above 0, variances at least 0, n_trials at least 1")
    quantile = power_quantile(power, confidence=confidence, sides=sides)
    return np.asarray(quantile**2 * (between + 2 * within / k) / d**2)[()]


def independent_sample_size(
    rate: ArrayLike,
    other: ArrayLike,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    sides: Sides = 2,
) -> Floats:
    """Return how many independent trials each of two unpaired groups needs.

    For two agents on different scenarios, one trial each. On the same scenarios
    use :func:`sample_size`: pairing needs fewer.

    Parameters
    ----------
    rate, other
        The two pass rates to be told apart, different and in [0, 1].
    power, confidence, sides
        As in :func:`sample_size`.

    Returns
    -------
    float or numpy.ndarray
        Trials in each group, not rounded; round up.

    Raises
    ------
    ValueError
        If the rates are equal or outside [0, 1].

    Notes
    -----
    ``((z_test + z_power) / h) ** 2 * 2`` with Cohen's (1988) arcsine effect size
    ``h = 2 asin(sqrt(rate)) - 2 asin(sqrt(other))``.

    Examples
    --------
    >>> round(float(independent_sample_size(0.8, 0.7)), 2)
    291.69
    """
    import numpy as np

    p, q = np.asarray(rate, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if not ((np.minimum(p, q) >= 0) & (np.maximum(p, q) <= 1) & (p != q)).all():
        raise ValueError("the two rates must lie in [0, 1] and differ")
    effect = 2 * (np.arcsin(np.sqrt(p)) - np.arcsin(np.sqrt(q)))
    quantile = power_quantile(power, confidence=confidence, sides=sides)
    return np.asarray(2 * (quantile / effect) ** 2)[()]


def confidence_per_look(confidence: float = 0.95, *, looks: int) -> float:
    """Return the confidence of each look, so that all of them together keep ``confidence``.

    A comparison that is made again after more trials has more than one chance
    to be wrong. Bonferroni's correction shares the allowed error between the
    looks; their number must be fixed before the first.

    Raises
    ------
    ValueError
        If ``looks`` is no positive integer, or ``confidence`` not in (0, 1).

    Examples
    --------
    >>> round(confidence_per_look(0.95, looks=3), 4)
    0.9833
    """
    from evalkit.stats.intervals import checked_confidence

    if isinstance(looks, bool) or not isinstance(looks, int) or looks < 1:
        raise ValueError(f"looks is {looks!r}, and must be a positive integer")
    return 1 - (1 - checked_confidence(confidence)) / looks


def power_quantile(power: float, *, confidence: float, sides: Sides) -> float:
    """Return the sum of the normal quantiles of the test and of its power."""
    from scipy.special import ndtri

    from evalkit.stats.intervals import checked_confidence

    if sides not in (1, 2):
        raise ValueError(f"sides is {sides!r}, and must be 1 (only a drop) or 2 (any difference)")
    if not 0.5 <= power < 1:
        raise ValueError(f"power is {power!r}, and must lie in [.5, 1), such as .8")
    tail = (1 - checked_confidence(confidence)) / sides
    return float(ndtri(1 - tail) + ndtri(power))


def uniform_drop(plan: Plan, quantile: float) -> Floats:
    """Return the smallest visible drop that all scenarios share; NaN beyond the rate.

    Never below what a perfectly repeatable baseline could show: an agent that
    got worse everywhere is no longer perfectly repeatable.
    """
    import numpy as np

    q2 = quantile**2
    with np.errstate(invalid="ignore", divide="ignore"):
        drop = np.sqrt(q2 * plan.noise / plan.n_scenarios)
        floor = 1 / (plan.n_scenarios * plan.n_trials / q2 + 1 / plan.rate)
        return _reachable(np.maximum(drop, floor), plan.rate)


def few_break_drop(plan: Plan, quantile: float) -> Floats:
    """Return the smallest visible drop that comes from a few broken scenarios.

    NaN beyond the rate, and where one cluster shows no spread. A share d / rate
    of the scenarios falls to 0, so the differences vary by ``d * E[p ** 2] / E[p]
    - d ** 2``, which makes the drop the root of a quadratic.
    """
    import numpy as np

    square = plan.n_clusters / quantile**2 + 1
    linear = plan.concentration
    constant = plan.noise * plan.n_clusters / plan.n_scenarios
    with np.errstate(invalid="ignore", divide="ignore"):
        drop = (linear + np.sqrt(linear**2 + 4 * square * constant)) / (2 * square)
        return np.where(plan.n_clusters > 1, _reachable(drop, plan.rate), np.nan)


def scenarios_for_uniform(drop: Floats, plan: Plan, quantile: float) -> Floats:
    """Return how many scenarios :func:`uniform_drop` needs to reach a drop."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        needed = plan.noise / drop**2
        floor = (1 / drop - 1 / plan.rate) / plan.n_trials
        return _counted(quantile**2 * np.maximum(needed, floor), drop, plan.rate)


def scenarios_for_few_break(drop: Floats, plan: Plan, quantile: float) -> Floats:
    """Return how many scenarios :func:`few_break_drop` needs to reach a drop.

    With infinitely many trials only the between-scenario part would remain.
    """
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        between = _between(drop, plan) * plan.n_scenarios / plan.n_clusters
        needed = quantile**2 * (between + plan.noise) / drop**2
        return _counted(needed, drop, plan.rate)


def trials_for_uniform(drop: Floats, plan: Plan, quantile: float) -> Floats:
    """Return how many trials a scenario, on both sides, :func:`uniform_drop` needs."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        needed = 2 * plan.within / drop**2
        floor = 1 / drop - 1 / plan.rate
        enough = quantile**2 * np.maximum(needed, floor) / plan.n_scenarios
        return _counted(enough, drop, plan.rate)


def trials_for_few_break(drop: Floats, plan: Plan, quantile: float) -> Floats:
    """Return how many trials :func:`few_break_drop` needs; NaN where none are enough."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        room = plan.n_clusters * drop**2 / quantile**2 - _between(drop, plan)
        noise = room * plan.n_scenarios / plan.n_clusters
        enough = np.where(room > 0, 2 * plan.within / noise, np.nan)
        return _counted(enough, drop, plan.rate)


def _between(drop: Floats, plan: Plan) -> Floats:
    """Return the variance of the differences when a share drop / rate of scenarios breaks."""
    return drop * plan.concentration - drop**2


def _reachable(drop: Floats, rate: Floats) -> Floats:
    """Blank out drops that are larger than the rate they would start from."""
    import numpy as np

    return np.where((drop <= rate) & (rate > 0), drop, np.nan)


def _counted(number: Floats, drop: Floats, rate: Floats) -> Floats:
    """Round up to a whole number of at least one; NaN where the drop cannot happen."""
    import numpy as np

    # The slack keeps rounding errors from asking for one more than the exact answer.
    return np.where(drop <= rate, np.maximum(np.ceil(number - 1e-9), 1), np.nan)
