"""The abort rule: its evidence, how often it is wrong, how soon it is right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from evalkit.stats import DisasterRule, disaster_e_value

REPEATS = 2000


def _changes(*, n, drop, k=1, k_baseline=1, seed=5, mean=0.8):
    """Return how many scenarios got worse and better so far, one row a repeat."""
    rng = np.random.default_rng([seed, n, k, k_baseline])
    rates = rng.beta(mean, 1 - mean, (REPEATS, n))
    broken = rng.random((REPEATS, n)) < drop / mean
    change = rng.binomial(k, np.where(broken, 0, rates)) - rng.binomial(k_baseline, rates)
    return (change < 0).cumsum(1), (change > 0).cumsum(1)


def _alarms(worse, better):
    """Return how often there is an alarm, and after how many scenarios at the median."""
    alarm = disaster_e_value(worse, better) >= 20
    first = np.where(alarm.any(1), alarm.argmax(1) + 1, np.inf)
    return alarm.any(1).mean(), np.median(first)


@pytest.mark.parametrize(("n", "k"), [(100, 1), (400, 1), (100, 5)])
def test_an_unchanged_agent_is_rarely_stopped(n, k):
    """However often one looks, at most 5 % of runs are stopped for nothing."""
    share, _ = _alarms(*_changes(n=n, drop=0, k=k, k_baseline=k))
    assert share <= 0.05
    assert share > 0  # the rule can be wrong, so the bound is tested


def test_a_disaster_is_caught_early():
    """A 21-point drop is caught in nine of ten runs of 100, half of them by 45 scenarios."""
    share, median = _alarms(*_changes(n=100, drop=0.21))
    assert share > 0.85
    assert median <= 45


def test_a_moderate_drop_is_often_missed():
    """Nine points are missed in most runs of 100: no alarm is no verdict."""
    share, _ = _alarms(*_changes(n=100, drop=0.09))
    assert 0.25 < share < 0.5


def test_looking_all_the_time_with_a_fixed_test_is_wrong_too_often():
    """The simulation can fail: an exact test after each scenario alarms far above 5 %."""
    from scipy.stats import binom

    worse, better = _changes(n=400, drop=0)
    p = binom.sf(worse - 1, worse + better, 0.5)
    assert (p <= 0.05).any(1).mean() > 0.1


@pytest.mark.parametrize(("worse", "better"), [(0, 0), (1, 0), (0, 3), (7, 2), (30, 25)])
def test_e_value_is_the_mixture_that_it_says(worse, better):
    """The closed form equals the integral of the likelihood ratio over shares above 1/2."""

    def ratio(share):
        return (2 * share) ** worse * (2 * (1 - share)) ** better * share

    value = integrate.quad(ratio, 0.5, 1)[0] / integrate.quad(lambda s: s, 0.5, 1)[0]
    assert disaster_e_value(worse, better) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("share", [0.5, 0.4, 0.1])
@pytest.mark.parametrize(("worse", "better"), [(0, 0), (3, 1), (10, 12)])
def test_evidence_does_not_grow_by_itself(worse, better, share):
    """If worse is no likelier than better, the next scenario is expected to add nothing."""
    after = share * disaster_e_value(worse + 1, better) + (1 - share) * disaster_e_value(
        worse, better + 1
    )
    assert after <= disaster_e_value(worse, better) * (1 + 1e-12)


def test_extreme_counts_neither_warn_nor_mislead():
    """Thousands that got better are no evidence; thousands that got worse are all of it."""
    assert disaster_e_value([0, 5000], [5000, 0]).tolist() == [0.0, float("inf")]


def test_trials_of_a_scenario_count_once():
    """Five trials that all broke are one worse scenario."""
    state = DisasterRule().add("a", [False] * 5, baseline=[True] * 5)
    assert (state.n_scenarios, state.n_worse, state.n_better) == (1, 1, 0)
    assert state.e_value == pytest.approx(float(disaster_e_value(1, 0)))


def test_surplus_trials_are_left_out():
    """One new trial is compared with one of the baseline, or no change would look like one."""
    rule = DisasterRule()
    state = rule.add("a", [True], baseline=[True, False, False])
    assert (state.n_worse, state.n_better) == (0, 0)
    assert rule.add("b", [], baseline=[True]).n_scenarios == 2
    assert rule.state.e_value == 1.0


def test_unequal_trials_would_raise_false_alarms_if_all_were_compared():
    """Why they are left out: against three trials a hard scenario looks worse by chance."""
    rng = np.random.default_rng(0)
    difference = rng.binomial(1, 0.1, 20_000) - rng.binomial(3, 0.1, 20_000) / 3
    assert (difference < 0).mean() > 1.5 * (difference > 0).mean()


def test_an_alarm_stays():
    """Once the evidence was enough the run stays aborted, whatever comes later."""
    rule = DisasterRule(confidence=0.9)
    for i in range(5):
        rule.add(f"worse-{i}", [False], baseline=[True])
    assert rule.state.aborted
    for i in range(9):
        state = rule.add(f"better-{i}", [True], baseline=[False])
    assert state.aborted
    assert state.e_value < 1


def test_a_scenario_is_added_once():
    """Adding a scenario again is an error, because its trials count once."""
    rule = DisasterRule()
    rule.add("a", [True], baseline=[True])
    with pytest.raises(ValueError, match="'a' was added before"):
        rule.add("a", [True], baseline=[True])


@pytest.mark.parametrize("outcome", [None, float("nan"), "failed", 0.5])
def test_what_was_not_measured_is_no_outcome(outcome):
    """An incomplete trial is neither passed nor failed, and the scenario is not used up."""
    rule = DisasterRule()
    with pytest.raises(ValueError, match="leave out incomplete"):
        rule.add("a", [outcome], baseline=[True])
    assert rule.state.n_scenarios == 0


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_impossible_confidence_is_refused(confidence):
    """A confidence level lies between 0 and 1."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        DisasterRule(confidence=confidence)


def test_negative_counts_are_refused():
    """Counts of changed scenarios start at 0."""
    with pytest.raises(ValueError, match="at least 0"):
        disaster_e_value(-1, 0)
