"""Intervals for differences against published tables, an oracle and their own promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalkit.stats import (
    clustered_wilson,
    mover_difference,
    newcombe_independent,
    newcombe_paired,
)

# Newcombe (1998), Statistics in Medicine 17:873, method 10.
INDEPENDENT = [
    (56, 70, 48, 80, (0.0524, 0.3339)),
    (9, 10, 3, 10, (0.1705, 0.8090)),
    (6, 7, 2, 7, (0.0582, 0.8062)),
    (5, 56, 0, 29, (-0.0381, 0.1926)),
    (0, 10, 0, 20, (-0.1611, 0.2775)),
    (10, 10, 0, 10, (0.6075, 1.0)),
]
# Both passed, only the run, only the baseline, both failed.
PAIRED = {
    "cavo": ((59, 6, 16, 80), (-0.1186, -0.0046), 6e-5),
    "bentur": ((1, 1, 7, 12), (-0.50692, -0.025559), 5e-7),
    "two": ((1, 0, 0, 1), (-0.5734, 0.5734), 6e-5),
}

rates = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=25)
tables = st.tuples(*[st.integers(0, 40)] * 4).filter(lambda table: sum(table) > 0)
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


def _paired(table, **options):
    """Return Newcombe's paired interval of a table of four counts."""
    both, run, baseline, neither = table
    return newcombe_paired(run, baseline, both_passed=both, both_failed=neither, **options)


def _outcomes(table):
    """Return the outcomes of run and baseline that a table counts."""
    pairs = [(1, 1), (1, 0), (0, 1), (0, 0)]
    return np.repeat(np.array(pairs), table, axis=0).T


@pytest.mark.parametrize(("passed", "n", "other", "m", "expected"), INDEPENDENT)
def test_independent_interval_matches_newcombe(passed, n, other, m, expected):
    """Method 10 gives the bounds of Newcombe's table."""
    found = newcombe_independent(passed, n, n_passed_baseline=other, n_baseline=m)
    assert found == pytest.approx(expected, abs=6e-5)


@given(st.integers(1, 60), st.integers(1, 60), st.data())
@settings(deadline=None, max_examples=60)
def test_independent_interval_equals_statsmodels(n, m, data):
    """The independent interval is statsmodels' Newcombe interval at every count."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    passed, other = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    theirs = confint_proportions_2indep(passed, n, other, m, method="newcomb", compare="diff")
    ours = newcombe_independent(passed, n, n_passed_baseline=other, n_baseline=m)
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("table", "expected", "digits"), PAIRED.values(), ids=PAIRED)
def test_paired_interval_matches_published_tables(table, expected, digits):
    """Method 10 for pairs gives the published bounds, also where nothing differs."""
    assert _paired(table) == pytest.approx(expected, abs=digits)


@given(tables, confidences)
@settings(deadline=None, max_examples=100)
def test_mover_with_one_trial_each_is_newcombe(table, confidence):
    """One trial on both sides of every scenario leaves Newcombe's paired interval."""
    run, baseline = _outcomes(table)
    expected = _paired(table, confidence=confidence)
    if len(run) < 2:
        expected = (np.nan, np.nan)  # one scenario shows no spread between scenarios
    found = mover_difference(run, baseline, confidence=confidence)
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_mover_follows_its_formula():
    """Clustered Wilson bounds of each side, joined by the correlation of the rates."""
    x, y = np.array([1.0, 0.75, 0.5, 0.5, 0.0, 1.0]), np.array([0.6, 1.0, 0.6, 0.4, 0.2, 1.0])
    r = np.corrcoef(x, y)[0, 1]
    (l1, u1), (l2, u2) = clustered_wilson(x, n_trials=4), clustered_wilson(y, n_trials=5)
    p, q = x.mean(), y.mean()
    low = p - q - np.sqrt((p - l1) ** 2 - 2 * r * (p - l1) * (u2 - q) + (u2 - q) ** 2)
    high = p - q + np.sqrt((u1 - p) ** 2 - 2 * r * (u1 - p) * (q - l2) + (q - l2) ** 2)
    found = mover_difference(x, y, n_trials=4, n_trials_baseline=5)
    assert found == pytest.approx((low, high))


