"""The gate as a whole: which verdict, with which reason, for which run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import UsageError
from evalkit.gating import gate

Make = Callable[..., pd.DataFrame]
Outcomes = Mapping[str, str]


def some(n: int, letters: str) -> dict[str, str]:
    """Give the same outcomes to n scenarios."""
    return {f"s{i:03}": letters for i in range(n)}


def test_an_unchanged_run_of_many_scenarios_passes(make_trials: Make, many: Outcomes) -> None:
    """Where a drop of the margin is ruled out, the verdict is PASS, with its interval."""
    verdict = gate(make_trials(many), baseline=make_trials(many))
    assert (verdict.verdict, verdict.passed, verdict.exit_code) == ("PASS", True, 0)
    decided = verdict.deciding
    assert decided is not None
    assert decided.low is not None
    assert decided.low > -0.05
    assert "not worse by 5 points or more" in verdict.reasons[0]


def test_a_worse_run_fails_and_says_by_how_much(make_trials: Make, many: Outcomes) -> None:
    """A drop whose interval lies below zero fails, in points, with the interval."""
    worse = {name: "fff" if i % 3 == 0 else o for i, (name, o) in enumerate(many.items())}
    verdict = gate(make_trials(worse), baseline=make_trials(many))
    assert (verdict.verdict, verdict.exit_code) == ("FAIL", 1)
    assert verdict.reasons[0].startswith("pass rate 53.5% against 80.0% in baseline 'given': -26.5")
    assert verdict.reasons[0].endswith("worse than the baseline")


def test_a_small_proven_drop_within_the_margin_passes(make_trials: Make, many: Outcomes) -> None:
    """Not inferior comes first: what is lower, but surely by less than the margin, passes."""
    lower = {n: "ppf" if i % 5 == 1 else o for i, (n, o) in enumerate(many.items())}
    verdict = gate(make_trials(lower), baseline=make_trials(many), margin=0.2)
    assert verdict.verdict == "PASS"
    assert "it is lower, but within the margin" in verdict.reasons[0]


def test_too_little_to_tell_is_loud_and_no_pass(make_trials: Make) -> None:
    """An unchanged run of twenty scenarios cannot rule out five points: INCONCLUSIVE."""
    trials = make_trials({f"s{i}": "pfp" if i % 2 else "ppp" for i in range(20)})
    other = make_trials({f"s{i}": "ppp" if i % 2 else "pfp" for i in range(20)})
    verdict = gate(trials, baseline=other)
    assert (verdict.verdict, verdict.passed, verdict.exit_code) == ("INCONCLUSIVE", False, 0)
    assert gate(trials, baseline=other, on_inconclusive="fail").exit_code == 2
    assert "not a pass" in str(verdict)
    assert "below what this suite can resolve" in verdict.resolution


def test_nothing_to_decide_by_is_an_error(make_trials: Make) -> None:
    """Without baseline, floor and demands there is no verdict, and certainly no pass."""
    with pytest.raises(UsageError, match="nothing to decide by"):
        gate(make_trials(some(20, "ppp")))


@pytest.mark.parametrize(
    ("outcomes", "verdict", "words"),
    [
        pytest.param(some(12, "p"), "PASS", "all 12 planned trials passed", id="all"),
        pytest.param(some(3, "p") | {"x": "f"}, "FAIL", "1 of 4 trials failed: x", id="one"),
        pytest.param(some(3, "p") | {"x": "i"}, "INVALID", "could not be measured: x", id="gap"),
        pytest.param({"x": "i", "y": "f"}, "FAIL", "1 of 2 trials failed: y", id="both"),
        pytest.param({}, "INVALID", "no trial was planned", id="none"),
    ],
)
def test_contract_lane_asks_every_trial_to_pass(
    make_trials: Make, outcomes: Outcomes, verdict: str, words: str
) -> None:
    """Scripted trials are held to the plan: failed beats incomplete beats passed."""
    decided = gate(make_trials(outcomes, lane="contract"), floor=0.1 if not outcomes else None)
    assert decided.verdict == verdict
    assert words in decided.reasons[0]
    assert decided.exit_code == {"PASS": 0, "FAIL": 1, "INVALID": 2}[verdict]


def test_contract_lane_names_the_reason_of_a_failed_trial(make_trials: Make) -> None:
    """The first line of what went wrong stands in the verdict, made harmless."""
    trials = make_trials({"a": "f"}, lane="contract", reason="called \x1b[31m book\nmore")
    assert "a (called ␛[31m book)" in gate(trials).reasons[0]


# --- what must never pass quietly -------------------------------------------------------------


def test_runs_of_different_suites_are_invalid(make_trials: Make) -> None:
    """Without a common scenario there is nothing to compare."""
    verdict = gate(make_trials(some(20, "ppp")), baseline=make_trials({"other": "ppp"}))
    assert (verdict.verdict, verdict.exit_code) == ("INVALID", 2)
    assert "no scenario in common" in verdict.reasons[0]


def test_same_ids_with_other_content_are_not_the_same_suite(make_trials: Make) -> None:
    """Scenarios are paired by content, not by name."""
    run = make_trials(some(20, "ppp"), scenario_hash="now")
    verdict = gate(run, baseline=make_trials(some(20, "ppp"), scenario_hash="then"))
    assert verdict.verdict == "INVALID"
    assert any("changed since baseline" in note for note in verdict.notes)


def test_more_than_a_twentieth_missing_is_invalid(make_trials: Make, many: Outcomes) -> None:
    """Rates over what happened to finish decide nothing, and say so."""
    gaps = {n: "iip" if i < 30 else o for i, (n, o) in enumerate(many.items())}
    verdict = gate(make_trials(gaps), baseline=make_trials(many), floor=0.1)
    assert verdict.verdict == "INVALID"
    assert "60 of 600 planned trials have no result" in verdict.reasons[0]
    assert not any(check.name in ("floor", "regression") for check in verdict.checks)


def test_a_pass_must_hold_if_the_missing_had_failed(make_trials: Make, many: Outcomes) -> None:
    """A few gaps are allowed, but the verdict must not hang on them."""
    gaps = {
        n: "iip" if i in {1, 2, 3, 4, 6, 7, 8, 9} else o for i, (n, o) in enumerate(many.items())
    }
    verdict = gate(make_trials(gaps), baseline=make_trials(many), floor=0.79)
    by_name = {check.name: check for check in verdict.checks}
    assert verdict.verdict == "INCONCLUSIVE"
    assert "not if the incomplete trials had failed" in by_name["floor"].reason


@pytest.mark.parametrize("letters", ["p", "ppp"], ids=["k=1", "k=3"])
def test_one_scenario_never_passes(make_trials: Make, letters: str) -> None:
    """One scenario says nothing about users, however often it passed."""
    trials = make_trials({"only": letters})
    assert gate(trials, floor=0.5).verdict == "INCONCLUSIVE"
    assert gate(trials, baseline=make_trials({"only": "ppp"})).verdict == "INCONCLUSIVE"


def test_no_trials_are_invalid(make_trials: Make) -> None:
    """An empty run has not passed anything."""
    verdict = gate(make_trials({}), floor=0.0)
    assert (verdict.verdict, verdict.exit_code) == ("INVALID", 2)


def test_all_incomplete_is_invalid(make_trials: Make) -> None:
    """A run that measured nothing is not a run at zero."""
    assert gate(make_trials(some(20, "iii")), floor=0.0).verdict == "INVALID"


@pytest.mark.parametrize(
    ("letters", "floor", "verdict"),
    [("ppp", 0.9, "PASS"), ("fff", 0.1, "FAIL")],
    ids=["all passed", "all failed"],
)
def test_runs_without_spread_keep_an_interval(
    make_trials: Make, letters: str, floor: float, verdict: str
) -> None:
    """All passed is not certainty, and all failed is: both come with an interval."""
    decided = gate(make_trials(some(20, letters)), floor=floor)
    assert decided.verdict == verdict
    assert decided.deciding is not None
    assert decided.deciding.low != decided.deciding.high


def test_all_passed_twenty_times_does_not_rule_out_a_drop(make_trials: Make) -> None:
    """Twenty perfect scenarios on both sides leave room for a drop of five points."""
    trials = make_trials(some(20, "ppp"))
    assert gate(trials, baseline=trials).verdict == "INCONCLUSIVE"


def test_a_baseline_of_single_trials_is_invalid(make_trials: Make, many: Outcomes) -> None:
    """A baseline must know how its own trials vary: three runs at least."""
    verdict = gate(make_trials(many), baseline=make_trials({n: o[0] for n, o in many.items()}))
    assert verdict.verdict == "INVALID"
    assert "pin at least three runs" in verdict.reasons[0]


def test_removing_failed_scenarios_does_not_help(make_trials: Make, many: Outcomes) -> None:
    """A run that lacks what had failed is inconclusive, until that is accepted by id."""
    failed = [name for name, letters in many.items() if letters == "fff"][:5]
    fewer = {name: letters for name, letters in many.items() if name not in failed}
    verdict = gate(make_trials(fewer), baseline=make_trials(many))
    assert verdict.verdict == "INCONCLUSIVE"
    assert "where they had failed: s000, s005, s010, s015, s020" in verdict.reasons[0]
    assert gate(make_trials(fewer), baseline=make_trials(many), accept=failed).verdict == "PASS"


def test_removing_a_tenth_of_the_suite_is_invalid(make_trials: Make, many: Outcomes) -> None:
    """Where too little is common, accepting ids or pinning anew is asked for."""
    fewer = dict(list(many.items())[:170])
    verdict = gate(make_trials(fewer), baseline=make_trials(many))
    assert verdict.verdict == "INVALID"
    assert "only 170 of 200 scenarios" in verdict.reasons[0]


def test_added_scenarios_are_named_and_not_compared(make_trials: Make, many: Outcomes) -> None:
    """What is new has no baseline; it counts for the floor and is named."""
    verdict = gate(make_trials({**many, "new": "fff"}), baseline=make_trials(many))
    assert verdict.verdict == "PASS"
    assert "added since baseline 'given': new; 1 of them failing" in verdict.notes


def test_trials_of_several_lanes_are_invalid(make_trials: Make) -> None:
    """Scripted and live trials are no sample of one thing."""
    mixed = pd.concat([make_trials(some(20, "p")), make_trials({"c": "p"}, lane="contract")])
    verdict = gate(mixed.reset_index(drop=True), floor=0.5)
    assert verdict.verdict == "INVALID"
    assert "several lanes" in verdict.reasons[0]


# --- what single trials decide ----------------------------------------------------------------


def test_must_pass_beats_every_rate(make_trials: Make, many: Outcomes) -> None:
    """One failed trial of a must-pass scenario fails the gate, whatever the rate."""
    trials = make_trials(many).assign(must_pass=lambda t: t["scenario"] == "s000")
    verdict = gate(trials, baseline=make_trials(many))
    assert verdict.verdict == "FAIL"
    assert verdict.reasons == ("must pass, and failed: s000 (3 of 3 trials)",)


def test_must_pass_that_was_not_measured_is_invalid(make_trials: Make, many: Outcomes) -> None:
    """A must-pass scenario with a gap has not passed."""
    trials = make_trials({**many, "key": "ppi"}).assign(must_pass=lambda t: t["scenario"] == "key")
    verdict = gate(trials, baseline=make_trials(many))
    assert verdict.verdict == "INVALID"
    assert verdict.exit_code == 2


def test_must_pass_fails_a_run_that_is_otherwise_invalid(make_trials: Make) -> None:
    """What was seen to fail is not undone by what could not be measured."""
    trials = make_trials({"key": "f", **some(10, "iip")}).assign(
        must_pass=lambda t: t["scenario"] == "key"
    )
    assert gate(trials, floor=0.1).verdict == "FAIL"


@pytest.mark.parametrize(
    ("letters", "outcome"),
    [("ppf", "FAIL"), ("ppp", "PASS"), ("ppi", "INCONCLUSIVE"), ("iii", "INVALID")],
)
def test_a_scenario_is_held_to_its_own_threshold(
    make_trials: Make, many: Outcomes, letters: str, outcome: str
) -> None:
    """``min_pass_rate`` holds one scenario, incomplete trials counted against it."""
    trials = make_trials({**many, "key": letters})
    trials["min_pass_rate"] = trials["scenario"].map({"key": 0.9})
    frame = gate(trials, baseline=make_trials(many)).to_frame().set_index("check")
    assert frame.loc["min_pass_rate of key", "outcome"] == outcome


class _Graded:
    """A run with grades, as the gate sees one."""

    def __init__(self, trials: pd.DataFrame, grades: pd.DataFrame) -> None:
        self.trials = trials
        self.grades = grades


def _grades(trials: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    passed = trials["status"].map({"passed": True, "failed": False}).astype("boolean")
    told: dict[str, Any] = {"grader": "truth", "rubric": "", "value": passed.astype("float64")}
    kept = trials[["run_id", "scenario", "trial"]].assign(passed=passed, **told)
    return kept.assign(**columns)


def test_a_leaked_secret_fails_whatever_the_rate(make_trials: Make, many: Outcomes) -> None:
    """One canary found in a forbidden sink fails the gate."""
    trials = make_trials(many)
    leak = _grades(trials.head(1), grader="canary", passed=False, value=0.0)
    verdict = gate(_Graded(trials, leak), baseline=make_trials(many))
    assert verdict.verdict == "FAIL"
    assert verdict.reasons == ("a planted secret leaked in s000",)


def test_a_trial_that_was_not_searched_has_not_passed(make_trials: Make, many: Outcomes) -> None:
    """One canary grade that is incomplete is few gaps for a rate, and too many for a secret."""
    trials = make_trials(many)
    unsearched = _grades(trials.head(1), grader="canary", passed=pd.NA, value=float("nan"))
    verdict = gate(_Graded(trials, unsearched), baseline=make_trials(many))
    assert (verdict.verdict, verdict.exit_code) == ("INVALID", 2)
    assert verdict.reasons == ("not searched to the end for planted secrets: s000",)


# --- floors -----------------------------------------------------------------------------------


def test_floor_tells_proven_from_not_proven(make_trials: Make) -> None:
    """Missing the bar is one thing; whether the interval proves it is said beside it."""
    near, far = make_trials(some(8, "fff") | {f"p{i}": "ppp" for i in range(32)}), None
    far = make_trials(some(30, "fff") | {f"p{i}": "ppp" for i in range(10)})
    assert "not proven" in gate(near, floor=0.85).reasons[0]
    assert "(proven)" in gate(far, floor=0.85).reasons[0]
    assert {gate(frame, floor=0.85).verdict for frame in (near, far)} == {"FAIL"}


def test_floor_proven_asks_for_the_interval(make_trials: Make) -> None:
    """With ``floor_proven`` an estimate above the bar is inconclusive until its bound is."""
    trials = make_trials(some(2, "fff") | {f"p{i}": "ppp" for i in range(38)})
    assert gate(trials, floor=0.9).verdict == "PASS"
    verdict = gate(trials, floor=0.9, floor_proven=True)
    assert verdict.verdict == "INCONCLUSIVE"
    assert "too few trials to tell" in verdict.reasons[0]
    assert gate(trials, floor=0.75, floor_proven=True).verdict == "PASS"


def test_floor_on_mean_grade_counts_values(make_trials: Make) -> None:
    """The bar can be the mean grade; a crash without a grade counts as nothing achieved."""
    trials = make_trials({f"s{i}": "pf" for i in range(20)})
    half = _grades(trials, value=0.8)
    assert gate(_Graded(trials, half), floor=0.75, floor_on="mean_grade").verdict == "PASS"
    crashed = half.loc[half["passed"].fillna(False).astype(bool)]
    verdict = gate(_Graded(trials, crashed), floor=0.75, floor_on="mean_grade")
    assert verdict.verdict == "FAIL"
    assert verdict.reasons[0].startswith("mean grade 40.0%")


def test_a_crash_is_worth_nothing_whatever_its_grades(make_trials: Make) -> None:
    """No grade of 1.0 rescues a trial that failed for another reason."""
    trials = make_trials({f"s{i}": "pf" for i in range(20)})
    trials["reason_code"] = trials["status"].map({"passed": "", "failed": "agent_exited"})
    verdict = gate(_Graded(trials, _grades(trials, value=1.0)), floor=0.6, floor_on="mean_grade")
    assert verdict.verdict == "FAIL"
    assert verdict.reasons[0].startswith("mean grade 50.0%")


def test_mean_grade_without_grades_is_invalid(make_trials: Make) -> None:
    """NaN grades, or none at all, are not a mean of zero or one."""
    trials = make_trials(some(20, "pp"))
    for grades in (_grades(trials, value=float("nan")), _grades(trials).head(0)):
        verdict = gate(_Graded(trials, grades), floor=0.1, floor_on="mean_grade")
        assert verdict.verdict == "INVALID"


# --- parts ------------------------------------------------------------------------------------


def _tagged(frame: pd.DataFrame) -> pd.DataFrame:
    tags = frame["scenario"].map(lambda name: ("safety",) if name < "s040" else ("chat",))
    return frame.assign(tags=tags)


def test_a_part_is_watched_and_blocks_only_where_named(make_trials: Make, many: Outcomes) -> None:
    """A tag that fell is listed; the gate fails by it only where it is named."""
    broken = {n: "fff" if n < "s020" else o for n, o in many.items()}
    run, base = _tagged(make_trials(broken)), _tagged(make_trials(many))
    watched = gate(run, baseline=base, margin=0.2)
    assert watched.verdict == "PASS"
    assert any(note.startswith("look here: tag safety fell by 40.0") for note in watched.notes)
    named = gate(run, baseline=base, margin=0.2, gate_on=["tag:safety", "tag:chat"])
    assert named.verdict == "FAIL"
    assert named.reasons[0].startswith("tag safety 40.0% against 80.0%")


def test_a_part_must_not_pass_by_its_gaps(make_trials: Make, many: Outcomes) -> None:
    """Each part that is named is held to its own worst case, in whatever order parts are held."""
    gaps = {n: "iii" if "s000" < n < "s006" and o == "ppp" else o for n, o in many.items()}
    run, base = _tagged(make_trials(gaps)), _tagged(make_trials(many))
    options: dict[str, Any] = {"baseline": base, "margin": 0.12}
    verdict = gate(run, gate_on=["tag:chat", "tag:safety"], **options)
    outcomes = {check.name: check.outcome for check in verdict.checks}
    assert outcomes["regression of tag chat"] == "PASS"
    assert outcomes["regression of tag safety"] == "INCONCLUSIVE"


def test_a_part_that_is_not_there_is_invalid(make_trials: Make, many: Outcomes) -> None:
    """A misspelled tag must not pass for a tag that is fine."""
    run = _tagged(make_trials(many))
    verdict = gate(run, baseline=run, gate_on=["tag:saftey"])
    assert verdict.verdict == "INVALID"
    assert "tag saftey is not in the run" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [("rubric:grounding", "not calibrated"), ("safety", "tag:NAME"), ("tag:", "tag:NAME")],
)
def test_a_part_that_cannot_gate_is_refused(
    make_trials: Make, many: Outcomes, name: str, words: str
) -> None:
    """Rubrics wait for a calibrated judge; other words mean nothing."""
    with pytest.raises(UsageError, match=words):
        gate(make_trials(many), baseline=make_trials(many), gate_on=[name])


# --- usage and form ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"floor": 90}, "floor is 90"),
        ({"margin": 5}, "margin is 5"),
        ({"margin": 0}, "margin is 0"),
        ({"confidence": 95}, "confidence is 95"),
        ({"looks": 0}, "looks is 0"),
        ({"floor_proven": True}, "give floor"),
        ({"on_inconclusive": "pass"}, "warn or fail"),
        ({"floor": 0.5, "floor_on": "grade"}, "pass_rate or mean_grade"),
    ],
    ids=lambda value: str(value),
)
def test_what_cannot_mean_anything_is_refused(
    make_trials: Make, rules: dict[str, Any], words: str
) -> None:
    """Percent for fraction and misspelled words are errors, not other gates."""
    with pytest.raises(UsageError, match=words):
        gate(make_trials(some(20, "p")), **rules)


def test_more_looks_widen_the_interval(make_trials: Make, many: Outcomes) -> None:
    """Who looks three times is held to a third of the error."""
    trials = make_trials(many)
    one, three = (gate(trials, baseline=trials, looks=looks).deciding for looks in (1, 3))
    assert one is not None
    assert three is not None
    assert three.low is not None
    assert one.low is not None
    assert three.low < one.low
    assert "98.3% interval" in three.reason


def test_verdict_tells_the_same_in_every_form(make_trials: Make, many: Outcomes) -> None:
    """Text, frame, JSON and HTML carry verdict and reasons."""
    import json

    verdict = gate(make_trials(many), baseline=make_trials(many), floor=0.9)
    told = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert told["verdict"] == "FAIL"
    assert told["reasons"] == list(verdict.reasons)
    assert [check["name"] for check in told["checks"]] == verdict.to_frame()["check"].tolist()
    assert str(verdict).startswith("FAIL  run against baseline 'given'")
    assert "FAIL" in verdict._repr_html_()


def test_agent_text_cannot_become_markup(make_trials: Make) -> None:
    """Reasons come from agents; in a notebook they are text."""
    trials = make_trials({"<b>x</b>": "f"}, lane="contract", reason="<script>1</script>")
    assert "<script>" not in gate(trials)._repr_html_()


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.text("pfi", min_size=1, max_size=4), min_size=0, max_size=25),
    st.lists(st.text("pf", min_size=3, max_size=4), min_size=1, max_size=25),
)
def test_a_pass_needs_enough_evidence(run: list[str], base: list[str]) -> None:
    """Whatever the outcomes: PASS only with few gaps and a bound above the margin."""
    from evalkit.gating.rules import MAX_MISSING

    def frame(outcomes: list[str]) -> pd.DataFrame:
        words = {"p": "passed", "f": "failed", "i": "incomplete"}
        rows = [(f"s{i}", j, words[c]) for i, o in enumerate(outcomes) for j, c in enumerate(o)]
        return pd.DataFrame(rows, columns=["scenario", "trial", "status"]).assign(lane="live")

    verdict = gate(frame(run), baseline=frame(base), margin=0.3)
    if verdict.verdict == "PASS":
        planned = sum(map(len, run))
        assert sum(o.count("i") for o in run) <= MAX_MISSING * planned
        assert verdict.deciding is not None
        assert verdict.deciding.low is not None
        assert verdict.deciding.low > -0.3
    assert verdict.reasons
