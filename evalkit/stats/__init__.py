"""Statistics on the frames of a run: frames in, frames out.

============== =============================================================
module         what it holds
============== =============================================================
rates          pass rates with intervals, standard errors
reliability    pass@k, pass^k, flakiness
intervals      Wilson, Clopper-Pearson, clustered Wilson-t: numbers in and out
clusters       the one standard error that everything uses
cells          which rows belong together: groups, scenarios, clusters
notes          the words beside a number
============== =============================================================

Nothing here runs agents, reads files or draws.
"""

from __future__ import annotations

from evalkit.stats.clusters import ClusterMean, cluster_mean
from evalkit.stats.intervals import Interval, clopper_pearson, clustered_wilson, wilson
from evalkit.stats.rates import pass_rates, standard_errors, unrated_scenarios
from evalkit.stats.reliability import flakiness, pass_at_k, pass_hat_k

__all__ = [
    "ClusterMean",
    "Interval",
    "clopper_pearson",
    "cluster_mean",
    "clustered_wilson",
    "flakiness",
    "pass_at_k",
    "pass_hat_k",
    "pass_rates",
    "standard_errors",
    "unrated_scenarios",
    "wilson",
]
