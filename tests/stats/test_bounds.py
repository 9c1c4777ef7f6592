"""Jeffreys' interval and one-sided exact bounds against reference values and oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalkit.stats import exact_lower_bound, exact_upper_bound, jeffreys

REFERENCE = [
    (81, 263, 0.254522, 0.365647),
    (15, 148, 0.060449, 0.157643),
    (0, 20, 0.000024, 0.116639),
    (1, 29, 0.003746, 0.150078),
]


@pytest.mark.parametrize(("passed", "n", "low", "high"), REFERENCE)
def test_jeffreys_matches_reference_values(passed, n, low, high):
    """Raw quantiles of Beta(passed + 1/2, failed + 1/2), to the printed digits."""
    assert jeffreys(passed, n) == pytest.approx((low, high), abs=5.1e-7)


@given(st.integers(1, 400), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None, max_examples=100)
def test_jeffreys_equals_statsmodels(n, data, confidence):
    """The interval is statsmodels' at every count."""
    from statsmodels.stats.proportion import proportion_confint

    passed = data.draw(st.integers(0, n))
    theirs = proportion_confint(passed, n, alpha=1 - confidence, method="jeffreys")
    assert jeffreys(passed, n, confidence=confidence) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "low"), [(3, 0.368), (5, 0.549), (10, 0.741), (20, 0.861), (59, 0.951), (299, 0.990)]
)
def test_lower_bound_of_all_passed(n, low):
    """All of n passed proves a rate of .05 ** (1 / n) at 95 %, and not certainty."""
    assert exact_lower_bound(n, n) == pytest.approx(0.05 ** (1 / n))
    assert exact_lower_bound(n, n) == pytest.approx(low, abs=6e-4)


@given(st.integers(1, 200), st.data(), st.sampled_from([0.9, 0.95, 0.99]))
@settings(deadline=None, max_examples=60)
def test_bounds_are_scipys_one_sided_ones(n, data, confidence):
    """Both bounds equal the exact interval of scipy's one-sided tests."""
    passed = data.draw(st.integers(0, n))
    low = scipy_stats.binomtest(passed, n, alternative="greater").proportion_ci(confidence).low
    high = scipy_stats.binomtest(passed, n, alternative="less").proportion_ci(confidence).high
    assert exact_lower_bound(passed, n, confidence=confidence) == pytest.approx(low, abs=1e-9)
    assert exact_upper_bound(passed, n, confidence=confidence) == pytest.approx(high, abs=1e-9)


def test_lower_bound_is_never_broken_too_often():
    """Over all counts of 20 trials the bound exceeds the true rate in at most 5 % of cases."""
    rates = np.linspace(0.02, 0.99, 98)
    counts = np.arange(21)
    chance = scipy_stats.binom.pmf(counts, 20, rates[:, None])
    wrong = exact_lower_bound(counts, 20) > rates[:, None]
    assert (chance * wrong).sum(1).max() <= 0.05 + 1e-12


@pytest.mark.parametrize("function", [exact_lower_bound, exact_upper_bound, jeffreys])
def test_nothing_measured_has_no_bound(function):
    """Zero trials give NaN, also among others."""
    assert np.isnan(np.array(function([0, 1], [0, 2]))[..., 0]).all()
    assert not np.isnan(np.array(function([0, 1], [0, 2]))[..., 1]).any()


@pytest.mark.parametrize("function", [exact_lower_bound, exact_upper_bound, jeffreys])
@pytest.mark.parametrize("passed", [3, -1, float("nan")])
def test_impossible_counts_are_refused(function, passed):
    """More passed than there were, or fewer than none, is an error and not a bound."""
    with pytest.raises(ValueError, match="between 0 and n"):
        function(passed, 2)


@pytest.mark.parametrize("confidence", [0.5, 0.05, 95, float("nan")])
def test_one_sided_confidence_lies_above_one_half(confidence):
    """.05 and 95 are likely slips for .95."""
    with pytest.raises(ValueError, match="confidence is"):
        exact_lower_bound(1, 2, confidence=confidence)
