"""The beta-binomial posterior: exact special cases, its promises, its place in pass_rates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalkit.stats import beta_binomial_interval, correlation_interval, pass_rates


def _trials(passed, k):
    """Return the trials of one scenario a number of passed ones."""
    rows = [
        {"scenario": f"s{i:03d}", "status": "passed" if trial < c else "failed"}
        for i, c in enumerate(passed)
        for trial in range(k)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("passed", "n"), [(17, 20), (3, 10), (85, 100)])
def test_one_trial_each_is_a_beta_posterior(passed, n):
    """One trial a scenario says nothing about correlation: Beta(passed + 1, failed + 1)."""
    outcomes = np.repeat([1, 0], [passed, n - passed])
    exact = scipy_stats.beta.ppf([0.025, 0.975], passed + 1, n - passed + 1)
    assert beta_binomial_interval(outcomes, 1) == pytest.approx(exact, abs=5e-4)


def test_posterior_is_that_of_a_plain_sum_over_the_grid():
    """Unequal numbers of trials: the same as scipy's beta-binomial, cell by cell."""
    passed, trials = np.array([3, 0, 2, 5, 1]), np.array([3, 2, 4, 5, 1])
    mean, rho = (np.arange(199) + 0.5) / 199, (np.arange(40) + 0.5) / 40
    grid_mean, grid_rho = np.meshgrid(mean, rho, indexing="ij")
    a, b = (part * (1 - grid_rho) / grid_rho for part in (grid_mean, 1 - grid_mean))
    joint = np.ones_like(a)
    for c, k in zip(passed, trials, strict=True):
        joint *= scipy_stats.betabinom.pmf(c, k, a, b)
    below = np.concatenate([[0], (joint.sum(1) / joint.sum()).cumsum()])
    expected = np.interp([0.05, 0.95], below, np.arange(200) / 199)
    found = beta_binomial_interval(passed, trials, confidence=0.9)
    assert found == pytest.approx(expected, abs=1e-9)


def test_agreeing_trials_count_as_scenarios():
    """Ten trials that always agree carry little more than one: nearly the width of one trial."""
    outcomes = np.repeat([1, 0], [16, 4])
    once, ten = beta_binomial_interval(outcomes, 1), beta_binomial_interval(10 * outcomes, 10)
    assert ten.high - ten.low > 0.9 * (once.high - once.low)


def test_groups_are_what_they_would_be_alone():
    """Each group has its own posterior; one without scenarios has NaN bounds."""
    passed, group = np.array([3, 1, 2, 0, 3]), np.array([0, 0, 2, 2, 2])
    low, high = beta_binomial_interval(passed, 3, groups=group, n_groups=3)
    for code in (0, 2):
        alone = beta_binomial_interval(passed[group == code], 3)
        assert (low[code], high[code]) == pytest.approx(tuple(alone))
    assert np.isnan([low[1], high[1]]).all()


def test_many_groups_and_many_kinds_are_worked_off_in_blocks():
    """More groups and kinds of scenarios than fit a block give the same bounds."""
    rng = np.random.default_rng(4)
    passed, group = rng.integers(0, 400, 1200), np.repeat(np.arange(300), 4)
    low, _ = beta_binomial_interval(passed, 400, groups=group, n_groups=300)
    for code in (0, 255, 256, 299):
        assert low[code] == pytest.approx(beta_binomial_interval(passed[group == code], 400).low)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.sampled_from([0.5, 0.9, 0.99]))
@settings(deadline=None, max_examples=50)
def test_bounds_hold_the_rate(passed, confidence):
    """Bounds lie in [0, 1] around the mean rate, and mirror when passes become failures."""
    low, high = beta_binomial_interval(passed, 5, confidence=confidence)
    assert 0 <= low <= np.mean(passed) / 5 <= high <= 1
    mirrored = beta_binomial_interval(5 - np.array(passed), 5, confidence=confidence)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-6)


