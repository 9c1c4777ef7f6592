"""Pass rates: what is averaged, what stands beside it, and what is never said."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.stats import (
    clustered_wilson,
    pass_rates,
    standard_errors,
    unrated_scenarios,
    wilson,
)

COLUMNS = [
    "estimand", "interval", "rate", "rate_low", "rate_high", "rate_if_failed", "rate_if_passed",
    "n_scenarios", "n_scenarios_without_rate", "n_passed", "n_failed", "n_incomplete",
    "n_planned", "note",
]  # fmt: skip
WORDS = {"p": "passed", "f": "failed", "i": "incomplete"}


def _trials(scenarios):
    """Return a frame of trials: one letter of p, f, i a trial, keyed by scenario."""
    rows = [
        {"run_id": "r1", "scenario": name, "trial": trial, "status": WORDS[letter]}
        for name, letters in scenarios.items()
        for trial, letter in enumerate(letters)
    ]
    return pd.DataFrame(rows, columns=["run_id", "scenario", "trial", "status"])


def _histogram(passes, n_trials):
    """Return trials of as many scenarios as the histogram of their passes says."""
    letters = ["p" * c + "f" * (n_trials - c) for c, count in passes.items() for _ in range(count)]
    return _trials({f"s{i:03d}": text for i, text in enumerate(letters)})


plans = st.dictionaries(
    st.sampled_from("abcdefgh"), st.text("pfi", min_size=1, max_size=5), min_size=1
)


def test_columns_are_stable():
    """The frame has the documented columns in the documented order."""
    trials = _trials({"a": "pf", "b": "ii"})
    assert list(pass_rates(trials).columns) == COLUMNS
    assert list(pass_rates(trials, by="scenario").columns) == ["scenario", *COLUMNS]
    kinds = pass_rates(trials).dtypes
    assert all(kinds[name] == "int64" for name in COLUMNS if name.startswith("n_"))
    assert all(kinds[name] == "float64" for name in COLUMNS if name.startswith("rate"))


def test_a_rate_is_the_mean_of_scenario_rates():
    """Unequal numbers of trials do not weigh: 1.0 and 0.0 are 0.5, not 9 of 10."""
    row = pass_rates(_trials({"a": "ppppppppp", "b": "f"})).iloc[0]
    assert (row["rate"], row["n_passed"], row["n_failed"]) == (0.5, 9, 1)


def test_incomplete_trials_are_in_no_rate_and_in_both_bounds():
    """A scenario's rate is passed / (passed + failed); the bounds count the rest both ways."""
    row = pass_rates(_trials({"a": "pfii", "b": "pp"})).iloc[0]
    assert row["rate"] == 0.75
    assert (row["rate_if_failed"], row["rate_if_passed"]) == (0.625, 0.875)
    assert (row["n_incomplete"], row["n_planned"]) == (2, 6)
    assert "2 of 6 trials incomplete" in row["note"]


def test_scenarios_without_a_rate_are_counted_and_named():
    """A scenario that was never measured is not a zero: it is counted, named and in the bounds."""
    trials = _trials({"a": "pp", "b": "ii", "c": "i", "d": "i", "e": "i"})
    row = pass_rates(trials).iloc[0]
    assert (row["rate"], row["n_scenarios"], row["n_scenarios_without_rate"]) == (1.0, 1, 4)
    assert (row["rate_if_failed"], row["rate_if_passed"]) == (0.2, 1.0)
    assert "without a rate: b, c, d and 1 more" in row["note"]
    missing = unrated_scenarios(trials)
    assert missing.to_numpy().tolist() == [["b", 2], ["c", 1], ["d", 1], ["e", 1]]


def test_by_scenario_uses_wilson_over_its_trials():
    """One scenario's interval is Wilson over its own trials, and says so."""
    row = pass_rates(_trials({"a": "pppf"}), by="scenario").iloc[0]
    assert (row["rate_low"], row["rate_high"]) == pytest.approx(wilson(3, 4))
    assert (row["estimand"], row["interval"]) == ("this_scenario", "Wilson over trials")
    unmeasured = pass_rates(_trials({"a": "i", "b": "p"}), by="scenario").iloc[0]
    assert (unmeasured["estimand"], unmeasured["interval"]) == ("this_scenario", "none")


