"""A run against its baseline: what is paired, what is said, what is never invented."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.stats import (
    adjust_p_values,
    compare,
    compare_scenarios,
    mcnemar,
    mover_difference,
    newcombe_independent,
    newcombe_paired,
    sign_flip_test,
)

COLUMNS = [
    "rate", "rate_baseline", "difference", "difference_low", "difference_high", "interval",
    "p_value", "test", "p_holm", "p_bh", "n_scenarios", "n_added", "n_removed", "n_changed",
    "n_newly_failing", "n_newly_passing", "k_low", "k_high", "note",
]  # fmt: skip
WORDS = {"p": "passed", "f": "failed", "i": "incomplete"}
NUMBERS = ["difference", "difference_low", "difference_high", "p_value"]

plans = st.dictionaries(
    st.sampled_from("abcdefghijklmnop"),
    st.text("ppfi", min_size=1, max_size=5),
    max_size=12,
)


def _trials(plan, **columns):
    """Return a frame of trials: one letter of p, f, i a trial, keyed by scenario."""
    rows = [
        {"run_id": "r1", "scenario": name, "trial": trial, "status": WORDS[letter]}
        for name, letters in plan.items()
        for trial, letter in enumerate(letters)
    ]
    frame = pd.DataFrame(rows, columns=["run_id", "scenario", "trial", "status"])
    return frame.assign(**columns)


def _numbered(letters):
    """Return a plan with one scenario a word, named in order."""
    return {f"s{i:02d}": word for i, word in enumerate(letters)}


def _with_hashes(plan, changed=()):
    """Return trials whose content is known; that of ``changed`` has another hash."""
    trials = _trials(plan)
    content = [name + ("-new" if name in changed else "") for name in trials["scenario"]]
    return trials.assign(scenario_hash=content)


def _row(run, baseline, **options):
    return compare(run, baseline, **options).iloc[0]


def test_columns_are_as_documented():
    """The frame has the documented columns in this order."""
    assert list(compare(_trials({"a": "p"}), _trials({"a": "f"})).columns) == COLUMNS


def test_one_trial_each_gives_newcombe_and_mcnemar():
    """With k = 1 the row is Newcombe's paired interval and McNemar's mid-p."""
    run = _trials(_numbered("p" * 59 + "p" * 6 + "f" * 16 + "f" * 80))
    baseline = _trials(_numbered("p" * 59 + "f" * 6 + "p" * 16 + "f" * 80))
    row = _row(run, baseline)
    assert row["difference"] == pytest.approx(-0.0621, abs=5e-5)
    assert [row["difference_low"], row["difference_high"]] == pytest.approx(
        [-0.1186, -0.0046], abs=6e-5
    )
    assert row["p_value"] == pytest.approx(0.034690, abs=5e-7)
    assert (row["interval"], row["test"]) == ("Newcombe paired", "McNemar mid-p")
    assert (row["n_newly_passing"], row["n_newly_failing"], row["n_scenarios"]) == (6, 16, 161)
    assert (row["k_low"], row["k_high"]) == (1, 1)


def test_several_trials_give_mover_and_sign_flips():
    """With k > 1 the row is MOVER on the scenario rates and the sign-flip test."""
    run = _numbered(["ppf", "fff", "pff", "ppp", "pfp", "ffp"] * 3)
    baseline = _numbered(["ppp", "ppf", "ppp", "ppp", "fpp", "ffp"] * 3)
    row = _row(_trials(run), _trials(baseline), confidence=0.9)
    x, y = (np.array([w.count("p") / 3 for w in plan.values()]) for plan in (run, baseline))
    low, high = mover_difference(x, y, n_trials=3, n_trials_baseline=3, confidence=0.9)
    assert row["difference"] == pytest.approx(x.mean() - y.mean())
    assert [row["difference_low"], row["difference_high"]] == pytest.approx([low, high])
    assert row["p_value"] == sign_flip_test(x - y).p_value
    assert (row["interval"], row["test"]) == ("MOVER clustered Wilson-t", "sign-flip permutation")


def test_approval_ratings_have_the_published_difference():
    """Agresti's table of 1,600 pairs: difference -.04."""
    run = _numbered("p" * 794 + "f" * 150 + "p" * 86 + "f" * 570)
    baseline = _numbered("p" * 944 + "f" * 656)
    assert _row(_trials(run), _trials(baseline))["difference"] == pytest.approx(-0.04)


