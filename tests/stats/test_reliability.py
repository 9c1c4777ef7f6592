"""pass@k, pass^k and flakiness against published figures and exact arithmetic."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.stats import (
    clustered_wilson,
    correlation_interval,
    flakiness,
    pass_at_k,
    pass_hat_k,
    pass_rates,
    wilson,
)

TAU_BENCH = {0: 14, 1: 12, 2: 10, 3: 4, 4: 10}  # gpt-4o, airline: passes of 50 tasks in 4 trials


def _passes(*pairs, incomplete=0):
    """Return trials of one scenario a pair of (passed, trials)."""
    rows = [
        {"run_id": "r1", "scenario": f"s{i:03d}", "trial": trial, "status": status}
        for i, (passed, n) in enumerate(pairs)
        for trial, status in enumerate(
            ["passed"] * passed + ["failed"] * (n - passed) + ["incomplete"] * incomplete
        )
    ]
    return pd.DataFrame(rows, columns=["run_id", "scenario", "trial", "status"])


def _histogram(passes, n_trials):
    """Return trials of as many scenarios as the histogram of their passes says."""
    return _passes(*[(c, n_trials) for c, count in passes.items() for _ in range(count)])


def test_tau_bench_pass_hat_k():
    """The published trajectories give tau-bench's own pass^1 to pass^4."""
    frame = pass_hat_k(_histogram(TAU_BENCH, 4), k=[1, 2, 3, 4])
    assert frame["estimate"].tolist() == pytest.approx([0.42, 0.273333, 0.22, 0.20], abs=5e-7)
    assert frame["k"].tolist() == [1, 2, 3, 4]
    assert (frame["n_scenarios"] == 50).all()


def test_tau_bench_pass_at_k():
    """pass@2 to pass@4 of the same trajectories."""
    frame = pass_at_k(_histogram(TAU_BENCH, 4), k=[2, 3, 4])
    assert frame["estimate"].tolist() == pytest.approx([0.566667, 0.66, 0.72], abs=5e-7)


@pytest.mark.parametrize(
    ("n", "passed", "k", "expected"),
    [
        (5, 2, 1, 0.4),
        (10, 3, 5, 0.9166667),
        (5, 1, 3, 0.6),
        (200, 10, 10, 0.4085479),
        (200, 10, 100, 0.9992290),
        (5000, 3, 2500, 1 - comb(4997, 2500) / comb(5000, 2500)),
    ],
)
def test_pass_at_k_is_exact(n, passed, k, expected):
    """Reference values, also for numbers of trials whose binomials overflow a float."""
    frame = pass_at_k(_passes((passed, n)), k=k)
    assert frame["estimate"].item() == pytest.approx(expected, abs=5e-8)


@given(st.integers(1, 7), st.data())
@settings(deadline=None, max_examples=60)
def test_estimates_average_over_all_subsets(n, data):
    """Both equal the share among all k-subsets of the trials, counted one by one."""
    passed, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    outcomes = [1] * passed + [0] * (n - passed)
    subsets = list(combinations(outcomes, k))
    trials = _passes((passed, n))
    for function, rule in ((pass_at_k, any), (pass_hat_k, all)):
        expected = sum(map(rule, subsets)) / len(subsets)
        assert function(trials, k=k)["estimate"].item() == pytest.approx(expected)


def test_k_of_one_is_the_pass_rate():
    """pass@1 and pass^1 are the rate over scenarios, with its interval."""
    trials = _passes((1, 2), (3, 3), (0, 4), (2, 5), (4, 4), (1, 4))
    rate = pass_rates(trials)[["rate", "rate_low", "rate_high"]].to_numpy()
    for function in (pass_at_k, pass_hat_k):
        found = function(trials, k=1)[["estimate", "estimate_low", "estimate_high"]].to_numpy()
        assert found == pytest.approx(rate)


