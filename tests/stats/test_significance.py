"""McNemar's test and the sign-flip permutation against tables, oracles and exact counts."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalkit.stats import mcnemar, sign_flip_test

# Cavo et al. (2012) and Bentur et al. (2009), as in Fagerland, Lydersen and Laake (2013).
PUBLISHED = {
    "cavo asymptotic": (6, 16, "asymptotic", 0.033006, 5e-7),
    "cavo corrected": (6, 16, "continuity-corrected", 0.055009, 5e-7),
    "cavo exact": (6, 16, "exact", 0.052479, 5e-7),
    "cavo mid-p": (6, 16, "mid-p", 0.034690, 5e-7),
    "bentur asymptotic": (1, 7, "asymptotic", 0.0339, 5e-5),
    "bentur corrected": (1, 7, "continuity-corrected", 0.0771, 5e-5),
    "bentur exact": (1, 7, "exact", 0.0703, 5e-5),
    "bentur mid-p": (1, 7, "mid-p", 0.0391, 5e-5),
    # Agresti's approval ratings: z squared is 17.36.
    "approval": (86, 150, "asymptotic", float(scipy_stats.chi2.sf(17.3559, 1)), 5e-9),
}
METHODS = ["mid-p", "exact", "asymptotic", "continuity-corrected"]


@pytest.mark.parametrize(
    ("gained", "lost", "method", "p", "digits"), PUBLISHED.values(), ids=PUBLISHED
)
def test_mcnemar_matches_published_values(gained, lost, method, p, digits):
    """Each variant gives its published p-value, whichever side is which."""
    assert mcnemar(gained, lost, method=method) == pytest.approx(p, abs=digits)
    assert mcnemar(lost, gained, method=method) == mcnemar(gained, lost, method=method)


def test_approval_statistic_rounds_to_the_published_one():
    """The asymptotic p-value of the approval table belongs to z^2 = 17.36."""
    z2 = scipy_stats.chi2.isf(mcnemar(86, 150, method="asymptotic"), 1)
    assert z2 == pytest.approx(17.36, abs=5e-3)


@given(st.integers(0, 300), st.integers(0, 300))
@settings(deadline=None, max_examples=100)
def test_mcnemar_equals_statsmodels(gained, lost):
    """Exact and asymptotic are statsmodels' at every table with a scenario that differs."""
    from statsmodels.stats.contingency_tables import mcnemar as oracle

    if gained + lost == 0:
        return
    table = [[3, gained], [lost, 5]]
    for method, options in (
        ("exact", {"exact": True}),
        ("asymptotic", {"exact": False, "correction": False}),
    ):
        expected = oracle(table, **options).pvalue
        assert mcnemar(gained, lost, method=method) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 12), st.integers(0, 12))
@settings(deadline=None, max_examples=60)
def test_mid_p_counts_what_was_seen_by_half(gained, lost):
    """Added up pattern by pattern: more extreme tables, and half of the equally extreme."""
    n = gained + lost
    if n == 0:
        return
    weights = scipy_stats.binom.pmf(np.arange(n + 1), n, 0.5)
    distance = np.abs(2 * np.arange(n + 1) - n)
    seen = abs(gained - lost)
    expected = weights[distance > seen].sum() + weights[distance == seen].sum() / 2
    assert mcnemar(gained, lost) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_no_scenario_that_differs_is_no_evidence(method):
    """Without a discordant scenario p is 1, by every method."""
    assert mcnemar(0, 0, method=method) == 1.0


def test_mcnemar_is_vectorised():
    """Arrays of counts give arrays of p-values."""
    gained, lost = np.array([6, 1, 0]), np.array([16, 7, 0])
    for method in METHODS:
        expected = [mcnemar(b, c, method=method) for b, c in zip(gained, lost, strict=True)]
        assert mcnemar(gained, lost, method=method).tolist() == expected


@pytest.mark.parametrize(
    ("counts", "method", "message"),
    [
        ((-1, 2), "exact", "must be counts"),
        ((1.5, 2), "exact", "must be counts"),
        ((float("nan"), 2), "exact", "must be counts"),
        ((1, 2), "midp", "method is 'midp'"),
    ],
    ids=["negative", "fraction", "nan", "method"],
)
def test_what_mcnemar_cannot_count_is_refused(counts, method, message):
    """Counts are whole numbers from 0, and the method is one of four."""
    with pytest.raises(ValueError, match=message):
        mcnemar(*counts, method=method)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9))
