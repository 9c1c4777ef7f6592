"""Intervals against published tables, oracle libraries and their own promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalkit.stats import clopper_pearson, clustered_wilson, wilson

# Newcombe (1998), Statistics in Medicine 17:857, table I; the others agree with scipy.
PUBLISHED = [
    (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
    (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
    (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
    (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
]


@pytest.mark.parametrize(("passed", "n", "expected", "exact"), PUBLISHED)
def test_intervals_match_newcombe(passed, n, expected, exact):
    """Wilson and Clopper-Pearson give the bounds of Newcombe's table."""
    assert wilson(passed, n) == pytest.approx(expected, abs=6e-5)
    assert clopper_pearson(passed, n) == pytest.approx(exact, abs=6e-5)


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [
        (17, 20, 0.6396, 0.9476),
        (5, 5, 0.5655, 1.0),
        (20, 20, 0.838875, 1.0),
        (19, 20, 0.763869, 0.991119),
        (850, 1000, 0.826531, 0.870790),
    ],
)
def test_wilson_matches_reference_values(passed, n, low, high):
    """Wilson gives the reference values, and all passed is not certainty."""
    assert wilson(passed, n) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize(
    ("n", "low"), [(3, 0.368), (5, 0.549), (10, 0.741), (20, 0.861), (59, 0.951), (299, 0.990)]
)
def test_exact_lower_bound_of_all_passed(n, low):
    """The one-sided 95 % lower bound of n out of n is that of a two-sided 90 % interval."""
    assert clopper_pearson(n, n, confidence=0.90).low == pytest.approx(low, abs=6e-4)


@given(st.integers(1, 400), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None, max_examples=100)
def test_intervals_equal_scipy(n, data, confidence):
    """Both intervals are those of scipy.stats.binomtest at every count."""
    passed = data.draw(st.integers(0, n))
    oracle = scipy_stats.binomtest(passed, n)
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        theirs = oracle.proportion_ci(confidence, method)
        assert ours(passed, n, confidence=confidence) == pytest.approx(tuple(theirs), abs=1e-9)


@given(st.integers(1, 400), st.data())
@settings(deadline=None, max_examples=60)
def test_intervals_equal_statsmodels(n, data):
    """Both intervals are those of statsmodels' proportion_confint at every count."""
    from statsmodels.stats.proportion import proportion_confint

    passed = data.draw(st.integers(0, n))
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        theirs = proportion_confint(passed, n, method=method)
        assert ours(passed, n) == pytest.approx(theirs, abs=1e-9)


def test_intervals_are_vectorised():
    """An array of counts gives arrays with the bounds of each count."""
    counts = np.arange(6)
    for function in (wilson, clopper_pearson):
        low, high = function(counts, 5)
        assert [(a, b) for a, b in zip(low, high, strict=True)] == [
            tuple(function(count, 5)) for count in counts
        ]


def test_nothing_measured_has_no_bounds():
    """Zero trials give NaN, neither 0 nor 1."""
    assert np.isnan(wilson(0, 0)).all()
    assert np.isnan(clopper_pearson([0, 0], [0, 0])).all()


@pytest.mark.parametrize(("passed", "n"), [(3, 2), (-1, 2), (float("nan"), 2)])
def test_impossible_counts_are_refused(passed, n):
    """More passed than there were, or fewer than none, is an error and not a bound."""
    with pytest.raises(ValueError, match="between 0 and n"):
        wilson(passed, n)


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, float("nan")])
def test_impossible_confidence_is_refused(confidence):
    """A confidence level is a number between 0 and 1; 95 is a likely slip."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson(1, 2, confidence=confidence)


def test_clustered_wilson_with_one_trial_each_is_wilson():
    """One trial a scenario leaves nothing to cluster: plain Wilson with the normal quantile."""
    rates = [1] * 17 + [0] * 3
    assert clustered_wilson(rates, n_trials=1) == pytest.approx(wilson(17, 20))


def test_clustered_wilson_follows_its_formula():
    """Effective size m(1-m)/se^2, Student's t with n - 1, Wilson's bounds."""
    rates = np.array([1.0, 0.75, 0.5, 0.5, 0.0, 1.0])
    m, se2 = rates.mean(), rates.var(ddof=1) / 6
    n, q = np.clip(m * (1 - m) / se2, 6, 24), scipy_stats.t.ppf(0.975, 5)
    centre, half = (m + q**2 / 2 / n), q * np.sqrt(m * (1 - m) / n + q**2 / 4 / n**2)
    expected = (centre - half) / (1 + q**2 / n), (centre + half) / (1 + q**2 / n)
    assert clustered_wilson(rates, n_trials=4) == pytest.approx(expected)


def test_clustered_wilson_without_spread_counts_scenarios_not_trials():
    """Twenty scenarios that all pass ten times are twenty observations, not two hundred."""
    q = scipy_stats.t.ppf(0.975, 19)
    assert clustered_wilson([1.0] * 20, n_trials=10) == pytest.approx((20 / (20 + q**2), 1.0))


@pytest.mark.parametrize("rate", [1 / 3, 0.1, 0.7])
def test_rounding_is_not_mistaken_for_spread(rate):
    """Equal rates that binary floats cannot hold still count as no spread."""
    flat = clustered_wilson([rate] * 30, n_trials=10)
    fallback = clustered_wilson([rate] * 30, n_trials=2)
    assert flat == pytest.approx(fallback)


def test_clustered_wilson_needs_two_clusters():
    """One cluster shows no spread between clusters, so there are no bounds."""
    assert np.isnan(clustered_wilson([0.5], n_trials=10)).all()
    assert np.isnan(clustered_wilson([0.5, 1.0], n_trials=10, clusters=["x", "x"])).all()


def test_coarser_clusters_widen_the_interval():
    """Scenarios that resemble each other carry less than independent ones."""
    rates = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    alone = clustered_wilson(rates, n_trials=3)
    together = clustered_wilson(rates, n_trials=3, clusters=np.repeat([0, 1, 2, 3], 3))
    assert together.high - together.low > alone.high - alone.low


@pytest.mark.parametrize(
    ("rates", "n_trials"), [([0.5, float("nan")], 2), ([1.2, 0.5], 2), ([0.5, 0.5], 0)]
)
def test_clustered_wilson_refuses_what_is_no_rate(rates, n_trials):
    """A rate outside [0, 1], or one without trials, is an error."""
    with pytest.raises(ValueError, match=r"rates must|n_trials must"):
        clustered_wilson(rates, n_trials=n_trials)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.sampled_from([0.5, 0.9, 0.99]))
@settings(deadline=None, max_examples=100)
def test_clustered_wilson_holds_its_estimate(passes, confidence):
    """Bounds lie in [0, 1] and around the mean of the rates."""
    rates = np.array(passes) / 5
    low, high = clustered_wilson(rates, n_trials=5, confidence=confidence)
    assert 0 <= low <= rates.mean() <= high <= 1