def test_too_few_trials_are_undefined_not_zero():
    """A scenario below k measured trials is left out and counted; all of them: NaN."""
    trials = _passes((3, 3), (1, 2), (0, 4))
    frame = pass_hat_k(trials, k=[3, 5])
    assert frame["estimate"].iloc[0] == 0.5
    assert frame["n_undefined"].tolist() == [1, 3]
    assert "left out, below 3 measured trials: 1 scenario(s)" in frame["note"].iloc[0]
    assert np.isnan(frame["estimate"].iloc[1])
    assert "no scenario has 5 measured trials (most: 4)" in frame["note"].iloc[1]


def test_incomplete_trials_are_not_trials():
    """Only measured trials count towards k."""
    trials = _passes((2, 2), (2, 2), incomplete=3)
    assert pass_hat_k(trials, k=[2, 3])["n_undefined"].tolist() == [0, 2]


def test_interval_is_clustered_wilson_on_the_estimates():
    """With more trials than k the scenario estimates get the clustered interval."""
    trials = _histogram(TAU_BENCH, 4)
    estimates = np.repeat([comb(c, 2) / 6 for c in TAU_BENCH], list(TAU_BENCH.values()))
    row = pass_hat_k(trials, k=2, confidence=0.9).iloc[0]
    expected = clustered_wilson(estimates, n_trials=4, confidence=0.9)
    assert (row["estimate_low"], row["estimate_high"]) == pytest.approx(expected)


def test_interval_counts_scenarios_where_k_uses_all_trials():
    """At T = k each scenario is one 0 or 1: Wilson over scenarios."""
    row = pass_hat_k(_histogram(TAU_BENCH, 4), k=4).iloc[0]
    assert (row["estimate_low"], row["estimate_high"]) == pytest.approx(wilson(10, 50))


def test_interval_counts_scenarios_where_few_are_nearly_perfect():
    """At 20 scenarios or fewer and an estimate above .9 the spread is not trusted."""
    trials = _passes(*[(5, 5)] * 19, (4, 5))
    row = pass_at_k(trials, k=1).iloc[0]
    assert (row["estimate_low"], row["estimate_high"]) == pytest.approx(wilson(0.99 * 20, 20))
    narrower = clustered_wilson([1.0] * 19 + [0.8], n_trials=5)
    assert row["estimate_low"] < narrower.low


@pytest.mark.parametrize("pairs", [[(2, 3)], []])
def test_no_spread_has_no_interval(pairs):
    """One scenario, or none, has NaN bounds and a note."""
    row = pass_hat_k(_passes(*pairs), k=2).iloc[0]
    assert np.isnan([row["estimate_low"], row["estimate_high"]]).all()
    assert row["note"]


def test_groups_come_with_all_their_k():
    """Grouped frames are sorted by group, then in the order of k."""
    trials = _passes((2, 2), (0, 2))
    frame = pass_hat_k(trials, k=[2, 1], by="scenario")
    assert frame[["scenario", "k", "estimate"]].to_numpy().tolist() == [
        ["s000", 2, 1.0],
        ["s000", 1, 1.0],
        ["s001", 2, 0.0],
        ["s001", 1, 0.0],
    ]


def test_contract_trials_have_no_reliability_interval():
    """Copies of one scripted trial say nothing about repetition."""
    trials = _passes(*[(3, 3)] * 12).assign(lane="contract")
    row = pass_hat_k(trials, k=2).iloc[0]
    assert np.isnan(row["estimate_low"])
    assert "contract lane" in row["note"]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2", [1, 0], []])
def test_impossible_k_is_refused(k):
    """Each k is a positive integer or a list of them."""
    with pytest.raises(ValueError, match="k is"):
        pass_hat_k(_passes((1, 2)), k=k)


@given(st.lists(st.tuples(st.integers(0, 5), st.just(5)), min_size=2, max_size=25))
@settings(deadline=None, max_examples=60)
def test_more_attempts_help_and_more_demands_hurt(pairs):
    """pass@k rises with k, pass^k falls, and every bound holds its estimate in [0, 1]."""
    trials = _passes(*pairs)
    at, hat = (f(trials, k=[1, 2, 3, 4, 5]) for f in (pass_at_k, pass_hat_k))
    assert (np.diff(at["estimate"]) >= -1e-12).all()
    assert (np.diff(hat["estimate"]) <= 1e-12).all()
    for frame in (at, hat):
        assert (frame["estimate_low"] >= 0).all()
        assert (frame["estimate_low"] <= frame["estimate"]).all()
        assert (frame["estimate"] <= frame["estimate_high"]).all()
        assert (frame["estimate_high"] <= 1).all()