def test_one_trial_on_one_side_uses_students_quantile():
    """A single-trial baseline beside repeated trials has Wilson-t margins on both sides."""
    x, y = np.array([1.0, 0.5, 0.0, 0.75, 1.0]), np.array([1.0, 1.0, 0.0, 0.0, 1.0])
    n, p, t = 5, y.mean(), scipy_stats.t.ppf(0.975, 4)
    half = t * np.sqrt(p * (1 - p) / n + t**2 / 4 / n**2) / (1 + t**2 / n)
    l2, u2 = (p + t**2 / 2 / n) / (1 + t**2 / n) + np.array([-half, half])
    (l1, u1), q, r = clustered_wilson(x, n_trials=4), x.mean(), np.corrcoef(x, y)[0, 1]
    low = q - p - np.sqrt((q - l1) ** 2 - 2 * r * (q - l1) * (u2 - p) + (u2 - p) ** 2)
    high = q - p + np.sqrt((u1 - q) ** 2 - 2 * r * (u1 - q) * (p - l2) + (p - l2) ** 2)
    assert mover_difference(x, y, n_trials=4) == pytest.approx((low, high))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_pairs_do_not_cancel_the_interval(n):
    """Two scenarios always correlate perfectly, which says nothing about certainty."""
    x, y = np.linspace(0, 0.2, n), np.linspace(0, 1, n)
    low, high = mover_difference(x, y, n_trials=5, n_trials_baseline=5)
    assert high > 0.1
    assert low < -0.6


def test_groups_are_compared_apart():
    """Each group gets what it would get alone; a group without scenarios has no bounds."""
    x, y = np.array([1.0, 0.4, 0.8, 0.0, 0.2]), np.array([1.0, 0.8, 0.8, 0.6, 0.0])
    groups = np.array([0, 0, 0, 2, 2])
    low, high = mover_difference(x, y, n_trials=5, n_trials_baseline=5, groups=groups, n_groups=3)
    for group in (0, 2):
        own = groups == group
        alone = mover_difference(x[own], y[own], n_trials=5, n_trials_baseline=5)
        assert (low[group], high[group]) == pytest.approx(alone)
    assert np.isnan([low[1], high[1]]).all()


def test_coarser_clusters_widen_a_difference():
    """Scenarios that changed together carry less than scenarios that changed alone."""
    y = np.ones(12)
    x = np.repeat([1.0, 0.0, 1.0, 1.0], 3)
    alone = mover_difference(x, y, n_trials=3, n_trials_baseline=3)
    together = mover_difference(
        x, y, n_trials=3, n_trials_baseline=3, clusters=np.repeat([0, 1, 2, 3], 3)
    )
    assert together.low < alone.low
    assert together.high > alone.high


def test_correlation_rests_on_the_declared_clusters():
    """With whole clusters repeated, the interval is that of the clusters alone."""
    x, y = np.array([1.0, 0.2, 0.6, 0.4, 1.0]), np.array([0.8, 0.2, 1.0, 0.4, 1.0])
    clusters = np.repeat(np.arange(5), 3)
    repeated = mover_difference(
        np.repeat(x, 3), np.repeat(y, 3), n_trials=5, n_trials_baseline=5, clusters=clusters
    )
    assert repeated == pytest.approx(mover_difference(x, y, n_trials=15, n_trials_baseline=15))


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_no_difference_anywhere_is_not_certainty(value):
    """All passed, all failed or all alike on both sides still leaves doubt."""
    low, high = mover_difference([value] * 20, [value] * 20, n_trials=3, n_trials_baseline=3)
    assert low < -0.05
    assert high > 0.05


def test_scenarios_are_counted_not_trials():
    """More trials of scenarios that never vary make no narrower interval."""
    few = mover_difference([1.0] * 9 + [0.0], [1.0] * 10, n_trials=2, n_trials_baseline=2)
    many = mover_difference([1.0] * 9 + [0.0], [1.0] * 10, n_trials=50, n_trials_baseline=50)
    assert few == pytest.approx(many)


def test_one_cluster_has_no_bounds():
    """One scenario or cluster shows no spread: NaN, neither 0 nor 1."""
    assert np.isnan(mover_difference([1.0], [0.0], n_trials=9)).all()
    assert np.isnan(mover_difference([1.0, 0.5], [0.0, 1.0], clusters=["x", "x"])).all()
    assert np.isnan(mover_difference([], [])).all()


def test_nothing_measured_has_no_difference():
    """No scenario, or no trial on a side, has NaN bounds."""
    assert np.isnan(_paired((0, 0, 0, 0))).all()
    assert np.isnan(newcombe_independent(1, 2, n_passed_baseline=0, n_baseline=0)).all()


