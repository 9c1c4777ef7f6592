"""Sample sizes against published figures and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalkit.stats import confidence_per_look, independent_sample_size, sample_size


@pytest.mark.parametrize(
    ("within", "k", "expected"),
    [
        pytest.param(0.0, 1, 968.9975, id="969-questions"),
        pytest.param(1 / 6, 1, 3875.99, id="one-trial"),
        pytest.param(1 / 6, 10, 1259.70, id="ten-trials"),
    ],
)
def test_sample_size_matches_miller(within, k, expected):
    """Miller's (2024) example for three points, with and without the noise of trials."""
    found = sample_size(0.03, between_variance=1 / 9, within_variance=within, n_trials=k)
    assert found == pytest.approx(expected, abs=5e-3)
    if within == 0:
        assert math.ceil(found) == 969


@pytest.mark.parametrize(
    ("rate", "other", "power", "confidence", "sides"),
    [(0.8, 0.7, 0.8, 0.95, 2), (0.95, 0.9, 0.9, 0.99, 2), (0.8, 0.5, 0.8, 0.95, 1)],
)
def test_independent_sample_size_equals_statsmodels(rate, other, power, confidence, sides):
    """The arcsine method for two groups is that of statsmodels."""
    from statsmodels.stats.power import NormalIndPower
    from statsmodels.stats.proportion import proportion_effectsize

    oracle = NormalIndPower().solve_power(
        effect_size=proportion_effectsize(rate, other),
        alpha=1 - confidence,
        power=power,
        alternative="two-sided" if sides == 2 else "larger",
    )
    found = independent_sample_size(rate, other, power=power, confidence=confidence, sides=sides)
    # statsmodels' two-sided power also counts the other, practically empty tail.
    assert found == pytest.approx(oracle, rel=1e-5)


def test_independent_sample_size_matches_the_reference_value():
    """80 % against 70 %, two-sided .05, power .8: 291.69 in each group, either way round."""
    assert independent_sample_size([0.8, 0.7], [0.7, 0.8]) == pytest.approx(291.69, abs=5e-3)


def test_sample_size_takes_a_paired_test_to_its_power():
    """With the scenarios that it asks for, a paired test sees the difference in 80 % of draws."""
    rng = np.random.default_rng(11)
    n = math.ceil(sample_size(0.2, between_variance=0.25, within_variance=0.0))
    draws = rng.normal(0.2, 0.5, (4000, n))
    z = draws.mean(1) / (draws.std(1, ddof=1) / np.sqrt(n))
    assert (z > 1.959964).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"difference": 0}, "above 0", id="no-difference"),
        pytest.param({"difference": float("nan")}, "above 0", id="nan"),
        pytest.param({"between_variance": -1}, "at least 0", id="variance"),
        pytest.param({"n_trials": 0}, "at least 1", id="no-trials"),
        pytest.param({"power": 80}, "power is 80", id="percent"),
        pytest.param({"power": 0.3}, "power is 0.3", id="below-a-coin"),
        pytest.param({"confidence": 95}, "between 0 and 1", id="confidence"),
        pytest.param({"sides": 3}, "sides is 3", id="sides"),
    ],
)
def test_impossible_plans_are_refused(arguments, message):
    """A number that makes no sense is an error that names it."""
    plan = {"difference": 0.1, "between_variance": 0.1} | arguments
    with pytest.raises(ValueError, match=message):
        sample_size(plan.pop("difference"), **plan)


@pytest.mark.parametrize(("rate", "other"), [(0.5, 0.5), (1.2, 0.5), (0.5, float("nan"))])
def test_rates_that_cannot_be_told_apart_are_refused(rate, other):
    """Equal rates, and numbers that are no rates, have no sample size."""
    with pytest.raises(ValueError, match="differ"):
        independent_sample_size(rate, other)


def test_looks_share_the_allowed_error():
    """Three looks at .95 use .9833 each; one look is the plain level."""
    assert confidence_per_look(0.95, looks=3) == pytest.approx(1 - 0.05 / 3)
    assert confidence_per_look(0.9, looks=1) == pytest.approx(0.9)


@pytest.mark.parametrize("looks", [0, -1, 1.5, True, "3"])
def test_looks_are_counted(looks):
    """The number of looks is a positive integer."""
    with pytest.raises(ValueError, match="looks is"):
        confidence_per_look(looks=looks)