def test_flakiness_separates_variance():
    """Within-scenario variance, ICC and share of mixed outcomes follow their formulas."""
    row = flakiness(_passes((2, 4), (4, 4), (0, 4), (3, 4))).iloc[0]
    within = (0.25 + 0.1875) * 4 / 3 / 4
    mean = 2.25 / 4
    assert row["within_variance"] == pytest.approx(within)
    assert row["icc"] == pytest.approx(1 - within / (mean * (1 - mean)))
    assert (row["share_mixed"], row["n_mixed"]) == (0.5, 2)
    assert (row["k_low"], row["k_high"], row["n_scenarios"], row["note"]) == (4, 4, 4, "")


def test_failing_every_time_is_not_flaky():
    """A stable failure has no variance within, and no ICC where all outcomes agree."""
    row = flakiness(_passes((0, 5), (0, 5))).iloc[0]
    assert (row["within_variance"], row["share_mixed"]) == (0.0, 0.0)
    assert np.isnan(row["icc"])
    assert "every trial ended the same" in row["note"]


def test_flakiness_needs_repeats():
    """Scenarios with a single measured trial are left out and counted; all of them: NaN."""
    mixed = flakiness(_passes((1, 1), (1, 2), (1, 3))).iloc[0]
    assert (mixed["n_scenarios"], mixed["n_undefined"]) == (2, 1)
    assert "left out, below 2 measured trials: 1 scenario(s)" in mixed["note"]
    assert "share_mixed mixes 2 to 3 trials" in mixed["note"]
    alone = flakiness(_passes((1, 1), (0, 1))).iloc[0]
    assert np.isnan([alone["within_variance"], alone["icc"], alone["share_mixed"]]).all()
    assert "no scenario has two measured trials" in alone["note"]


@pytest.mark.parametrize("k", [2, 3, 10])
def test_icc_is_fleiss_kappa(k):
    """Trials as raters: the correlation is Fleiss' kappa of statsmodels."""
    from statsmodels.stats.inter_rater import fleiss_kappa

    passed = np.random.default_rng(k).binomial(k, np.random.default_rng(9).beta(2, 1, 30))
    icc = flakiness(_passes(*[(int(c), k) for c in passed]))["icc"].item()
    assert icc == pytest.approx(fleiss_kappa(np.stack([passed, k - passed], 1)))


def test_icc_finds_the_correlation_that_was_put_in():
    """Over many scenarios the estimate is the correlation of the beta distribution."""
    rng = np.random.default_rng(3)
    passed = rng.binomial(4, rng.beta(0.8 * 1.5, 0.2 * 1.5, 3000))  # 1 / (1 + 1.5) = .4
    row = flakiness(_passes(*[(int(c), 4) for c in passed]), confidence=0.999).iloc[0]
    assert row["icc"] == pytest.approx(0.4, abs=0.04)
    assert row["icc_low"] < 0.4 < row["icc_high"]
    assert row["icc_high"] - row["icc_low"] < 0.15


def test_icc_interval_is_the_correlation_interval():
    """Groups get the bounds of their own scenarios; without an icc there are none."""
    trials = _passes((3, 3), (1, 3), (0, 3), (3, 3), (3, 3)).assign(lot=list("a" * 9 + "b" * 6))
    frame = flakiness(trials, by="lot", confidence=0.9)
    expected = correlation_interval([3, 1, 0], 3, confidence=0.9)
    assert tuple(frame[["icc_low", "icc_high"]].iloc[0]) == pytest.approx(tuple(expected))
    assert np.isnan(frame[["icc_low", "icc_high"]].iloc[1]).all()
    assert np.isnan(flakiness(_passes((1, 3)))["icc_low"].item())
