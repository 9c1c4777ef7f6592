"""The beta-binomial posterior of a mean pass rate and its correlation, on a grid.

Scenario rates come from a beta distribution, passed trials from a binomial; the
posterior of its mean is summed up on a grid, so nothing is sampled and the
result is exact to the grid and always the same. Numbers in, bounds out; the
default interval of evalkit is in :mod:`evalkit.stats.intervals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.stats.intervals import Interval, checked_confidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from evalkit.stats.clusters import Floats, Ints

N_MEANS, N_CORRELATIONS = 199, 40
# Bounds the memory: at most so many rows of the whole grid at a time.
_BLOCK = 256
# Axes of the grid.
_MEAN, _CORRELATION = 1, 2


def beta_binomial_interval(
    n_passed: ArrayLike,
    n_trials: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_groups: int | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Return the credible interval of the mean pass rate over scenarios.

    Parameters
    ----------
    n_passed, n_trials
        Passed and measured trials of each scenario; ``n_trials`` may be one
        number for all. They may differ between scenarios.
    groups
        Integer code (0, 1, ...) of the group of each scenario; ``None``: one
        group, and scalar bounds.
    n_groups
        Number of groups, where some may have no scenario; those get NaN.
    confidence
        Probability of the interval, between 0 and 1.

    Returns
    -------
    Interval
        Equal-tailed bounds, widened to hold the mean of the scenario rates where
        they would not (after all have passed, or none).

    Raises
    ------
    ValueError
        If a count is negative or no whole number, a scenario has no trial, or
        more passed than there were.

    Notes
    -----
    Uniform priors for the mean and for the intra-class correlation, on a grid of
    199 x 40. With one trial a scenario the posterior of the mean is Beta(passed
    + 1, failed + 1). Assumes that scenarios are independent and that their rates
    follow a beta distribution. Where they do not (six in ten always pass, three
    pass at .7, one never), 95 % intervals were seen to cover 88.6 %, which is why
    it is no default. A grid cell is half a point wide, which is coarse for many
    thousands of scenarios. Source: the clustered model of Bowyer et al. (2025),
    computed without sampling.

    Examples
    --------
    >>> low, high = beta_binomial_interval([5, 4, 5, 1], 5)
    >>> round(float(low), 3), round(float(high), 3)
    (0.378, 0.924)
    """
    import numpy as np

    checked_confidence(confidence)
    table = _table(n_passed, n_trials, groups=groups, n_groups=n_groups)
    low, high = _quantiles(_posterior(table, _MEAN), confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = table.counts @ (table.kinds[:, 0] / table.kinds[:, 1]) / table.counts.sum(1)
    bounds = Interval(np.minimum(low, rate), np.maximum(high, rate))
    return Interval(bounds.low[0], bounds.high[0]) if groups is None else bounds


def correlation_interval(
    n_passed: ArrayLike,
    n_trials: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_groups: int | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Return the credible interval of the intra-class correlation of outcomes.

    Parameters, errors, model and grid are those of :func:`beta_binomial_interval`.

    Returns
    -------
    Interval
        Equal-tailed bounds inside [0, 1]; nearly all of it where no scenario has
        two trials, because nothing was seen.

    Notes
    -----
    In a simulation (5, 20 and 100 scenarios, 2 to 10 trials, rates .5 to .95,
    correlations .05 to .9, 600 repeats a cell) it held the truth in 95 to 96 %
    on average, and in at least 84, 90 and 93 % of any cell. A jackknife interval
    of the usual estimate went down to 33 % at 20 scenarios and 68 % at 100.

    Examples
    --------
    Scenarios that always agree with themselves are highly correlated:

    >>> low, high = correlation_interval([5, 0, 5, 5, 0, 5], 5)
    >>> round(float(low), 2), round(float(high), 2)
    (0.57, 1.0)
    """
    checked_confidence(confidence)
    table = _table(n_passed, n_trials, groups=groups, n_groups=n_groups)
    bounds = _quantiles(_posterior(table, _CORRELATION), confidence)
    return Interval(bounds.low[0], bounds.high[0]) if groups is None else bounds


def _counts(n_passed: ArrayLike, n_trials: ArrayLike) -> tuple[Ints, Ints]:
    """Return both counts as integers, refusing what cannot be counts."""
    import numpy as np

    passed = np.atleast_1d(np.asarray(n_passed, np.float64))
    trials = np.broadcast_to(np.asarray(n_trials, np.float64), passed.shape)
    if not ((passed >= 0) & (passed <= trials) & (trials >= 1)).all():
        raise ValueError("n_passed must lie between 0 and n_trials, and n_trials be at least 1")
    if ((passed % 1 != 0) | (trials % 1 != 0)).any():
        raise ValueError("n_passed and n_trials must be whole numbers")
    return passed.astype(np.int64), trials.astype(np.int64)


class _Grid(NamedTuple):
    """Parameters of the beta distributions, one column a pair of mean and correlation."""

    a: Floats
    b: Floats


def _grid() -> _Grid:
    """Return the cell centres of the grid."""
    import numpy as np

    mean = (np.arange(N_MEANS) + 0.5) / N_MEANS
    correlation = (np.arange(N_CORRELATIONS) + 0.5) / N_CORRELATIONS
    strength = (1 - correlation) / correlation
    return _Grid(np.outer(mean, strength).ravel(), np.outer(1 - mean, strength).ravel())


class _Table(NamedTuple):
    """How many scenarios of each kind (passed, trials) a group has, one row a group."""

    counts: Floats
    kinds: Ints


def _table(
    n_passed: ArrayLike, n_trials: ArrayLike, *, groups: ArrayLike | None, n_groups: int | None
) -> _Table:
    """Count the kinds of scenarios in each group."""
    import numpy as np

    passed, trials = _counts(n_passed, n_trials)
    group = np.zeros(len(passed), np.int64) if groups is None else np.asarray(groups, np.int64)
    kinds, kind = np.unique(np.stack([passed, trials], 1), axis=0, return_inverse=True)
    counts = np.zeros((n_groups or int(group.max(initial=0)) + 1, len(kinds)))
    np.add.at(counts, (group, kind.ravel()), 1.0)
    return _Table(counts, kinds)


def _posterior(table: _Table, axis: int) -> Floats:
    """Return the posterior along an axis of the grid, one row a group."""
    import numpy as np

    rows = [table.counts[i : i + _BLOCK] for i in range(0, len(table.counts), _BLOCK)]
    posterior = np.concatenate([_along(axis, _Table(counts, table.kinds)) for counts in rows])
    return np.where(table.counts.sum(1, keepdims=True) > 0, posterior, np.nan)


def _along(axis: int, table: _Table) -> Floats:
    """Return the posterior of a block of groups, summed over the other axis."""
    import numpy as np

    counts, kinds = table
    total, grid = np.zeros((len(counts), N_MEANS * N_CORRELATIONS)), _grid()
    for i in range(0, len(kinds), _BLOCK):
        total += counts[:, i : i + _BLOCK] @ _log_likelihood(kinds[i : i + _BLOCK], grid)
    total -= total.max(axis=1, keepdims=True)
    cells = np.exp(total, out=total).reshape(len(counts), N_MEANS, N_CORRELATIONS)
    likelihood = cells.sum(3 - axis)
    return np.asarray(likelihood / likelihood.sum(1, keepdims=True), dtype=np.float64)


def _log_likelihood(kinds: Ints, grid: _Grid) -> Floats:
    """Return how likely each kind of scenario (passed, trials) is, one column a grid cell.

    Without the number of ways to choose the passed trials, which is the same in
    every cell. Each different count is looked up once: ``gammaln`` is the work.
    """
    passed, trials = kinds.T
    each = _rising(grid.a, passed) + _rising(grid.b, trials - passed)
    return each - _rising(grid.a + grid.b, trials)


def _rising(base: Floats, steps: NDArray[np.integer[Any]]) -> Floats:
    """Return the log of ``base * (base + 1) * ...`` with as many factors as steps."""
    import numpy as np
    from scipy.special import gammaln

    different, place = np.unique(steps, return_inverse=True)
    table = gammaln(base + different[:, None]) - gammaln(base)
    return np.asarray(table[place], dtype=np.float64)


def _quantiles(posterior: Floats, confidence: float) -> Interval:
    """Return the equal-tailed bounds of each row, linear within a grid cell."""
    import numpy as np

    n_cells = posterior.shape[1]
    edges = np.arange(n_cells + 1) / n_cells
    below = np.concatenate([np.zeros((len(posterior), 1)), posterior.cumsum(1)], axis=1)
    levels = np.array([1 - confidence, 1 + confidence]) / 2
    bounds = np.array([np.interp(levels, row, edges) for row in below]).reshape(-1, 2)
    blank = np.isnan(posterior[:, 0])
    low, high = (np.where(blank, np.nan, bound) for bound in bounds.T)
    return Interval(low, high)