def test_counts_may_be_arrays():
    """Arrays of counts give arrays of bounds, one each."""
    columns = np.array([table for table, _, _ in PAIRED.values()]).T
    both, run, baseline, neither = columns
    low, high = newcombe_paired(run, baseline, both_passed=both, both_failed=neither)
    for i, (table, _, _) in enumerate(PAIRED.values()):
        assert (low[i], high[i]) == _paired(table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 1.0], [0.5]), "rates has 2 scenarios and baseline 1"),
        (([0.5, float("nan")], [0.5, 0.5]), "rates must lie"),
        (([0.5, 1.2], [0.5, 0.5]), "rates must lie"),
        (([0.5, 0.5], [-0.1, 0.5]), "rates must lie"),
    ],
    ids=["lengths", "nan", "above", "below"],
)
def test_what_is_no_pair_of_rates_is_refused(arguments, message):
    """Sides of different length, and what is no rate, are errors."""
    with pytest.raises(ValueError, match=message):
        mover_difference(*arguments)


def test_impossible_counts_are_refused():
    """A rate without a trial, a negative count and a confidence of 95 are errors."""
    with pytest.raises(ValueError, match="n_trials must"):
        mover_difference([0.5, 0.5], [0.5, 0.5], n_trials_baseline=0)
    with pytest.raises(ValueError, match="0 or more"):
        _paired((-1, 2, 3, 4))
    with pytest.raises(ValueError, match="between 0 and n"):
        newcombe_independent(3, 2, n_passed_baseline=0, n_baseline=1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        _paired((1, 2, 3, 4), confidence=95)


@given(rates, confidences)
@settings(deadline=None, max_examples=100)
def test_mover_holds_its_difference_and_mirrors(pairs, confidence):
    """Bounds lie in [-1, 1] around the difference, and swap signs with the sides."""
    x, y = np.array(pairs).T / 5
    options = {"n_trials": 5, "n_trials_baseline": 5, "confidence": confidence}
    low, high = mover_difference(x, y, **options)
    difference = x.mean() - y.mean()
    assert -1 <= low <= difference + 1e-12
    assert difference - 1e-12 <= high <= 1
    mirrored = mover_difference(y, x, **options)
    assert (-mirrored.high, -mirrored.low) == pytest.approx((low, high), abs=1e-12)


@given(tables)
@settings(deadline=None, max_examples=100)
def test_more_confidence_is_a_wider_paired_interval(table):
    """Newcombe's bounds move apart as the confidence rises."""
    low, high = zip(*(_paired(table, confidence=c) for c in (0.5, 0.8, 0.95, 0.99)), strict=True)
    assert (np.diff(low) <= 1e-12).all()
    assert (np.diff(high) >= -1e-12).all()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=4))
@settings(deadline=None, max_examples=60)
def test_more_confidence_is_a_wider_interval_of_few_scenarios(pairs):
    """MOVER's bounds move apart as the confidence rises where no correlation helps."""
    x, y = np.array(pairs).T / 5
    _assert_widening(x, y)


@pytest.mark.parametrize("seed", range(20))
def test_more_confidence_is_a_wider_interval_of_simulated_runs(seed):
    """MOVER's bounds move apart as the confidence rises for runs as agents give them."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.8, 0.2, 20)
    _assert_widening(rng.binomial(5, truth) / 5, rng.binomial(5, truth) / 5)


def _assert_widening(x, y):
    bounds = [
        mover_difference(x, y, n_trials=5, n_trials_baseline=5, confidence=c)
        for c in (0.5, 0.8, 0.95, 0.99)
    ]
    low, high = zip(*bounds, strict=True)
    assert (np.diff(low) <= 1e-12).all()
    assert (np.diff(high) >= -1e-12).all()


def test_many_trials_approach_the_paired_t_interval():
    """With many scenarios away from 0 and 1 it is close to the usual paired interval."""
    rng = np.random.default_rng(4)
    truth = rng.uniform(0.3, 0.7, 2000)
    x, y = rng.binomial(10, truth) / 10, rng.binomial(10, truth) / 10
    error = (x - y).std(ddof=1) / np.sqrt(2000)
    t = scipy_stats.t.ppf(0.975, 1999)
    low, high = mover_difference(x, y, n_trials=10, n_trials_baseline=10)
    assert (high - low) / 2 == pytest.approx(t * error, rel=0.02)