def test_scenarios_weigh_the_same_whatever_their_trials():
    """A scenario with ten trials counts no more than one with two."""
    run = _trials({"a": "p" * 10, "b": "ff", "c": "pp"})
    baseline = _trials({"a": "pp", "b": "p" * 10, "c": "pf"})
    row = _row(run, baseline)
    assert row["difference"] == pytest.approx((0 - 1 + 0.5) / 3)
    assert (row["k_low"], row["k_high"]) == (2, 10)


def test_trials_are_not_paired_with_each_other():
    """The order of the trials of a scenario says nothing."""
    baseline = _trials(_numbered(["pfp", "ppf", "fpp"] * 4))
    one, other = (_trials(_numbered([word] * 12)) for word in ("ppf", "fpp"))
    pd.testing.assert_frame_equal(compare(one, baseline), compare(other, baseline))


def test_content_decides_what_is_the_same():
    """A scenario with another content is named, counted and not compared."""
    run = _with_hashes({"a": "f", "b": "p", "c": "p", "e": "p"}, changed=["a"])
    baseline = _with_hashes({"a": "p", "b": "p", "c": "f", "d": "f"})
    row = _row(run, baseline)
    assert (row["n_scenarios"], row["rate"], row["rate_baseline"]) == (2, 1.0, 0.5)
    assert (row["n_added"], row["n_removed"], row["n_changed"]) == (1, 1, 1)
    for words in ("added (1): e", "removed (1): d", "changed, not compared (1): a"):
        assert words in row["note"]
    assert "aligned by id" not in row["note"]


@pytest.mark.parametrize("unknown", ["", None, "no column"])
@pytest.mark.parametrize("side", ["run", "baseline"])
def test_unknown_content_is_taken_on_trust_and_said(unknown, side):
    """Without a hash on a side scenarios are matched by id, and the note says so."""
    sides = {name: _with_hashes(_numbered("ppff")) for name in ("run", "baseline")}
    bare = sides[side].drop(columns="scenario_hash")
    sides[side] = bare if unknown == "no column" else bare.assign(scenario_hash=unknown)
    row = _row(sides["run"], sides["baseline"])
    assert row["n_scenarios"] == 4
    assert "content unknown: aligned by id" in row["note"]


def test_partly_unknown_content_is_counted():
    """The note says for how many scenarios the content is unknown."""
    run, baseline = (_with_hashes(_numbered("ppff")) for _ in range(2))
    run.loc[0, "scenario_hash"] = ""
    assert "content of 1 of 4 scenarios unknown: aligned by id" in _row(run, baseline)["note"]


def test_several_contents_on_one_side_agree_with_nothing():
    """Pooled runs of a scenario that changed in between cannot be compared."""
    run = pd.concat(
        [
            _with_hashes({"a": "p", "b": "p"}),
            _with_hashes({"a": "p", "b": "p"}, changed=["a"]).assign(run_id="r2"),
        ]
    )
    row = _row(run, run)
    assert (row["n_scenarios"], row["n_changed"]) == (1, 1)


def test_the_same_id_in_two_suites_is_two_scenarios():
    """Where a side holds several suites, suite and id tell scenarios apart."""
    run = pd.concat([_trials({"a": "p"}, suite="s1"), _trials({"a": "f"}, suite="s2", run_id="r2")])
    baseline = _trials({"a": "p"}, suite="s1")
    for row in (_row(run, baseline), _row(baseline, run)):
        assert (row["n_scenarios"], row["rate"], row["rate_baseline"]) == (1, 1.0, 1.0)
    frame = compare_scenarios(run, baseline)
    assert frame[["suite", "scenario", "change"]].to_numpy().tolist() == [
        ["s1", "a", "same"],
        ["s2", "a", "added"],
    ]


def test_two_suites_with_the_same_ids_are_said():
    """Runs of two suites are matched by id, and the note says that they differ."""
    row = _row(_trials(_numbered("ppff"), suite="one"), _trials(_numbered("ppff"), suite="two"))
    assert row["n_scenarios"] == 4
    assert "of different suites" in row["note"]


