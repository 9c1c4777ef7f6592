"""Which rows belong together, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from evalkit.stats import pass_rates
from evalkit.stats.cells import collect_cells


def _trials(**scenarios):
    """Return a frame of trials: one letter of p, f, i a trial, keyed by scenario."""
    words = {"p": "passed", "f": "failed", "i": "incomplete"}
    rows = [
        {"run_id": "r1", "scenario": name, "trial": trial, "status": words[letter]}
        for name, letters in scenarios.items()
        for trial, letter in enumerate(letters)
    ]
    return pd.DataFrame(rows)


def test_cells_count_each_status():
    """Passed, failed and incomplete trials are counted apart, by scenario."""
    cells = collect_cells(_trials(b="ppf", a="pii"))
    assert cells.scenario.tolist() == ["a", "b"]
    assert cells.n_passed.tolist() == [1, 2]
    assert cells.n_failed.tolist() == [0, 1]
    assert cells.n_incomplete.tolist() == [2, 0]
    assert cells.n_planned.tolist() == [3, 3]


def test_a_run_and_its_trials_are_the_same():
    """An object with a frame named trials can stand for the frame."""
    trials = _trials(a="pf", b="pp")
    pd.testing.assert_frame_equal(pass_rates(trials), pass_rates(SimpleNamespace(trials=trials)))


def test_runs_are_pooled_as_trials():
    """The same scenario in two runs is one scenario with the trials of both."""
    both = pd.concat([_trials(a="pp", b="f"), _trials(a="ff", b="f").assign(run_id="r2")])
    cells = collect_cells(both)
    assert cells.n_planned.tolist() == [4, 2]
    assert pass_rates(both, by="run_id")["rate"].tolist() == [0.5, 0.0]


def test_the_same_id_in_two_suites_is_two_scenarios():
    """A scenario is a suite and an id where there are several suites."""
    both = pd.concat(
        [_trials(a="pp").assign(suite="s1"), _trials(a="ff").assign(suite="s2", run_id="r2")]
    )
    by_scenario = pass_rates(both, by="scenario")
    assert by_scenario[["suite", "scenario", "rate"]].to_numpy().tolist() == [
        ["s1", "a", 1.0],
        ["s2", "a", 0.0],
    ]
    assert pass_rates(both)["n_scenarios"].item() == 2


@pytest.mark.parametrize("container", [tuple, list, set, np.array])
def test_a_scenario_counts_in_each_of_its_tags(container):
    """Tags may be any sequence; each tag of a trial is counted once."""
    trials = _trials(a="pp", b="ff")
    trials["tags"] = [container(["x", "y"])] * 2 + [container(["x"])] * 2
    rates = pass_rates(trials, by="tag").set_index("tag")["rate"]
    assert rates.to_dict() == {"x": 0.5, "y": 1.0}


@pytest.mark.parametrize("nothing", [(), [], None, float("nan"), ""])
def test_trials_without_tags_stay_in_the_table(nothing):
    """Scenarios without tags have a row of their own, because nothing leaves silently."""
    trials = _trials(a="pp", b="ff")
    trials["tags"] = [("x",), ("x",), nothing, nothing]
    assert pass_rates(trials, by="tag")["tag"].tolist() == ["(no tag)", "x"]


def test_a_tag_named_twice_counts_once():
    """A repeated tag does not repeat the trial."""
    trials = _trials(a="pf").assign(tags=[["x", "x"]] * 2)
    assert pass_rates(trials, by="tag")["n_planned"].item() == 2


def _graded(trials, **graders):
    """Return a run whose graders gave the listed verdicts, in the order of the trials."""
    keys = trials[["run_id", "scenario", "trial"]]
    grades = [
        keys.assign(grader=name, passed=pd.Series(passed, dtype=object, index=keys.index))
        for name, passed in graders.items()
    ]
    return SimpleNamespace(trials=trials, grades=pd.concat(grades, ignore_index=True))


def test_grades_are_counted_by_grader():
    """Each grader has its own rate, whatever the status of the trial."""
    run = _graded(_trials(a="ff", b="ff"), truth=[True, True, False, True], path=[False] * 4)
    rates = pass_rates(run, by="grader").set_index("grader")["rate"]
    assert rates.to_dict() == {"truth": 0.75, "path": 0.0}


@pytest.mark.parametrize("unknown", [None, pd.NA, float("nan")])
def test_a_grade_without_verdict_is_incomplete(unknown):
    """A grade whose passed is missing is in no rate, and is counted."""
    run = _graded(_trials(a="pp", b="pp"), truth=[True, unknown, False, True])
    row = pass_rates(run, by="grader").iloc[0]
    assert (row["rate"], row["n_incomplete"], row["n_planned"]) == (0.75, 1, 4)


def test_a_trial_without_grade_is_incomplete_for_the_grader():
    """What was not graded is incomplete, not a missing row; so is a scenario without any grade."""
    run = _graded(_trials(a="pp", b="i"), truth=[True, True, True])
    run.grades = run.grades.iloc[:1]
    row = pass_rates(run, by="grader").iloc[0]
    assert (row["n_passed"], row["n_incomplete"], row["n_planned"]) == (1, 2, 3)
    assert "without a rate: b" in row["note"]


def test_several_grades_of_a_trial_are_one_verdict():
    """Failed beats incomplete beats passed when a grader graded turns apart."""
    run = _graded(_trials(a="p", b="p", c="p"), truth=[True, True, True])
    second = run.grades.assign(passed=pd.Series([False, None, True], dtype=object))
    third = run.grades.assign(passed=pd.Series([None, True, True], dtype=object))
    run.grades = pd.concat([run.grades, second, third])
    row = pass_rates(run, by="grader").iloc[0]
    assert (row["n_failed"], row["n_incomplete"], row["n_passed"]) == (1, 1, 1)


def test_graders_can_be_crossed_with_columns_and_tags():
    """A list of columns groups by all of them, special ones included."""
    trials = _trials(a="pp", b="ff").assign(tags=[("x",)] * 2 + [("y",)] * 2, lane="live")
    run = _graded(trials, truth=[True, True, False, False])
    frame = pass_rates(run, by=["lane", "grader", "tag"])
    assert frame[["lane", "grader", "tag", "rate"]].to_numpy().tolist() == [
        ["live", "truth", "x", 1.0],
        ["live", "truth", "y", 0.0],
    ]


def test_rubrics_are_counted_apart():
    """One grader with several rubrics can be split by rubric."""
    run = _graded(_trials(a="p", b="p"), judge=[True, True])
    run.grades = pd.concat(
        [run.grades.assign(rubric="tone"), run.grades.assign(rubric="truth", passed=False)]
    )
    assert pass_rates(run, by="rubric")["rate"].tolist() == [1.0, 0.0]
    assert pass_rates(run, by="grader")["rate"].tolist() == [0.0]


def test_declared_clusters_are_used():
    """A column named cluster coarsens the interval without being asked for."""
    letters = {name: "ppp" if name < "g" else "fff" for name in "abcdefghijkl"}
    plain = _trials(**letters)
    clustered = plain.copy()
    clustered["cluster"] = clustered["scenario"].map(lambda name: (ord(name) - ord("a")) // 3)
    alone, together = pass_rates(plain).iloc[0], pass_rates(clustered).iloc[0]
    assert together["rate"] == alone["rate"]
    assert together["rate_high"] > alone["rate_high"]
    assert (
        together["note"]
        == "interval over 4 clusters of 12 scenarios; too few clusters to generalise"
    )
    assert pass_rates(clustered, cluster="scenario")["rate_high"].item() == alone["rate_high"]


def test_a_scenario_without_cluster_is_its_own():
    """A missing cluster does not put scenarios together."""
    trials = _trials(a="pp", b="ff", c="pf").assign(cluster=None)
    assert collect_cells(trials).cluster.tolist() == [0, 1, 2]


def test_a_cluster_holds_whole_scenarios():
    """A scenario in two clusters is refused by name."""
    trials = _trials(a="pp", b="ff").assign(part=["x", "y", "x", "x"])
    with pytest.raises(ValueError, match="'a' lies in several clusters"):
        pass_rates(trials, cluster="part")


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, {"by": "scenaro"}, "Did you mean 'scenario'"),
        ({}, {"by": "tags"}, "use 'tag'"),
        ({}, {"by": "tag"}, "no column 'tags'"),
        ({}, {"by": "grader"}, "pass the run itself"),
        ({}, {"cluster": "document"}, "no column 'document'"),
        ({"status": "skipped"}, {}, "'skipped' is not one of"),
        ({"status": None}, {}, "is not one of"),
        ({"trial": 0}, {}, "trial 0 of scenario 'a' is there twice"),
        ({}, {"confidence": 95}, "between 0 and 1"),
        ({}, {"estimand": "everyone"}, "all_users or fixed_suite"),
    ],
)
def test_what_makes_no_sense_is_refused(change, arguments, message):
    """Misuse is a ValueError that says what is wrong and what would be right."""
    with pytest.raises(ValueError, match=message):
        pass_rates(_trials(a="pp", b="ff").assign(**change), **arguments)


@pytest.mark.parametrize("thing", [None, [1, 0], {"scenario": ["a"]}, 3])
def test_what_is_no_run_is_refused(thing):
    """Something without a frame of trials is named by its type."""
    with pytest.raises(ValueError, match=type(thing).__name__):
        pass_rates(thing)


def test_frames_without_scenario_or_status_are_refused():
    """A frame that lacks a needed column is refused and its columns are listed."""
    with pytest.raises(ValueError, match="there is no column 'status'; there are scenario"):
        pass_rates(pd.DataFrame({"scenario": ["a"]}))


def test_input_frames_are_left_alone():
    """The frames of a run are read, never written."""
    trials = _trials(a="pf", b="pp").assign(tags=[["x"]] * 4)
    run = _graded(trials, truth=[True, False, None, True])
    before = trials.copy(), run.grades.copy()
    pass_rates(run, by=["grader", "tag"])
    pd.testing.assert_frame_equal(trials, before[0])
    pd.testing.assert_frame_equal(run.grades, before[1])


@pytest.mark.parametrize("kind", ["category", "object", "str"])
def test_column_types_do_not_matter(kind):
    """Categories, objects and strings give the same table; unused categories no rows."""
    trials = _trials(b="pf", a="pp").assign(lane="live")
    typed = trials.astype({"scenario": kind, "status": kind, "lane": kind})
    if kind == "category":
        typed["lane"] = typed["lane"].cat.add_categories(["quality"])
    for by in (None, "scenario", "lane"):
        expected, found = pass_rates(trials, by=by), pass_rates(typed, by=by)
        assert found.astype(str).to_numpy().tolist() == expected.astype(str).to_numpy().tolist()


def test_missing_lanes_and_nullable_strings_are_read():
    """Nullable string columns, also with missing lanes, count like any other."""
    trials = _trials(a="pf", b="pp").astype({"status": "string", "scenario": "string"})
    trials["lane"] = pd.Series(["live", None, "live", None], dtype="string")
    assert pass_rates(trials)["rate"].item() == 0.75
    broken = trials.assign(status=pd.Series(["passed", None, "failed", "failed"], dtype="string"))
    with pytest.raises(ValueError, match="is not one of passed"):
        pass_rates(broken)
