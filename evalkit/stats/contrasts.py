"""What stands behind one row of a comparison: its spread, its interval, its test.

Here it is decided which interval and which test a group of paired scenarios
gets. Both are computed elsewhere, in :mod:`evalkit.stats.differences` and
:mod:`evalkit.stats.significance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.stats.alignment import Aligned
from evalkit.stats.clusters import ClusterMean, cluster_mean, codes
from evalkit.stats.differences import mover_difference, newcombe_independent
from evalkit.stats.intervals import Interval
from evalkit.stats.significance import mcnemar, sign_flip_test

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalkit.stats.clusters import Floats, Ints

OVER_TRIALS = "Newcombe over trials"
PAIRED = "Newcombe paired"
MOVER = "MOVER clustered Wilson-t"
MCNEMAR = "McNemar mid-p"
SIGN_FLIP = "sign-flip permutation"
NONE = "none"


class Contrasts(NamedTuple):
    """Every scenario, the paired ones with rates, and the spread of these in each group."""

    sides: Aligned
    paired: Aligned
    clusters: Ints
    joined: bool
    """Whether the two sides declare different clusters."""
    run: ClusterMean
    baseline: ClusterMean
    apart: ClusterMean

    @property
    def n(self) -> Ints:
        """Paired scenarios of each group."""
        return self.apart.n

    @property
    def scripted_sides(self) -> Ints:
        """On how many sides each group holds trials of the contract lane."""
        import numpy as np

        run, baseline = (
            side.tally(side.contract) > 0 for side in (self.sides.run, self.sides.baseline)
        )
        return np.add(run, baseline, dtype=np.int64)

    @property
    def scripted(self) -> NDArray[np.bool_]:
        """Groups with trials of the contract lane on either side."""
        import numpy as np

        return np.greater(self.scripted_sides, 0)

    @property
    def differences(self) -> Floats:
        """Rate of the run minus rate of the baseline, one a paired scenario."""
        return self.paired.run.rate - self.paired.baseline.rate

    @property
    def single(self) -> NDArray[np.bool_]:
        """Groups where each scenario has one trial on each side, and no coarser cluster."""
        import numpy as np

        sides = (self.paired.run, self.paired.baseline)
        once = [side.total(side.n_measured) == self.n for side in sides]
        alone = self.apart.n_clusters == self.n
        return np.asarray(once[0] & once[1] & alone, dtype=bool)


def contrasts_of(sides: Aligned) -> Contrasts:
    """Average the rates of each side, and their differences, over each group."""
    paired = sides.where(sides.rated)
    clusters, joined = _joint_clusters(paired)
    rate, other = paired.run.rate, paired.baseline.rate
    spreads = (
        cluster_mean(values, clusters=clusters, groups=paired.run.group, n_groups=len(sides.groups))
        for values in (rate, other, rate - other)
    )
    return Contrasts(sides, paired, clusters, joined, *spreads)


def _joint_clusters(paired: Aligned) -> tuple[Ints, bool]:
    """Return clusters that hold together what either side does, and whether these differ."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ours, theirs = codes(paired.run.cluster), codes(paired.baseline.cluster)
    sizes = int(ours.max(initial=-1)) + 1, int(theirs.max(initial=-1)) + 1
    pairs = len(np.unique(ours * sizes[1] + theirs))
    if pairs == sizes[0] == sizes[1]:
        return ours, False
    links = coo_array((np.ones(len(ours)), (ours, sizes[0] + theirs)), shape=(sum(sizes),) * 2)
    _, label = connected_components(links, directed=False)
    return np.asarray(label[ours], dtype=np.int64), True


def newly(sides: Aligned) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which scenarios most trials of one side only passed: now failing, now passing."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        now, before = sides.run.rate > 0.5, sides.baseline.rate > 0.5
    return sides.rated & before & ~now, sides.rated & now & ~before


def choose_intervals(summary: Contrasts) -> NDArray[Any]:
    """Choose the method of each group's interval."""
    import numpy as np

    spread = summary.apart
    conditions = [
        summary.scripted | (spread.n == 0),
        spread.n == 1,
        spread.n_clusters == 1,
        summary.single,
    ]
    choices = [NONE, OVER_TRIALS, NONE, PAIRED]
    return np.select(conditions, choices, default=MOVER).astype(object)


def choose_tests(summary: Contrasts) -> NDArray[Any]:
    """Choose the test of each group."""
    import numpy as np

    untested = summary.scripted | (summary.apart.n_clusters < 2)
    return np.select([untested, summary.single], [NONE, MCNEMAR], default=SIGN_FLIP).astype(object)


def bounds_of(summary: Contrasts, method: NDArray[Any], *, confidence: float) -> Interval:
    """Return the bounds of each group by the method that was chosen."""
    import numpy as np

    run, baseline = summary.paired.run, summary.paired.baseline
    over_scenarios = mover_difference(
        run.rate,
        baseline.rate,
        n_trials=run.n_measured,
        n_trials_baseline=baseline.n_measured,
        clusters=summary.clusters,
        groups=run.group,
        n_groups=len(run.groups),
        confidence=confidence,
    )
    over_trials = newcombe_independent(
        run.total(run.n_passed),
        run.total(run.n_measured),
        n_passed_baseline=baseline.total(baseline.n_passed),
        n_baseline=baseline.total(baseline.n_measured),
        confidence=confidence,
    )
    known = [method == OVER_TRIALS, method != NONE]
    low, high = (
        np.select(known, [over_trials[i], over_scenarios[i]], default=np.nan) for i in (0, 1)
    )
    return Interval(low, high)


class Outcome(NamedTuple):
    """P-value of each group, NaN without a test, and how many scenarios it rests on."""

    p_values: Floats
    n_signs: Ints
    """Scenarios, or coarser clusters, whose two sides differ."""


def p_values_of(summary: Contrasts, test: NDArray[Any], *, n_resamples: int, seed: int) -> Outcome:
    """Test each group by the test that was chosen."""
    import numpy as np

    paired = summary.paired
    failing, passing = (paired.run.tally(which) for which in newly(paired))
    found = Outcome(np.where(test == MCNEMAR, mcnemar(passing, failing), np.nan), failing + passing)
    order = np.argsort(paired.run.group, kind="stable")
    parts = np.split(order, np.cumsum(summary.n)[:-1])
    for group in np.flatnonzero(test == SIGN_FLIP):
        own = parts[group]
        result = sign_flip_test(
            summary.differences[own],
            clusters=summary.clusters[own],
            n_resamples=n_resamples,
            seed=seed,
        )
        found.p_values[group], found.n_signs[group] = result.p_value, result.n_signs
    return found