@settings(deadline=None, max_examples=80)
def test_small_samples_count_every_pattern(fifths):
    """Up to n_resamples patterns the p-value is exact: all signs, one by one."""
    d = np.array(fifths) / 5
    sums = np.array([np.dot(signs, d) for signs in product([1, -1], repeat=len(d))])
    expected = (np.abs(sums) >= abs(d.sum()) - 1e-9).mean()
    found = sign_flip_test(d)
    assert found.exact
    assert found.p_value == pytest.approx(expected)
    assert found.n_signs == np.count_nonzero(d)


def test_exact_p_value_equals_scipy():
    """The paired permutation test of scipy gives the same exact p-value."""
    d = np.array([0.2, -0.6, 0.4, 1.0, 0.2, -0.2, 0.8, 0.4, 0.6, 0.2])
    oracle = scipy_stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip_test(d).p_value == pytest.approx(oracle.pvalue)


def test_drawn_p_value_is_near_the_exact_one():
    """Where patterns are drawn, the p-value agrees with counting them all."""
    rng = np.random.default_rng(2)
    d = rng.integers(1, 5, 18) * rng.choice([-1, 1, 1], 18) / 5
    exact = sign_flip_test(d, n_resamples=2**18)
    drawn = sign_flip_test(d, n_resamples=100_000)
    assert exact.exact
    assert not drawn.exact
    noise = np.sqrt(exact.p_value * (1 - exact.p_value) / 100_000)
    assert abs(drawn.p_value - exact.p_value) <= 4 * noise


def test_drawn_p_value_is_never_zero():
    """A thousand scenarios that are all worse leave 1 / (1 + n_resamples), not 0."""
    assert sign_flip_test(-np.ones(1000), n_resamples=999).p_value == 1 / 1000


def test_the_seed_decides_the_drawn_patterns():
    """The same seed repeats the p-value, another seed gives another one."""
    d = np.random.default_rng(8).integers(-4, 5, 200) / 5
    found = {seed: sign_flip_test(d, seed=seed) for seed in (0, 1, 2)}
    assert sign_flip_test(d, seed=1) == found[1]
    assert len({result.p_value for result in found.values()}) > 1


def test_clusters_flip_together():
    """Scenarios of one cluster are one sign: their sum is flipped."""
    d, clusters = np.array([0.5, 0.5, -0.2, 0.4, 0.4]), ["x", "x", "y", "z", "z"]
    together = sign_flip_test(d, clusters=clusters)
    assert together == sign_flip_test([1.0, -0.2, 0.8])
    assert together.p_value > sign_flip_test(d).p_value


def test_nothing_to_flip_is_said():
    """No difference gives 1; no scenario gives NaN."""
    assert sign_flip_test([0.0, 0.0]) == (1.0, 0, True)
    assert np.isnan(sign_flip_test([]).p_value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_unmeasured_differences_are_refused(bad):
    """A difference that is not known must be left out and counted by the caller."""
    with pytest.raises(ValueError, match="differences hold NaN"):
        sign_flip_test([0.5, bad])
    with pytest.raises(ValueError, match="n_resamples is 0"):
        sign_flip_test([0.5], n_resamples=0)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.randoms())
@settings(deadline=None, max_examples=40)
def test_sign_flips_do_not_care_about_the_side(fifths, random):
    """Swapping run and baseline changes no p-value; nor does the order, where it is exact."""
    d = np.array(fifths) / 5
    assert sign_flip_test(-d, n_resamples=500) == sign_flip_test(d, n_resamples=500)
    shuffled = random.sample(fifths, len(fifths))
    if sign_flip_test(d).exact:
        assert sign_flip_test(np.array(shuffled) / 5).p_value == pytest.approx(
            sign_flip_test(d).p_value
        )


def test_false_alarms_stay_below_the_level():
    """Unchanged agents at 20 scenarios x 5 trials are called different in at most 5 %."""
    rng = np.random.default_rng(12)
    truth = rng.beta(0.8, 0.2, (400, 20))
    d = (rng.binomial(5, truth) - rng.binomial(5, truth)) / 5
    alarms = np.mean([sign_flip_test(row, n_resamples=999).p_value <= 0.05 for row in d])
    assert alarms <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)


def test_memory_stays_bounded():
    """10,000 scenarios x 10,000 resamples take megabytes, not their product."""
    d = np.random.default_rng(1).integers(-10, 11, 10_000) / 10
    tracemalloc.start()
    sign_flip_test(d)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6
