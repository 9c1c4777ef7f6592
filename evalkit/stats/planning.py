"""What a plan starts from: the measured baseline, or assumed numbers, and the sizes.

Turns a run into the :class:`~evalkit.stats.power.Plan` rows that
:mod:`evalkit.stats.resolution` reports on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.stats.cells import By, Cells, collect_cells
from evalkit.stats.clusters import cluster_mean
from evalkit.stats.notes import Notes
from evalkit.stats.power import Plan

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from evalkit.stats.clusters import Floats

ASSUMED_ICC = 0.5


class Sizes(NamedTuple):
    """Numbers that a caller gave in place of the run's."""

    n_scenarios: Any
    n_trials: Any
    n_trials_baseline: Any


class Basis(NamedTuple):
    """What is known, or assumed, about each group of the baseline."""

    groups: pd.DataFrame
    rate: Floats
    within: Floats
    n_scenarios: Floats
    n_clusters: Floats
    n_trials: Floats
    remarks: list[str]
    planned: bool
    """Whether the numbers are assumed, so that sizes must be given."""


class Rows(NamedTuple):
    """Plans, each with the group that it belongs to."""

    plan: Plan
    group: NDArray[np.int64]
    basis: Basis

    @property
    def groups(self) -> pd.DataFrame:
        """The group columns of each plan."""
        return self.basis.groups.iloc[self.group].reset_index(drop=True)

    @property
    def measurable(self) -> NDArray[np.bool_]:
        """Which plans have a rate to lose and trials to measure it."""
        import numpy as np

        return np.asarray((self.plan.rate > 0) & ~np.isnan(self.plan.within))

    def notes(self) -> Notes:
        """Return the remarks on each plan, to be added to."""
        import numpy as np

        remarks = np.array(self.basis.remarks, dtype=object)[self.group]
        notes = Notes(len(self.group))
        notes.add(remarks != "", "{remark}", remark=remarks)
        return notes


def known_or_assumed(run: Any, *, by: By, rate: float | None, icc: float | None) -> Basis:
    """Measure the baseline, or take the numbers that are assumed instead."""
    if icc is not None and not 0 <= icc <= 1:
        raise ValueError(f"icc is {icc!r}, and must lie in [0, 1]")
    if run is None:
        return _assumed(rate, icc, by)
    if rate is not None:
        raise ValueError("rate is measured from the run; give one or the other")
    return _measured(collect_cells(run, by=by), icc)


def _assumed(rate: float | None, icc: float | None, by: By) -> Basis:
    """Return one group with the numbers that a caller assumes."""
    import numpy as np
    import pandas as pd

    if by is not None:
        raise ValueError("by needs a run: without one there is nothing to group")
    if rate is None or not 0 < rate <= 1:
        raise ValueError(f"rate is {rate!r}; without a run, give a pass rate in (0, 1]")
    remark = f"assumes an intra-class correlation of {ASSUMED_ICC}" if icc is None else ""
    within = rate * (1 - rate) * (1 - (ASSUMED_ICC if icc is None else icc))
    one, unknown = np.ones(1), np.full(1, np.nan)
    groups = pd.DataFrame(index=range(1))
    return Basis(groups, one * rate, one * within, unknown, unknown, unknown, [remark], True)