def test_incomplete_trials_are_in_no_rate():
    """Incomplete trials count for neither side, and are counted by side."""
    run = _trials({"a": "pii", "b": "ffi", "c": "iii", "d": "pp"})
    baseline = _trials({"a": "pf", "b": "pp", "c": "pp", "d": "ii"})
    row = _row(run, baseline)
    assert (row["n_scenarios"], row["rate"], row["rate_baseline"]) == (2, 0.5, 0.75)
    assert "without a rate on a side (2): c, d" in row["note"]
    assert "run: 6 of 11 trials incomplete" in row["note"]
    assert "baseline: 2 of 8 trials incomplete" in row["note"]


@pytest.mark.parametrize(
    ("run", "baseline"),
    [({}, {}), ({"a": "p"}, {}), ({"a": "p"}, {"b": "p"}), ({"a": "ii"}, {"a": "pp"})],
    ids=["zero trials", "no baseline", "no common scenario", "nothing measured"],
)
def test_nothing_in_common_is_nan_with_a_reason(run, baseline):
    """Without a common scenario every number is NaN and the note says why."""
    row = _row(_trials(run), _trials(baseline))
    assert row[[*NUMBERS, "rate", "rate_baseline", "p_holm", "p_bh"]].isna().all()
    assert (row["interval"], row["test"], row["n_scenarios"]) == ("none", "none", 0)
    assert "nothing to compare" in row["note"]


def test_one_scenario_is_compared_by_its_trials():
    """The interval of a single scenario covers its trials only, and there is no test."""
    row = _row(_trials({"a": "ppff"}), _trials({"a": "pppppf"}))
    low, high = newcombe_independent(2, 4, n_passed_baseline=5, n_baseline=6)
    assert [row["difference_low"], row["difference_high"]] == pytest.approx([low, high])
    assert np.isnan(row["p_value"])
    assert (row["interval"], row["test"]) == ("Newcombe over trials", "none")
    assert "one scenario" in row["note"]


@pytest.mark.parametrize("word", ["p", "f", "ppp", "fff"])
def test_no_change_at_all_is_not_certainty(word):
    """All pass both, or all fail both: an interval with width, p of 1 and why."""
    both = _trials(_numbered([word] * 12))
    row = _row(both, both)
    assert row["difference"] == 0
    assert row["difference_low"] < -0.1
    assert row["difference_high"] > 0.1
    assert row["p_value"] == 1
    assert "no scenario differs: p is 1 by definition" in row["note"]


def test_few_scenarios_are_said_to_be_few():
    """Below ten scenarios, and below six that differ, the note warns."""
    row = _row(_trials(_numbered(["ff"] * 4 + ["pp"] * 4)), _trials(_numbered(["pp"] * 8)))
    assert "8 scenarios: too few scenarios to generalise" in row["note"]
    assert "4 scenario(s) or cluster(s) differ: p cannot fall below 0.125" in row["note"]
    assert row["p_value"] == 0.125


def test_contract_trials_have_flags_and_no_statistics():
    """Copies of one script: no interval, no p-value, but what broke is named."""
    run = _trials(_numbered(["ppp"] * 10 + ["fff", "ppp"]), lane="contract")
    baseline = _trials(_numbered(["ppp"] * 11 + ["fff"]), lane="contract")
    row = _row(run, baseline)
    assert row[["difference_low", "difference_high", "p_value", "p_holm"]].isna().all()
    assert (row["interval"], row["test"]) == ("none", "none")
    assert (row["n_newly_failing"], row["n_newly_passing"]) == (1, 1)
    assert "contract lane: trials are copies of one script" in row["note"]
    assert "newly failing (1): s10; newly passing (1): s11" in row["note"]
    assert "only describe" not in row["note"]


def test_contract_against_live_teaches_nothing():
    """A scripted side beside a live one gets no interval either."""
    run, baseline = _trials(_numbered(["pp"] * 12)), _trials(_numbered(["pf"] * 12))
    row = _row(run.assign(lane="contract"), baseline.assign(lane="live"))
    assert np.isnan(row["difference_low"])
    assert "contract lane on one side only" in row["note"]


def test_flags_describe_below_five_trials():
    """Newly failing scenarios are named as description below five trials a side."""
    few, many = (_row(_trials(_numbered(["f" * k] + ["p" * k] * 11)),
                      _trials(_numbered(["p" * k] * 12))) for k in (4, 5))  # fmt: skip
    assert few["n_newly_failing"] == many["n_newly_failing"] == 1
    assert "below 5 trials a side" in few["note"]
    assert "below 5 trials a side" not in many["note"]


