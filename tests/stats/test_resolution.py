"""What a suite can resolve: the published table, runs and plans, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.stats import (
    detectable_drops,
    flakiness,
    mover_difference,
    resolution_text,
    scenarios_needed,
    trials_needed,
)

# Scenarios, trials, uniform drop and drop of a few broken ones in points, at a rate of .8.
TABLE = [
    (20, 3, 13, 26),
    (50, 1, 14, 19),
    (50, 3, 8, 14),
    (50, 10, 4, 11),
    (100, 3, 6, 9),
    (200, 5, 3, 5),
]


def _trials(*pairs, **columns):
    """Return trials of one scenario a pair of (passed, trials)."""
    rows = [
        {
            "run_id": "r1",
            "scenario": f"s{i:03d}",
            "trial": trial,
            "status": "passed" if trial < passed else "failed",
        }
        for i, (passed, n) in enumerate(pairs)
        for trial in range(n)
    ]
    return pd.DataFrame(rows, columns=["run_id", "scenario", "trial", "status"]).assign(**columns)


@pytest.mark.parametrize(("n", "k", "uniform", "few_break"), TABLE)
def test_drops_match_the_table(n, k, uniform, few_break):
    """The detectable drops at 80 % power, a rate of .8 and an ICC of .5, in whole points."""
    row = detectable_drops(n_scenarios=n, n_trials=k, rate=0.8, icc=0.5).iloc[0]
    assert round(100 * row["drop_uniform"]) == uniform
    assert round(100 * row["drop_few_break"]) == few_break
    assert row["note"] == ""


def test_more_trials_do_not_make_up_for_few_scenarios():
    """At 20 scenarios, ten trials in place of one take a few broken ones from 33 to 23 points."""
    frame = detectable_drops(n_scenarios=20, n_trials=[1, 10], rate=0.8, icc=0.5)
    assert (100 * frame["drop_few_break"]).round().tolist() == [33, 23]


def test_drops_solve_their_equations():
    """Each drop is the quantiles times the standard error that it has itself."""
    from scipy.stats import norm

    n, k, k_baseline, rate, icc = 40, 2, 6, 0.7, 0.3
    row = detectable_drops(
        n_scenarios=n, n_trials=k, n_trials_baseline=k_baseline, rate=rate, icc=icc, sides=2,
        power=0.9, confidence=0.99,
    ).iloc[0]  # fmt: skip
    z = norm.ppf(0.995) + norm.ppf(0.9)
    within = rate * (1 - rate) * (1 - icc)
    noise = within / k + within / k_baseline
    assert row["drop_uniform"] == pytest.approx(z * np.sqrt(noise / n))
    d = row["drop_few_break"]
    between = d * (rate - within) / rate - d**2
    assert d == pytest.approx(z * np.sqrt((between + noise) / n))


def test_a_run_gives_its_own_numbers():
    """Rate, variance and trials come from the run; the variance is that of flakiness."""
    trials = _trials(*[(3, 3)] * 12, *[(2, 3)] * 5, *[(0, 3)] * 3)
    row = detectable_drops(trials).iloc[0]
    within = flakiness(trials)["within_variance"].item()
    assert (row["n_scenarios"], row["n_trials"], row["n_trials_baseline"]) == (20, 3, 3)
    assert row["within_variance"] == pytest.approx(within)
    rate = (12 + 10 / 3) / 20
    planned = detectable_drops(
        n_scenarios=20, n_trials=3, rate=rate, icc=1 - within / (rate * (1 - rate))
    ).iloc[0]
    for column in ("rate", "drop_uniform", "drop_few_break"):
        assert row[column] == pytest.approx(planned[column])


def test_a_run_can_be_asked_about_other_sizes():
    """More trials in the new run leave the baseline as it is; more scenarios keep its numbers."""
    trials = _trials(*[(3, 3)] * 12, *[(2, 3)] * 8)
    frame = detectable_drops(trials, n_trials=[3, 30], n_scenarios=[20, 20])
    assert frame["n_trials_baseline"].tolist() == [3, 3]
    ratio = frame["drop_uniform"].iloc[1] / frame["drop_uniform"].iloc[0]
    assert ratio == pytest.approx(np.sqrt((1 / 30 + 1 / 3) / (2 / 3)))


def test_one_trial_assumes_a_correlation_and_says_so():
    """The variance of trials cannot be seen in one trial each: ICC .5, in the note."""
    row = detectable_drops(_trials(*[(1, 1)] * 40, *[(0, 1)] * 10)).iloc[0]
    assert row["within_variance"] == pytest.approx(0.8 * 0.2 * 0.5)
    assert round(100 * row["drop_few_break"]) == 19
    assert "one trial a scenario: assumes an intra-class correlation of 0.5" in row["note"]
    given_icc = detectable_drops(_trials(*[(1, 1)] * 40, *[(0, 1)] * 10), icc=0.5).iloc[0]
    assert "assumes" not in given_icc["note"]


def test_a_plan_without_correlation_assumes_one_and_says_so():
    """Assumed numbers are named, never silently filled in."""
    row = detectable_drops(n_scenarios=50, n_trials=1, rate=0.8).iloc[0]
    assert "assumes an intra-class correlation of 0.5" in row["note"]


def test_no_variance_seen_is_not_perfect_sight():
    """Where every scenario always passed, a drop still needs some scenarios to be seen."""
    perfect = detectable_drops(_trials(*[(3, 3)] * 20)).iloc[0]
    nearly = detectable_drops(_trials(*[(3, 3)] * 19, (2, 3))).iloc[0]
    assert perfect["within_variance"] == 0
    assert 0.05 < perfect["drop_uniform"] <= nearly["drop_uniform"] * 1.05
    assert perfect["drop_few_break"] > perfect["drop_uniform"]
    assert "no scenario both passed and failed" in perfect["note"]


def test_some_scenarios_without_repeats_are_counted():
    """The variance rests on the scenarios with two trials, and the note says on how many."""
    row = detectable_drops(_trials(*[(1, 2)] * 12, *[(1, 1)] * 6)).iloc[0]
    assert row["n_trials"] == pytest.approx(18 / (12 / 2 + 6))
    assert "variance of trials from 12 of 18 scenarios" in row["note"]


def test_groups_get_their_own_rows():
    """By tag, each group has its own sizes and drops, crossed with the plans."""
    trials = _trials(*[(2, 3)] * 20, *[(3, 3), (1, 3)] * 20)
    trials["tags"] = [("a",)] * 60 + [("b",)] * 120
    frame = detectable_drops(trials, by="tag", n_trials=[3, 6])
    assert frame["tag"].tolist() == ["a", "a", "b", "b"]
    assert frame["n_scenarios"].tolist() == [20, 20, 40, 40]
    assert frame["n_trials"].tolist() == [3, 6, 3, 6]
    alone = detectable_drops(trials.iloc[:60])
    assert frame["drop_few_break"].iloc[0] == pytest.approx(alone["drop_few_break"].item())


def test_scenarios_of_one_cluster_break_together():
    """Coarser clusters leave the uniform drop and widen that of a few broken ones."""
    trials = _trials(*[(2, 3), (3, 3)] * 20)
    clustered = trials.assign(cluster=trials["scenario"].str[1:].astype(int) // 4)
    alone, together = detectable_drops(trials).iloc[0], detectable_drops(clustered).iloc[0]
    assert together["drop_uniform"] == alone["drop_uniform"]
    assert together["drop_few_break"] > 1.5 * alone["drop_few_break"]
    assert "10 clusters of 40 scenarios" in together["note"]


@pytest.mark.parametrize(
    ("trials", "reason"),
    [
        pytest.param(_trials((0, 3), (0, 3)), "nothing passes", id="all-failed"),
        pytest.param(_trials(), "nothing was measured", id="no-trials"),
        pytest.param(
            _trials((1, 1), (1, 1)).assign(status="incomplete"), "nothing was measured",
            id="all-incomplete",
        ),
        pytest.param(_trials(*[(2, 3)] * 20, lane="contract"), "contract lane", id="contract"),
        pytest.param(_trials((1, 2)), "one scenario or cluster", id="one-scenario"),
        pytest.param(_trials((1, 4), (0, 4)), "not even all scenarios breaking", id="two"),
    ],
)  # fmt: skip
def test_what_cannot_be_resolved_is_nan_with_a_reason(trials, reason):
    """No drop is invented where none can be seen."""
    row = detectable_drops(trials).iloc[0]
    assert np.isnan([row["drop_uniform"], row["drop_few_break"]]).all()
    assert reason in row["note"]
    assert reason in resolution_text(row)


def test_needed_scenarios_reach_the_drop():
    """With as many scenarios as it asks for the drop is seen, with one less it is not."""
    needed = scenarios_needed([0.05, 0.1], rate=0.8, icc=0.5, n_trials=3)
    for pattern in ("uniform", "few_break"):
        for drop, n in zip(needed["drop"], needed[f"n_scenarios_{pattern}"], strict=True):
            drops = detectable_drops(n_scenarios=[n, n - 1], n_trials=3, rate=0.8, icc=0.5)
            found = drops[f"drop_{pattern}"]
            assert found.iloc[0] <= drop + 1e-12 < found.iloc[1]


@given(
    st.floats(0.01, 0.6), st.floats(0.3, 1.0), st.floats(0, 1), st.integers(1, 12),
    st.integers(2, 400),
)  # fmt: skip
@settings(deadline=None, max_examples=80)
def test_needs_and_drops_agree(drop, rate, icc, k, n):
    """What is needed for a drop is enough to see it, for scenarios and for trials."""
    scenarios = scenarios_needed(drop, rate=rate, icc=icc, n_trials=k).iloc[0]
    trials = trials_needed(drop, rate=rate, icc=icc, n_scenarios=n).iloc[0]
    for pattern in ("uniform", "few_break"):
        for n_scenarios, n_trials in (
            (scenarios[f"n_scenarios_{pattern}"], k),
            (n, trials[f"n_trials_{pattern}"]),
        ):
            if np.isfinite([n_scenarios, n_trials]).all():
                found = detectable_drops(
                    n_scenarios=n_scenarios, n_trials=n_trials, rate=rate, icc=icc
                )
                assert found[f"drop_{pattern}"].item() <= drop * (1 + 1e-6)
            else:
                assert (scenarios["note"] + trials["note"]) != ""


def test_no_number_of_trials_may_be_enough():
    """NaN, and how many scenarios it takes; with that many, some number is enough."""
    row = trials_needed(0.1, rate=0.8, icc=0.5, n_scenarios=20).iloc[0]
    assert np.isnan(row["n_trials_few_break"])
    assert "takes 56 scenarios or more" in row["note"]
    enough = trials_needed(0.1, rate=0.8, icc=0.5, n_scenarios=56).iloc[0]
    assert enough["n_trials_few_break"] >= 1


def test_a_drop_below_zero_cannot_happen():
    """A rate of .2 cannot drop by 30 points: NaN, with the reason."""
    row = scenarios_needed(0.3, rate=0.2, icc=0.5, n_trials=3).iloc[0]
    assert np.isnan([row["n_scenarios_uniform"], row["n_scenarios_few_break"]]).all()
    assert "the rate is only 0.2" in row["note"]


def test_needs_come_from_a_run_too():
    """A run's rate and variance, by group, crossed with the drops."""
    trials = _trials(*[(2, 3), (3, 3)] * 20)
    frame = scenarios_needed([0.05, 0.1], trials)
    assert frame["n_trials"].tolist() == [3, 3]
    assert frame["n_scenarios_few_break"].is_monotonic_decreasing
    assert trials_needed(0.1, trials)["n_scenarios"].item() == 40


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        pytest.param(
            {"n_scenarios": 20, "n_trials": 3},
            "these 20 scenarios x 3 trials detect a 13-point drop; a few broken scenarios: 26",
            id="small",
        ),
        pytest.param(
            {"n_scenarios": 50, "n_trials": 3},
            "these 50 scenarios x 3 trials detect an 8-point drop; a few broken scenarios: 14",
            id="an-eight",
        ),
        pytest.param(
            {"n_scenarios": 5000, "n_trials": 10},
            "these 5000 scenarios x 10 trials detect a 0.4-point drop; a few broken scenarios: 0.5",
            id="large",
        ),
        pytest.param(
            {"n_scenarios": 1, "n_trials": 1},
            "this 1 scenario x 1 trial cannot detect any drop: "
            "no drop that all scenarios share would be seen; "
            "one scenario or cluster: there are no few that could break",
            id="nothing",
        ),
        pytest.param(
            {"n_scenarios": 1, "n_trials": 30},
            "this 1 scenario x 30 trials detects an 18-point drop; "
            "a few broken scenarios: not detected",
            id="one-scenario",
        ),
        pytest.param(
            {"n_scenarios": 20, "n_trials": 2.4},
            "these 20 scenarios x 2.4 trials detect a 14-point drop; a few broken scenarios: 27",
            id="unequal",
        ),
    ],
)
def test_resolution_is_said_in_one_sentence(plan, text):
    """Points, in words that a report can print."""
    assert resolution_text(detectable_drops(rate=0.8, icc=0.5, **plan)) == text


