"""How reliably an agent repeats itself: pass@k, pass^k and flakiness.

The estimators are unbiased for each scenario and undefined - not 0, not 1 -
where it has fewer than k measured trials. They are averaged over scenarios,
with the intervals of :mod:`evalkit.stats.intervals`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import comb
from typing import TYPE_CHECKING, Any

from evalkit.stats.beta_binomial import correlation_interval
from evalkit.stats.cells import By, Cells, collect_cells
from evalkit.stats.clusters import ClusterMean, cluster_mean
from evalkit.stats.intervals import (
    Interval,
    checked_confidence,
    cluster_count_interval,
    clustered_interval,
)
from evalkit.stats.notes import Notes

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from evalkit.stats.clusters import Floats, Ints

_SMALL, _NEAR_CERTAIN = 20, 0.9


def pass_at_k(
    run: Any,
    *,
    k: int | Iterable[int],
    by: By = None,
    confidence: float = 0.95,
    cluster: str | None = None,
) -> pd.DataFrame:
    """Estimate how often at least one of k trials passes (pass@k).

    Parameters
    ----------
    run, by, confidence, cluster
        As in :func:`evalkit.stats.pass_rates`.
    k
        Number of trials, or several of them.

    Returns
    -------
    pandas.DataFrame
        One row a group and k: the columns of ``by``, ``k``, ``estimate``,
        ``estimate_low``, ``estimate_high``, ``n_scenarios`` (in the estimate),
        ``n_undefined`` (scenarios with fewer than k measured trials) and ``note``.

    Raises
    ------
    ValueError
        If a k is no positive integer, and as :func:`evalkit.stats.pass_rates`.

    Notes
    -----
    ``1 - C(T - c, k) / C(T, k)`` for c of T measured trials passed (Chen et al.
    2021), averaged over scenarios. The interval is clustered Wilson-t on these
    estimates; it counts each scenario once where T equals k, and at 20
    scenarios or fewer with an estimate above .9. Assumes independent trials.

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({"scenario": list("aaabbb"), "status":
    ...     ["passed", "failed", "failed", "passed", "passed", "passed"]})
    >>> pass_at_k(trials, k=[1, 2])[["k", "estimate", "n_scenarios"]].round(3)
       k  estimate  n_scenarios
    0  1     0.667            2
    1  2     0.833            2
    """
    return _over_k(run, _at_least_one, k=k, by=by, confidence=confidence, cluster=cluster)


def pass_hat_k(
    run: Any,
    *,
    k: int | Iterable[int],
    by: By = None,
    confidence: float = 0.95,
    cluster: str | None = None,
) -> pd.DataFrame:
    """Estimate how often all of k trials pass (pass^k).

    Parameters, columns, errors and the interval are those of :func:`pass_at_k`.
    Per scenario the estimate is ``C(c, k) / C(T, k)`` (Yao et al. 2024,
    tau-bench); the plug-in ``(c / T) ** k`` is biased upwards and not used.

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({"scenario": list("aaabbb"), "status":
    ...     ["passed", "failed", "failed", "passed", "passed", "passed"]})
    >>> pass_hat_k(trials, k=[1, 2, 5])[["k", "estimate", "n_undefined"]].round(3)
       k  estimate  n_undefined
    0  1     0.667            0
    1  2     0.500            0
    2  5       NaN            2
    """
    return _over_k(run, _all_of_k, k=k, by=by, confidence=confidence, cluster=cluster)


def flakiness(run: Any, *, by: By = None, confidence: float = 0.95) -> pd.DataFrame:
    """Measure how much outcomes vary between trials of the same scenario.

    Parameters
    ----------
    run, by
        As in :func:`evalkit.stats.pass_rates`.
    confidence
        Of the interval of the correlation.

    Returns
    -------
    pandas.DataFrame
        One row a group: the columns of ``by``, then ``within_variance`` (mean of
        ``p (1 - p) k / (k - 1)``; 0 is perfectly repeatable, .25 a coin flip),
        ``icc`` (share of the variance that lies between scenarios; may fall
        below 0 by chance; NaN where all outcomes agree), ``icc_low`` and
        ``icc_high`` (its beta-binomial interval,
        :func:`~evalkit.stats.beta_binomial.correlation_interval`, in [0, 1]; NaN
        without an icc and below two scenarios), ``share_mixed`` and
        ``n_mixed`` (scenarios that both passed and failed), ``k_low`` and
        ``k_high`` (fewest and most measured trials of a scenario),
        ``n_scenarios``, ``n_undefined`` (scenarios below two measured trials)
        and ``note``.

    Notes
    -----
    ``share_mixed`` grows with k: an agent that passes 90 % of the time is seen
    to be mixed in 18 % of scenarios at k = 2 and 65 % at k = 10. Compare the
    variance between runs of different k, not the share.

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({"scenario": list("aabb"), "status":
    ...     ["passed", "failed", "passed", "passed"]})
    >>> flakiness(trials)[["within_variance", "share_mixed", "k_low", "n_scenarios"]]
       within_variance  share_mixed  k_low  n_scenarios
    0             0.25          0.5      2            2
    """
    import numpy as np

    checked_confidence(confidence)
    cells = collect_cells(run, by=by)
    usable = cells.where(cells.n_measured > 1)
    n = usable.tally(usable.n_measured > 1)
    mixed = usable.tally((usable.n_passed > 0) & (usable.n_failed > 0))
    within, icc, share = _variance_shares(usable, n, mixed)
    k_low, k_high = trials_range(usable)
    undefined = cells.tally(cells.n_measured < 2)
    notes = Notes(len(n))
    notes.add(n == 0, "undefined: no scenario has two measured trials")
    notes.add((n > 0) & (within == 0) & np.isnan(icc), "icc undefined: every trial ended the same")
    notes.add(
        (n > 0) & (undefined > 0), "left out, below 2 measured trials: {u} scenario(s)", u=undefined
    )
    notes.add(
        (n > 0) & (k_low < k_high),
        "k differs: share_mixed mixes {a} to {b} trials",
        a=k_low,
        b=k_high,
    )
    low, high = _icc_interval(usable, (n > 1) & ~np.isnan(icc), confidence)
    return cells.groups.assign(
        within_variance=within,
        icc=icc,
        icc_low=low,
        icc_high=high,
        share_mixed=share,
        n_mixed=mixed,
        k_low=k_low,
        k_high=k_high,
        n_scenarios=n,
        n_undefined=undefined,
        note=notes.texts(),
    )


Estimator = Callable[[int, int, int], float]


def _at_least_one(passed: int, trials: int, k: int) -> float:
    """Return the exact share of the k-subsets of trials with a passed one."""
    subsets = comb(trials, k)
    return (subsets - comb(trials - passed, k)) / subsets


def _all_of_k(passed: int, trials: int, k: int) -> float:
    """Return the exact share of the k-subsets of trials that all passed."""
    return comb(passed, k) / comb(trials, k)


def _over_k(
    run: Any,
    estimator: Estimator,
    *,
    k: int | Iterable[int],
    by: By,
    confidence: float,
    cluster: str | None,
) -> pd.DataFrame:
    """Return the estimates of every k below each other, sorted by group."""
    import pandas as pd

    sizes = _checked_k(k)
    checked_confidence(confidence)
    cells = collect_cells(run, by=by, cluster=cluster)
    frames = [_for_k(cells, estimator, k=size, confidence=confidence) for size in sizes]
    # Group-major order: all k of the first group, then the next.
    return pd.concat(frames).sort_index(kind="stable").reset_index(drop=True)


def _checked_k(k: int | Iterable[int]) -> list[int]:
    """Return k as a list of positive integers."""
    from numbers import Integral

    sizes: list[Any] = list(k) if isinstance(k, Iterable) else [k]
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, Integral) or int(size) < 1:
            raise ValueError(f"k is {size!r}, and must be a positive integer or a list of them")
    if not sizes:
        raise ValueError("k is an empty list; give at least one number of trials")
    return [int(size) for size in sizes]


def _for_k(cells: Cells, estimator: Estimator, *, k: int, confidence: float) -> pd.DataFrame:
    """Return one row a group for one k."""
    import numpy as np

    defined = cells.where(cells.n_measured >= k)
    spread = cluster_mean(
        _estimates(defined, estimator, k),
        clusters=defined.cluster,
        groups=defined.group,
        n_groups=len(cells.groups),
    )
    low, high = _k_interval(defined, spread, k=k, confidence=confidence)
    scripted = cells.tally(cells.contract) > 0
    undefined = cells.tally(cells.n_measured < k)
    return cells.groups.assign(
        k=k,
        estimate=spread.mean,
        estimate_low=np.where(scripted, np.nan, low),
        estimate_high=np.where(scripted, np.nan, high),
        n_scenarios=spread.n,
        n_undefined=undefined,
        note=_k_notes(cells, spread, k),
    )


def _estimates(cells: Cells, estimator: Estimator, k: int) -> Floats:
    """Apply an estimator to each cell; exact arithmetic, once a different (c, T)."""
    import numpy as np

    pairs = cells.n_measured * (int(cells.n_measured.max(initial=0)) + 1) + cells.n_passed
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    kinds = zip(cells.n_passed[first].tolist(), cells.n_measured[first].tolist(), strict=True)
    values = [estimator(passed, trials, k) for passed, trials in kinds]
    return np.array(values, dtype=np.float64)[place]


def _k_interval(cells: Cells, spread: ClusterMean, *, k: int, confidence: float) -> Interval:
    """Return clustered Wilson-t, or Wilson over clusters where that covers too little."""
    import numpy as np

    every = cells.tally(cells.n_measured > k) == 0
    sparse = (spread.n_clusters <= _SMALL) & (spread.mean > _NEAR_CERTAIN)
    trials = cells.total(cells.n_measured)
    narrow = clustered_interval(spread, trials, confidence=confidence)
    wide = cluster_count_interval(spread, confidence=confidence)
    low, high = (np.where(every | sparse, wide[i], narrow[i]) for i in (0, 1))
    return Interval(low, high)


def _k_notes(cells: Cells, spread: ClusterMean, k: int) -> list[str]:
    """Write what an estimate for one k leaves out."""
    import numpy as np

    undefined = cells.tally(cells.n_measured < k)
    scripted = cells.tally(cells.contract) > 0
    some, several = spread.n > 0, spread.n_clusters > 1
    notes = Notes(len(spread.n))
    most = trials_range(cells)[1]
    left = np.full(len(spread.n), k)
    notes.add(~some, "undefined: no scenario has {k} measured trials (most: {m})", k=left, m=most)
    notes.add(
        some & (undefined > 0),
        "left out, below {k} measured trials: {u} scenario(s)",
        u=undefined,
        k=left,
    )
    notes.add(some & scripted, "contract lane: trials are copies of one script, no interval")
    notes.add(some & ~scripted & ~several, "no interval: one scenario or cluster shows no spread")
    notes.add_sample_size(spread, several & ~scripted)
    return notes.texts()


def _variance_shares(cells: Cells, n: Ints, mixed: Ints) -> tuple[Floats, Floats, Floats]:
    """Return within-scenario variance, intra-class correlation and share of mixed."""
    import numpy as np

    rate, k = cells.rate, cells.n_measured
    with np.errstate(invalid="ignore", divide="ignore"):
        within = cells.total(rate * (1 - rate) * k / (k - 1)) / n
        mean = cells.total(rate) / n
        everything = mean * (1 - mean)
        icc = np.where(everything > 0, 1 - within / everything, np.nan)
        return within, icc, mixed / n


def _icc_interval(cells: Cells, wanted: NDArray[np.bool_], confidence: float) -> Interval:
    """Return the interval of the correlation of the groups that can have one."""
    import numpy as np

    low, high = np.full((2, len(wanted)), np.nan)
    kept = cells.where(wanted[cells.group])
    if wanted.any():
        place = wanted.cumsum() - 1
        low[wanted], high[wanted] = correlation_interval(
            kept.n_passed,
            kept.n_measured,
            groups=place[kept.group],
            n_groups=int(wanted.sum()),
            confidence=confidence,
        )
    return Interval(low, high)


def trials_range(cells: Cells) -> tuple[Ints, Ints]:
    """Return the fewest and the most measured trials of a scenario in each group."""
    import numpy as np

    size = len(cells.groups)
    most, fewest = np.zeros(size, np.int64), np.full(size, np.iinfo(np.int64).max)
    np.maximum.at(most, cells.group, cells.n_measured)
    np.minimum.at(fewest, cells.group, cells.n_measured)
    return np.minimum(fewest, most), most