def test_declared_clusters_are_used_on_both_tests():
    """Scenarios of one document widen the interval and flip together."""
    words, before = ["f"] * 6 + ["p"] * 18, ["p"] * 24
    cluster = [f"d{i // 3}" for i in range(24)]
    run, baseline = (_trials(_numbered(w)).assign(document=cluster) for w in (words, before))
    alone, together = _row(run, baseline), _row(run, baseline, cluster="document")
    assert alone["interval"] == "Newcombe paired"
    assert together["interval"] == "MOVER clustered Wilson-t"
    assert together["difference_low"] < alone["difference_low"]
    assert together["p_value"] == 0.5
    assert "interval over 8 clusters of 24 scenarios" in together["note"]


def test_clusters_that_only_one_side_declares_count():
    """What either side holds together is held together, whichever side is which."""
    run, baseline = _trials(_numbered(["f"] * 6 + ["p"] * 18)), _trials(_numbered(["p"] * 24))
    declared = baseline.assign(cluster=[f"d{i // 3}" for i in range(24)])
    row, mirrored = _row(run, declared), _row(declared, run)
    assert "clusters of the two sides differ" in row["note"]
    assert row["interval"] == "MOVER clustered Wilson-t"
    assert row["p_value"] == mirrored["p_value"] == 0.5


def test_one_cluster_has_no_interval():
    """Scenarios of one cluster show no spread."""
    run, baseline = (_trials(_numbered(w), cluster="one") for w in (["pf"] * 4, ["pp"] * 4))
    row = _row(run, baseline)
    assert np.isnan([row["difference_low"], row["p_value"]]).all()
    assert "one cluster shows no spread" in row["note"]


def _tagged(plan):
    """Return trials with two tags on some scenarios and none on others."""
    trials = _trials(plan)
    tags = {"s0": ("x", "y"), "s1": ("x",), "s2": ("y",)}
    return trials.assign(tags=[tags.get(name[:2], ()) for name in trials["scenario"]])


def test_tags_are_compared_each_and_adjusted_together():
    """Each tag is a row; Holm and Benjamini-Hochberg count the rows with a test."""
    words = ["fff"] * 9 + ["ppp"] * 3 + ["pfp"] * 10 + ["ppp"] * 3
    run, baseline = _tagged(_numbered(words)), _tagged(_numbered(["ppp"] * 25))
    frame = compare(run, baseline, by="tag")
    assert frame["tag"].tolist() == ["x", "y"]
    for tag, group in (("x", ["s0", "s1"]), ("y", ["s0", "s2"])):
        own = [side[side["scenario"].str[:2].isin(group)] for side in (run, baseline)]
        alone = _row(*own)
        assert frame.set_index("tag").loc[tag, NUMBERS].tolist() == pytest.approx(
            alone[NUMBERS].tolist()
        )
    assert frame["p_holm"].tolist() == adjust_p_values(frame["p_value"]).tolist()
    assert frame["p_bh"].tolist() == adjust_p_values(frame["p_value"], method="bh").tolist()


def test_groups_without_a_test_do_not_count_in_the_adjustment():
    """A tag that only one side has is a row with NaN, and no comparison."""
    run = _trials(_numbered("fffffff" + "ppppp")).assign(tags=[["x"]] * 12)
    baseline = _trials(_numbered("p" * 13)).assign(tags=[["x"]] * 12 + [["gone"]])
    frame = compare(run, baseline, by="tag").set_index("tag")
    assert np.isnan(frame.loc["gone", "p_holm"])
    assert frame.loc["gone", "n_removed"] == 1
    assert frame.loc["x", "p_holm"] == frame.loc["x", "p_value"]


def _graded(plan, **graders):
    """Return a run whose graders gave one letter a trial."""
    trials = _trials(plan)
    values = {"p": True, "f": False, "?": None}
    grades = [
        trials[["run_id", "scenario", "trial"]].assign(
            grader=name,
            rubric="tone",
            passed=pd.Series([values[letter] for letter in letters], dtype="boolean"),
        )
        for name, letters in graders.items()
    ]
    return SimpleNamespace(trials=trials, grades=pd.concat(grades, ignore_index=True))