def test_a_sentence_is_about_one_row():
    """Several groups need several sentences."""
    frame = detectable_drops(n_scenarios=[10, 20], n_trials=3, rate=0.8, icc=0.5)
    with pytest.raises(ValueError, match="got 2"):
        resolution_text(frame)
    assert "these 20" in resolution_text(frame.iloc[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"n_trials": None}, "give n_scenarios and n_trials", id="no-trials"),
        pytest.param({"rate": None}, "give a pass rate", id="no-rate"),
        pytest.param({"rate": 80}, "give a pass rate", id="percent"),
        pytest.param({"icc": 1.5}, "icc is 1.5", id="icc"),
        pytest.param({"n_scenarios": 0}, "n_scenarios is 0", id="no-scenarios"),
        pytest.param({"n_scenarios": 2.5}, "whole number", id="half-a-scenario"),
        pytest.param({"n_trials": float("nan")}, "n_trials is nan", id="nan"),
        pytest.param({"by": "tag"}, "by needs a run", id="by"),
        pytest.param({"power": 1.0}, "power is 1.0", id="power"),
        pytest.param({"run": _trials((1, 2))}, "one or the other", id="both"),
    ],
)
def test_impossible_plans_are_refused(arguments, message):
    """A number that makes no sense is an error that names it."""
    plan = {"n_scenarios": 20, "n_trials": 3, "rate": 0.8, "icc": 0.5} | arguments
    with pytest.raises(ValueError, match=message):
        detectable_drops(**plan)