def test_over_scenarios_the_interval_is_clustered():
    """The interval of a rate over scenarios is clustered Wilson-t, and says so."""
    trials = _histogram({0: 3, 2: 4, 4: 6}, 4)
    row = pass_rates(trials, confidence=0.9).iloc[0]
    rates = pass_rates(trials, by="scenario")["rate"]
    expected = clustered_wilson(rates, n_trials=4, confidence=0.9)
    assert (row["rate_low"], row["rate_high"]) == pytest.approx(expected)
    assert (row["interval"], row["note"]) == ("clustered Wilson-t", "")


def test_one_trial_each_is_plain_wilson():
    """With one trial a scenario the interval is Wilson's, and says so."""
    row = pass_rates(_histogram({0: 3, 1: 17}, 1)).iloc[0]
    assert (row["rate_low"], row["rate_high"]) == pytest.approx(wilson(17, 20))
    assert row["interval"] == "Wilson"


TAU_BENCH = {0: 14, 1: 12, 2: 10, 3: 4, 4: 10}  # gpt-4o, airline: passes of 50 tasks in 4 trials


def test_tau_bench_errors_flat_and_clustered():
    """Published trajectories: rate .42, flat error .0349, clustered error .0522."""
    row = standard_errors(_histogram(TAU_BENCH, 4)).iloc[0]
    assert row["rate"] == pytest.approx(0.42)
    assert row["se_flat"] == pytest.approx(0.0349, abs=5e-5)
    assert row["se_clustered"] == pytest.approx(0.0522, abs=5e-5)
    assert (row["n_scenarios"], row["n_trials"]) == (50, 200)


@pytest.mark.public
def test_tau_bench_trajectories_give_the_published_rate(public_data):
    """The published file itself, read as plain rewards, gives the same figures."""
    path = public_data / "tau_bench_airline_gpt4o" / "gpt-4o-airline.json"
    records = json.loads(path.read_text())
    trials = pd.DataFrame(
        {
            "run_id": "tau",
            "scenario": [str(record["task_id"]) for record in records],
            "trial": [record["trial"] for record in records],
            "status": ["passed" if record["reward"] == 1 else "failed" for record in records],
        }
    )
    row = pass_rates(trials).merge(standard_errors(trials)).iloc[0]
    assert (row["n_scenarios"], row["n_planned"]) == (50, 200)
    assert [row["rate"], row["se_flat"], row["se_clustered"]] == pytest.approx(
        [0.42, 0.0349, 0.0522], abs=5e-5
    )


def test_fixed_suite_counts_only_the_noise_of_trials():
    """Scenarios that differ but repeat themselves give a narrow interval for this suite."""
    trials = _histogram({0: 20, 10: 20}, 10)
    everyone = pass_rates(trials).iloc[0]
    suite = pass_rates(trials, estimand="fixed_suite").iloc[0]
    assert suite["rate"] == everyone["rate"] == 0.5
    assert (
        suite["rate_high"] - suite["rate_low"] < (everyone["rate_high"] - everyone["rate_low"]) / 2
    )
    assert suite[["estimand", "interval"]].tolist() == ["fixed_suite", "fixed-suite Wilson-t"]
    assert suite["note"] == ""


def test_fixed_suite_needs_repeats():
    """A scenario with one measured trial shows no noise: no interval, with the reason."""
    row = pass_rates(_trials({"a": "pf", "b": "pi"}), estimand="fixed_suite").iloc[0]
    assert np.isnan([row["rate_low"], row["rate_high"]]).all()
    assert "fixed_suite needs two measured trials" in row["note"]


def test_contract_trials_have_no_interval():
    """Copies of a scripted trial are no sample."""
    trials = _histogram({2: 12}, 2).assign(lane="contract")
    row = pass_rates(trials).iloc[0]
    assert row["rate"] == 1.0
    assert np.isnan(row["rate_low"])
    assert "contract lane" in row["note"]
    assert (pass_rates(trials, by="scenario")["interval"] == "none").all()