@pytest.mark.parametrize("by", ["grader", ["grader", "rubric"]])
def test_graders_are_compared_each(by):
    """Each grader's own verdicts are compared, and a missing verdict is incomplete."""
    plan = _numbered("p" * 12)
    run = _graded(plan, truth="f" * 7 + "p" * 4 + "?", path="p" * 12)
    baseline = _graded(plan, truth="p" * 12, path="p" * 12)
    frame = compare(run, baseline, by=by).set_index("grader")
    assert frame.loc["truth", "n_scenarios"] == 11
    assert frame.loc["truth", "p_value"] == mcnemar(0, 7)
    assert "without a rate on a side (1): s11" in frame.loc["truth", "note"]
    assert frame.loc["path", "p_value"] == 1


def test_any_column_of_the_trials_can_group():
    """A column such as the lane splits the comparison."""
    run, baseline = (
        pd.concat(
            [_trials(_numbered(a), lane="live"), _trials(_numbered(b), lane="quality")]
        ).assign(run_id=lambda frame: frame["lane"])
        for a, b in (("ppff", "ffff"), ("pppp", "ffff"))
    )
    frame = compare(run, baseline, by="lane").set_index("lane")
    assert frame["difference"].to_dict() == {"live": -0.5, "quality": 0.0}


def test_by_scenario_gives_a_row_each():
    """Grouped by scenario, each row is that scenario's trials."""
    run, baseline = _trials({"a": "ppppf", "b": "fffff"}), _trials({"a": "ppppp", "b": "ppppp"})
    frame = compare(run, baseline, by="scenario").set_index("scenario")
    assert frame["difference"].to_dict() == pytest.approx({"a": -0.2, "b": -1.0})
    assert (frame["interval"] == "Newcombe over trials").all()
    assert frame.loc["b", "difference_high"] < 0
    assert frame["note"].str.contains("there is no test").all()


@pytest.mark.parametrize(
    ("run", "baseline", "options", "message"),
    [
        (_trials({"a": "p"}), 3, {}, "baseline: expected a run"),
        (None, _trials({"a": "p"}), {}, "run: expected a run"),
        (_trials({"a": "p"}), _trials({"a": "p"}), {"by": "scenaro"}, "run: by: there is no"),
        (_trials({"a": "p"}, x=1), _trials({"a": "p"}), {"by": "x"}, "baseline: by: there is no"),
        (_trials({"a": "p"}), _trials({"a": "p"}), {"by": "grader"}, "run: .*need the grades"),
        (_trials({"a": "p"}), _trials({"a": "p"}), {"confidence": 95}, "between 0 and 1"),
        (_trials({"a": "p"}), _trials({"a": "p"}), {"cluster": "doc"}, "run: cluster: there is no"),
        (_trials({"a": "p"}, status="skipped"), _trials({"a": "p"}), {}, "'skipped' is not one"),
    ],
    ids=["baseline", "run", "by", "by one side", "grades", "confidence", "cluster", "status"],
)
def test_misuse_names_the_side(run, baseline, options, message):
    """What makes no sense is refused, with the side that it is on."""
    with pytest.raises(ValueError, match=message):
        compare(run, baseline, **options)


def test_compare_scenarios_shows_both_sides():
    """One row a scenario of either side: change, rates, trials, and what is new."""
    run = _with_hashes({"a": "ff", "b": "pi", "c": "pp", "d": "ii", "f": "pp"}, changed=["c"])
    baseline = _with_hashes({"a": "pp", "b": "ff", "c": "ff", "d": "pp", "e": "pp"})
    frame = compare_scenarios(run, baseline).set_index("scenario")
    assert frame["change"].to_dict() == {
        "a": "same", "b": "same", "c": "changed", "d": "same", "e": "removed", "f": "added",
    }  # fmt: skip
    assert frame["newly"].to_dict() == {
        "a": "failing", "b": "passing", "c": "", "d": "", "e": "", "f": "",
    }  # fmt: skip
    assert frame.loc["a", "difference"] == -1
    assert frame.loc[["c", "d", "e", "f"], "difference"].isna().all()
    assert frame.loc["c", ["rate", "rate_baseline"]].tolist() == [1.0, 0.0]
    assert np.isnan(frame.loc["e", "rate"])
    assert frame["n_measured"].tolist() == [2, 1, 2, 0, 0, 2]
    assert frame["n_measured_baseline"].tolist() == [2, 2, 2, 2, 2, 0]
    assert frame["n_incomplete"].tolist() == [0, 1, 0, 2, 0, 0]
    assert frame["n_incomplete_baseline"].sum() == 0