@pytest.mark.parametrize("drop", [0, -0.1, 5, float("nan")])
def test_drops_are_fractions(drop):
    """Five in place of .05 is a likely slip."""
    with pytest.raises(ValueError, match=r"5 points are \.05"):
        scenarios_needed(drop, rate=0.8, icc=0.5, n_trials=3)


@pytest.mark.parametrize(("n", "k"), [(20, 3), (50, 1), (50, 10), (100, 3)])
def test_a_few_broken_scenarios_of_that_size_are_seen(n, k):
    """The paired interval excludes 0 in about 80 % of runs, and in far fewer at half the size."""
    rng, repeats = np.random.default_rng([n, k]), 600
    drop = detectable_drops(n_scenarios=n, n_trials=k, rate=0.8, icc=0.5, sides=2)[
        "drop_few_break"
    ].item()
    groups, seen = np.repeat(np.arange(repeats), n), []
    for size in (drop, drop / 2):
        truth = rng.beta(0.8, 0.2, (repeats, n))
        after = np.where(rng.random((repeats, n)) < size / 0.8, 0, truth)
        bounds = mover_difference(
            rng.binomial(k, after).ravel() / k,
            rng.binomial(k, truth).ravel() / k,
            n_trials=k,
            n_trials_baseline=k,
            groups=groups,
            n_groups=repeats,
        )
        seen.append((bounds.high < 0).mean())
    assert seen[0] >= 0.72
    assert seen[1] < 0.6