def test_all_passed_is_not_certainty():
    """Twenty scenarios that pass ten times each leave room below 1."""
    low, high = beta_binomial_interval([10] * 20, 10)
    assert 0.85 < low < 0.99
    assert high == 1.0


@pytest.mark.parametrize(
    ("passed", "trials", "message"),
    [
        pytest.param([3], 2, "between 0", id="too-many"),
        pytest.param([-1], 2, "between 0", id="negative"),
        pytest.param([0], 0, "at least 1", id="no-trial"),
        pytest.param([float("nan")], 2, "between 0", id="nan"),
        pytest.param([0.5], 1, "whole", id="a-rate"),
    ],
)
def test_what_is_no_count_is_refused(passed, trials, message):
    """Rates in place of counts are a likely slip."""
    with pytest.raises(ValueError, match=message):
        beta_binomial_interval(passed, trials)


def test_pass_rates_offers_the_grid():
    """The option changes bounds and method, and nothing else."""
    trials = _trials([3, 2, 3, 0, 1, 3, 3, 2, 3, 3, 1, 3], 3)
    default, bayes = (pass_rates(trials, interval=i) for i in ("clustered", "beta_binomial"))
    assert bayes["interval"].item() == "beta-binomial grid"
    expected = beta_binomial_interval([3, 2, 3, 0, 1, 3, 3, 2, 3, 3, 1, 3], 3)
    assert tuple(bayes[["rate_low", "rate_high"]].iloc[0]) == pytest.approx(tuple(expected))
    same = default.columns.difference(["interval", "rate_low", "rate_high"])
    pd.testing.assert_frame_equal(default[same], bayes[same])


def test_pass_rates_on_the_grid_by_scenario_stay_about_their_trials():
    """A single scenario keeps Wilson's interval over its own trials."""
    frame = pass_rates(_trials([3, 1], 3), by="scenario", interval="beta_binomial")
    assert frame["interval"].tolist() == ["Wilson over trials"] * 2


def test_the_grid_knows_no_coarser_clusters():
    """Scenarios that share a cluster get no interval, and the note says why."""
    trials = _trials([3, 1, 2, 3], 3).assign(cluster=["x"] * 6 + ["y"] * 6)
    row = pass_rates(trials, interval="beta_binomial").iloc[0]
    assert np.isnan([row["rate_low"], row["rate_high"]]).all()
    assert "no clusters coarser" in row["note"]


def test_the_grid_is_not_about_a_fixed_suite():
    """An option that does not fit, or does not exist, is an error."""
    with pytest.raises(ValueError, match="all_users"):
        pass_rates(_trials([1], 2), estimand="fixed_suite", interval="beta_binomial")
    with pytest.raises(ValueError, match="interval is 'bayes'"):
        pass_rates(_trials([1], 2), interval="bayes")


def test_gamma_differences_stay_exact_for_many_trials():
    """Thousands of trials do not cost the bounds their precision."""
    low, high = beta_binomial_interval([900, 950, 870, 910], 1000)
    assert 0 < low < 0.9075 < high < 1


@pytest.mark.parametrize(("correlation", "seed"), [(0.05, 1), (0.2, 2), (0.6, 3), (0.9, 4)])
def test_correlation_interval_covers(correlation, seed):
    """At 100 scenarios the interval holds the true correlation about as often as it says."""
    rng = np.random.default_rng(seed)
    strength, repeats = (1 - correlation) / correlation, 400
    passed = rng.binomial(3, rng.beta(0.8 * strength, 0.2 * strength, (repeats, 100)))
    low, high = correlation_interval(
        passed.ravel(), 3, groups=np.repeat(np.arange(repeats), 100), n_groups=repeats
    )
    share = ((low <= correlation) & (correlation <= high)).mean()
    assert share >= 0.93 - 4 * np.sqrt(0.93 * 0.07 / repeats)


def test_one_trial_each_says_nothing_about_correlation():
    """Nearly the whole prior is left where no scenario has two trials."""
    low, high = correlation_interval([1, 0, 1, 1, 1, 0], 1)
    assert low < 0.05
    assert high > 0.95