@pytest.mark.parametrize(
    ("run", "baseline", "newly"),
    [
        ("f", "p", "failing"),
        ("p", "f", "passing"),
        ("pf", "pp", "failing"),
        ("ppf", "ppp", ""),
        ("pff", "ppf", "failing"),
        ("pf", "ff", ""),
        ("ppf", "fpf", "passing"),
    ],
)
def test_newly_means_that_most_trials_turned(run, baseline, newly):
    """A scenario is passing where more than half of its measured trials passed."""
    frame = compare_scenarios(_trials({"a": run}), _trials({"a": baseline}))
    assert frame["newly"].item() == newly


def test_runs_are_left_alone():
    """The frames of both sides are read, never written."""
    run, baseline = _tagged(_numbered("ppff")), _tagged(_numbered("pfpf"))
    before = run.copy(), baseline.copy()
    compare(run, baseline, by="tag")
    compare_scenarios(run, baseline)
    pd.testing.assert_frame_equal(run, before[0])
    pd.testing.assert_frame_equal(baseline, before[1])


@given(plans, plans, st.sampled_from([None, "scenario"]))
@settings(deadline=None, max_examples=40)
def test_swapping_the_sides_mirrors_everything(run, baseline, by):
    """compare(a, b) is -compare(b, a): bounds swap, p-values stay, added is removed."""
    one = compare(_trials(run), _trials(baseline), by=by, n_resamples=500)
    other = compare(_trials(baseline), _trials(run), by=by, n_resamples=500)
    for name, mirror, sign in (
        ("difference", "difference", -1),
        ("difference_low", "difference_high", -1),
        ("difference_high", "difference_low", -1),
        ("rate", "rate_baseline", 1),
        ("p_value", "p_value", 1),
        ("n_added", "n_removed", 1),
        ("n_newly_failing", "n_newly_passing", 1),
        ("n_scenarios", "n_scenarios", 1),
        ("k_high", "k_high", 1),
    ):
        expected = sign * other[mirror].to_numpy(dtype=float)
        np.testing.assert_allclose(one[name].to_numpy(dtype=float), expected, atol=1e-12)
    assert one[["interval", "test"]].equals(other[["interval", "test"]])


@given(plans, plans, st.integers(0, 1000))
@settings(deadline=None, max_examples=40)
def test_the_order_of_rows_does_not_matter(run, baseline, seed):
    """Shuffled rows of either side give the same frames."""
    a, b = _trials(run), _trials(baseline)
    shuffled = a.sample(frac=1, random_state=seed), b.sample(frac=1, random_state=seed + 1)
    pd.testing.assert_frame_equal(compare(a, b), compare(*shuffled))
    pd.testing.assert_frame_equal(compare_scenarios(a, b), compare_scenarios(*shuffled))


@given(plans, plans)
@settings(deadline=None, max_examples=40)
def test_numbers_are_bounded_or_explained(run, baseline):
    """The difference lies in its interval in [-1, 1]; a NaN never comes without a note."""
    for by in (None, "scenario"):
        frame = compare(_trials(run), _trials(baseline), by=by)
        known = frame.dropna(subset=["difference_low"])
        assert (known["difference_low"] >= -1).all()
        assert (known["difference_low"] <= known["difference"] + 1e-12).all()
        assert (known["difference"] <= known["difference_high"] + 1e-12).all()
        assert (known["difference_high"] <= 1).all()
        assert (frame["p_value"].dropna() > 0).all()
        assert (frame.loc[frame["difference"].isna(), "note"] != "").all()
        pairs = compare_scenarios(_trials(run), _trials(baseline))
        assert frame["n_added"].sum() == (pairs["change"] == "added").sum()
        assert frame["n_newly_failing"].sum() == (pairs["newly"] == "failing").sum()
        assert frame["n_scenarios"].sum() == pairs["difference"].notna().sum()


@given(st.tuples(*[st.integers(0, 9)] * 4).filter(lambda table: sum(table) > 1))
@settings(deadline=None, max_examples=40)
def test_frames_agree_with_counts(table):
    """Through frames or through counts, one trial a side is the same comparison."""
    both, gained, lost, neither = table
    letters = np.repeat(["pp", "pf", "fp", "ff"], table)
    run, baseline = (_trials(_numbered([w[i] for w in letters])) for i in (0, 1))
    row = _row(run, baseline)
    low, high = newcombe_paired(gained, lost, both_passed=both, both_failed=neither)
    assert [row["difference_low"], row["difference_high"]] == pytest.approx([low, high])
    assert row["p_value"] == mcnemar(gained, lost)