def _measured(cells: Cells, icc: float | None) -> Basis:
    """Return rate, variance and sizes of each group of a run."""
    import numpy as np

    rated = cells.where(cells.n_measured > 0)
    size = len(cells.groups)
    spread = cluster_mean(rated.rate, clusters=rated.cluster, groups=rated.group, n_groups=size)
    within, remarks = _within(rated, spread.mean, icc)
    scripted = cells.tally(cells.contract) > 0
    remarks.add(spread.n == 0, "no rate: nothing was measured")
    remarks.add(spread.mean == 0, "nothing passes: there is no drop to detect")
    remarks.add(scripted, "contract lane: trials are copies of one script")
    remarks.add(
        spread.n_clusters < spread.n,
        "{c} clusters of {n} scenarios are assumed to break together",
        c=spread.n_clusters,
        n=spread.n,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        # Rounded, because the mean of thirds is not quite a third.
        n_trials = np.round(spread.n / rated.total(1 / rated.n_measured), 9)
    return Basis(
        cells.groups,
        spread.mean,
        np.where(scripted, np.nan, within),
        spread.n.astype("float64"),
        spread.n_clusters.astype("float64"),
        n_trials,
        remarks.texts(),
        planned=False,
    )


def _within(rated: Cells, mean: Floats, icc: float | None) -> tuple[Floats, Notes]:
    """Return the variance of trials around their scenario's rate, and what it rests on."""
    import numpy as np

    notes = Notes(len(mean))
    if icc is not None:
        return mean * (1 - mean) * (1 - icc), notes
    repeated = rated.where(rated.n_measured > 1)
    n, n_rated = repeated.tally(repeated.n_measured > 1), rated.tally(rated.n_measured > 0)
    rate, k = repeated.rate, repeated.n_measured
    with np.errstate(invalid="ignore", divide="ignore"):
        found = repeated.total(rate * (1 - rate) * k / (k - 1)) / n
    notes.add(
        (n == 0) & (n_rated > 0),
        "one trial a scenario: assumes an intra-class correlation of {icc}",
        icc=np.full(len(mean), ASSUMED_ICC),
    )
    notes.add(
        (n > 0) & (n < n_rated), "variance of trials from {n} of {all} scenarios", n=n, all=n_rated
    )
    notes.add((n > 0) & (found == 0) & (mean > 0), "no scenario both passed and failed")
    return np.where(n > 0, found, mean * (1 - mean) * (1 - ASSUMED_ICC)), notes


def plans(basis: Basis, sizes: Sizes) -> Rows:
    """Cross each group with the sizes that were asked for."""
    import numpy as np

    if basis.planned and (sizes.n_scenarios is None or sizes.n_trials is None):
        raise ValueError("without a run, give n_scenarios and n_trials")
    given = _broadcast(sizes)
    group = np.repeat(np.arange(len(basis.groups)), len(given[0]))
    n, k, k_baseline = (np.tile(size, len(basis.groups)) for size in given)
    own_n, own_k = basis.n_scenarios[group], basis.n_trials[group]
    share = np.where(own_n > 0, basis.n_clusters[group] / np.maximum(own_n, 1), 1.0)
    n, k = np.where(np.isnan(n), own_n, n), np.where(np.isnan(k), own_k, k)
    k_baseline = np.where(np.isnan(k_baseline), k if basis.planned else own_k, k_baseline)
    plan = Plan(basis.rate[group], basis.within[group], n, n * share, k, k_baseline)
    return Rows(plan, group, basis)


def _broadcast(sizes: Sizes) -> list[Floats]:
    """Return the sizes as arrays of one length, NaN where none was given."""
    import numpy as np

    arrays = [np.atleast_1d(np.asarray(np.nan if s is None else s, np.float64)) for s in sizes]
    for name, given, array in zip(sizes._fields, sizes, arrays, strict=True):
        if given is not None and not ((array >= 1) & np.isfinite(array)).all():
            raise ValueError(f"{name} is {given!r}, and must be at least 1")
    if (arrays[0] % 1 > 0).any():
        raise ValueError(f"n_scenarios is {sizes.n_scenarios!r}, and must be a whole number")
    return [np.asarray(array) for array in np.broadcast_arrays(*arrays)]


def plans_for_drops(drop: ArrayLike, basis: Basis, sizes: Sizes) -> tuple[Rows, Floats]:
    """Cross each group with the drops; return the plans, and the drop of each."""
    import numpy as np

    drops = np.atleast_1d(np.asarray(drop, dtype=np.float64))
    if not ((drops > 0) & (drops <= 1)).all():
        raise ValueError(f"drop is {drop!r}; drops are fractions above 0: 5 points are .05")
    rows = plans(basis, sizes)
    crossed = np.repeat(np.arange(len(rows.group)), len(drops))
    plan = Plan(*(part[crossed] for part in rows.plan))
    return Rows(plan, rows.group[crossed], basis), np.tile(drops, len(rows.group))