@pytest.mark.parametrize(
    ("scenarios", "rate", "note"),
    [
        ({}, None, "no rate: nothing was measured"),
        ({"a": "iii"}, None, "no rate: nothing was measured; 3 of 3 trials incomplete"),
        ({"a": "p"}, 1.0, "one scenario: the interval covers it only; one trial"),
        ({"a": "f"}, 0.0, "one scenario: the interval covers it only; one trial"),
        ({"a": "ppp", "b": "ppp"}, 1.0, "2 scenarios: too few scenarios to generalise"),
        ({"a": "ff", "b": "f"}, 0.0, "2 scenarios: too few scenarios to generalise"),
    ],
)
def test_degenerate_data_is_named(scenarios, rate, note):
    """No data is NaN with a reason; little data has an interval that never shrinks to a point."""
    row = pass_rates(_trials(scenarios)).iloc[0]
    if rate is None:
        assert np.isnan(row[["rate", "rate_low", "rate_high"]].astype(float)).all()
    else:
        assert row["rate"] == rate
        assert row["rate_high"] - row["rate_low"] > 0.3
    assert row["note"].startswith(note)


def test_an_empty_frame_has_no_groups():
    """Grouping nothing gives no rows but all columns."""
    frame = pass_rates(_trials({}), by="scenario")
    assert list(frame.columns) == ["scenario", *COLUMNS]
    assert frame.empty


@pytest.mark.parametrize(("n", "few"), [(9, True), (10, False)])
def test_few_scenarios_are_named(n, few):
    """Below ten scenarios the row says that there are too few to generalise."""
    trials = _trials({f"s{i}": "pf" for i in range(n)})
    assert ("too few scenarios to generalise" in pass_rates(trials)["note"].item()) is few


@given(plans, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_the_order_of_rows_changes_nothing(plan, random):
    """Shuffled rows give the identical frame."""
    trials = _trials(plan)
    order = list(range(len(trials)))
    random.shuffle(order)
    for by in (None, "scenario"):
        shuffled = pass_rates(trials.iloc[order], by=by)
        pd.testing.assert_frame_equal(shuffled, pass_rates(trials, by=by), check_exact=True)


@given(plans, st.sampled_from("abcdefghz"))
@settings(deadline=None, max_examples=60)
def test_an_incomplete_trial_never_helps(plan, scenario):
    """One more incomplete trial never raises the worst case, nor lowers the best."""
    more = plan | {scenario: plan.get(scenario, "") + "i"}
    before, after = (pass_rates(_trials(p)).iloc[0] for p in (plan, more))
    assert after["rate_if_failed"] <= before["rate_if_failed"] + 1e-12
    assert after["rate_if_passed"] >= before["rate_if_passed"] - 1e-12
    assert np.isclose(after["rate"], before["rate"], equal_nan=True)


@given(plans, st.sampled_from(["all_users", "fixed_suite"]))
@settings(deadline=None, max_examples=100)
def test_bounds_hold_the_rate_and_counts_add_up(plan, estimand):
    """Every bound lies in [0, 1] on its side of the rate, and no trial is lost."""
    for by in (None, "scenario"):
        frame = pass_rates(_trials(plan), by=by, estimand=estimand)
        rated = frame.dropna(subset=["rate_low"])
        for low, high in (("rate_low", "rate_high"), ("rate_if_failed", "rate_if_passed")):
            assert (rated[low] >= 0).all()
            assert (rated[high] <= 1).all()
            assert (rated[low] <= rated["rate"] + 1e-12).all()
            assert (rated["rate"] <= rated[high] + 1e-12).all()
        unrated = frame[frame["rate_low"].isna()]
        assert (unrated["note"] != "").all()
        parts = frame[["n_passed", "n_failed", "n_incomplete"]].to_numpy().sum()
        assert parts == frame["n_planned"].sum() == sum(map(len, plan.values()))


@given(plans)
@settings(deadline=None, max_examples=60)
def test_rates_agree_with_a_plain_count(plan):
    """The vectorised table equals counting letters by hand."""
    frame = pass_rates(_trials(plan), by="scenario").set_index("scenario")
    for name, letters in plan.items():
        measured = letters.count("p") + letters.count("f")
        expected = letters.count("p") / measured if measured else np.nan
        assert np.isclose(frame.loc[name, "rate"], expected, equal_nan=True)
    rates = frame["rate"].dropna()
    expected = rates.mean() if len(rates) else np.nan
    assert np.isclose(pass_rates(_trials(plan))["rate"].item(), expected, equal_nan=True)
