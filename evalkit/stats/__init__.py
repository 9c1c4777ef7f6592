"""Statistics on the frames of a run: frames in, frames out.

============== =============================================================
module         what it holds
============== =============================================================
rates          pass rates with intervals, standard errors
reliability    pass@k, pass^k, flakiness
paired         a run against its baseline, overall and by scenario
intervals      Wilson, Clopper-Pearson, clustered Wilson-t: numbers in and out
bounds         Jeffreys' interval, one-sided exact bounds
beta_binomial  the beta-binomial posterior on a grid
resolution     the drops that a suite can see, and what more would take
power          sample sizes: numbers in and out
planning       the measured or assumed numbers that a plan starts from
sequential     when to abort a run that is a disaster
paired_tables  what textbooks print of a paired difference, to check against
differences    MOVER and Newcombe's intervals for two rates
significance   McNemar's test, sign-flip permutation
multiplicity   Holm and Benjamini-Hochberg
clusters       the one standard error that everything uses
cells          which rows belong together: groups, scenarios, clusters
expansion      what a trial counts in: its tags, its graders
alignment      which scenario of a run is which of its baseline
contrasts      which interval and which test a comparison gets
notes          the words beside a number
============== =============================================================

Nothing here runs agents, reads files or draws.
"""

from __future__ import annotations

from evalkit.stats.beta_binomial import beta_binomial_interval, correlation_interval
from evalkit.stats.bounds import exact_lower_bound, exact_upper_bound, jeffreys
from evalkit.stats.clusters import ClusterMean, cluster_mean
from evalkit.stats.differences import mover_difference, newcombe_independent, newcombe_paired
from evalkit.stats.intervals import Interval, clopper_pearson, clustered_wilson, wilson
from evalkit.stats.multiplicity import adjust_p_values
from evalkit.stats.paired import compare, compare_scenarios
from evalkit.stats.paired_tables import paired_table_interval
from evalkit.stats.power import confidence_per_look, independent_sample_size, sample_size
from evalkit.stats.rates import pass_rates, standard_errors, unrated_scenarios
from evalkit.stats.reliability import flakiness, pass_at_k, pass_hat_k
from evalkit.stats.resolution import (
    detectable_drops,
    resolution_text,
    scenarios_needed,
    trials_needed,
)
from evalkit.stats.sequential import DisasterRule, DisasterState, disaster_e_value
from evalkit.stats.significance import SignFlip, mcnemar, sign_flip_test

__all__ = [
    "ClusterMean",
    "DisasterRule",
    "DisasterState",
    "Interval",
    "SignFlip",
    "adjust_p_values",
    "beta_binomial_interval",
    "clopper_pearson",
    "cluster_mean",
    "clustered_wilson",
    "compare",
    "compare_scenarios",
    "confidence_per_look",
    "correlation_interval",
    "detectable_drops",
    "disaster_e_value",
    "exact_lower_bound",
    "exact_upper_bound",
    "flakiness",
    "independent_sample_size",
    "jeffreys",
    "mcnemar",
    "mover_difference",
    "newcombe_independent",
    "newcombe_paired",
    "paired_table_interval",
    "pass_at_k",
    "pass_hat_k",
    "pass_rates",
    "resolution_text",
    "sample_size",
    "scenarios_needed",
    "sign_flip_test",
    "standard_errors",
    "trials_needed",
    "unrated_scenarios",
    "wilson",
]
