"""What a grader may return, how it is registered, and which graders a trial calls for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import GraderError
from evalkit.grade import Grade
from evalkit.graders import (
    Grader,
    Trial,
    add_grader,
    as_grade,
    base,
    find_grader,
    grade_trial,
    grader,
    graders_for,
    known_graders,
)
from evalkit.suite import Scenario
from evalkit.trace import Trace


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graders registered by a test are forgotten after it."""
    monkeypatch.setattr(base, "_registry", dict(base._registry))


def a_trial(*, whole: bool = True, **keys: Any) -> Trial:
    """Make a trial that says hello."""
    scenario = Scenario.model_validate({"id": "s", "input": "Hi", **keys})
    return Trial(scenario, Trace.from_calls(reply="Hello."), whole=whole)


def make(name: str, function: Any, **more: Any) -> Grader:
    """Make a grader of version 1."""
    return Grader(name, function, "1", **more)


@pytest.mark.parametrize(
    ("returned", "value", "passed", "reason"),
    [
        (True, 1.0, True, ""),
        (False, 0.0, False, ""),
        (1, 1.0, True, ""),
        (0.25, 0.25, False, ""),
        (np.True_, 1.0, True, ""),
        (np.float64(0.5), 0.5, False, ""),
        (np.int64(0), 0.0, False, ""),
        ((0.5, "half"), 0.5, False, "half"),
        ((True, "fine"), 1.0, True, "fine"),
        (Grade("other", 0.75, passed=True, reason="near"), 0.75, True, "near"),
        (Grade.incomplete("other", "nobody knows"), None, None, "nobody knows"),
    ],
)
def test_as_grade_takes_every_documented_form(
    returned: object, value: float | None, passed: bool | None, reason: str
) -> None:
    """Whatever form a grader returns becomes a grade under the grader's own name."""
    grade = as_grade("mine", returned)
    assert (grade.grader, grade.value, grade.passed, grade.reason) == (
        "mine", value, passed, reason,
    )  # fmt: skip


@pytest.mark.parametrize(
    "returned",
    [None, "yes", "1.0", {}, [True], (1.0,), (1.0, 2.0), (None, "why"), 1.5, -0.1, float("nan")],
    ids=repr,
)
def test_as_grade_refuses_what_is_no_grade(returned: object) -> None:
    """Nothing is guessed: no truthiness, no text, no number outside [0, 1]."""
    with pytest.raises(GraderError):
        as_grade("mine", returned)


@given(st.floats())
def test_as_grade_passes_only_the_best_value(value: float) -> None:
    """A number passes if it is 1, fails if it is less, and is refused outside [0, 1]."""
    if 0.0 <= value <= 1.0:
        assert as_grade("mine", value).passed is (value == 1.0)
    else:
        with pytest.raises(GraderError):
            as_grade("mine", value)


@pytest.mark.parametrize("error", [ZeroDivisionError("boom"), SystemExit(0), RecursionError()])
def test_grader_that_raises_is_incomplete_with_its_traceback(error: BaseException) -> None:
    """A crash is neither a pass nor a zero, and the reason shows where it happened."""

    def explodes(_: Trial) -> bool:
        raise error

    grade = make("explodes", explodes)(a_trial())
    assert (grade.status, grade.reason_code) == ("incomplete", "grader_raised")
    assert type(error).__name__ in grade.reason
    assert "in explodes" in grade.reason


def test_grader_that_returns_nonsense_is_incomplete() -> None:
    """A grader without a return statement measures nothing."""
    grade = make("silent", lambda _: None)(a_trial())
    assert (grade.status, grade.reason_code) == ("incomplete", "grader_raised")
    assert "return a bool" in grade.reason


@pytest.mark.parametrize("value", [True, False])
def test_trial_cut_short_is_incomplete_for_a_grader_of_whole_trials(value: bool) -> None:
    """What was not seen to its end is judged only by graders that say they can."""
    grade = make("blunt", lambda _: value)(a_trial(whole=False))
    assert grade.status == "incomplete"


def test_trial_cut_short_fails_for_a_grader_that_reads_partial_trials() -> None:
    """A fault seen before a trial was cut short stays a fault."""
    grade = make("sharp", lambda _: False, reads_partial=True)(a_trial(whole=False))
    assert grade.status == "failed"


def test_grader_decorator_registers_and_gives_the_function_back() -> None:
    """A decorated function stays a plain function and is found by its name."""

    @grader
    def greets(trial: Trial) -> bool:
        return "Hello" in trial.reply

    assert greets(a_trial()) is True
    assert find_grader("greets")(a_trial()).passed is True


def test_grader_decorator_takes_name_and_version() -> None:
    """The name in the suite and the version in the manifest can be chosen."""

    @grader(name="salutes", version="2026-01")
    def greets(_: Trial) -> bool:
        return True

    assert find_grader("salutes").version == "2026-01"
    assert "greets" not in known_graders()


def test_version_follows_the_source() -> None:
    """Two graders that decide differently have different versions by themselves."""

    @grader
    def strict(trial: Trial) -> bool:
        return trial.reply == "Hello."

    @grader
    def lax(trial: Trial) -> bool:
        return bool(trial.reply)

    assert find_grader("strict").version != find_grader("lax").version


def test_name_of_another_grader_is_refused() -> None:
    """A name that another place registered is refused, and both places are named."""
    with pytest.raises(GraderError, match=r"'path' is registered twice.*grade_path.*mine"):

        @grader(name="path")
        def mine(_: Trial) -> bool:
            return True


def test_defining_a_grader_again_replaces_it() -> None:
    """A notebook cell that runs twice is no error, and the later definition counts."""

    def define(value: bool) -> None:
        @grader
        def again(_: Trial) -> bool:
            return value

    define(False)
    define(True)
    assert find_grader("again")(a_trial()).passed is True


def test_unknown_grader_names_the_nearest() -> None:
    """A misspelt grader is an error that says which was meant."""
    with pytest.raises(GraderError, match=r"unknown grader 'pth'; did you mean 'path'\?"):
        find_grader("pth")


def test_unknown_grader_without_a_near_one_lists_all() -> None:
    """Where nothing is near, the known graders are listed."""
    with pytest.raises(GraderError, match="known: truth, path, answer, component"):
        find_grader("zzz")


def test_built_in_graders_have_a_fixed_order() -> None:
    """Grades of a trial always come in the same order."""
    assert known_graders()[:4] == ("truth", "path", "answer", "component")


def test_graders_for_follows_what_the_scenario_expects() -> None:
    """A built-in grader applies where the scenario says something that it checks."""
    expect = {
        "tools": [],
        "reply": {"contains": "hi"},
        "component": {"tools": {"a": {"max_latency_s": 1}}},
    }
    assert list(graders_for(a_trial(expect=expect))) == ["truth", "path", "answer", "component"]
    assert list(graders_for(a_trial())) == ["path"]


def test_graders_for_puts_named_graders_last_with_their_parameters() -> None:
    """Graders given by the run follow the built-in ones, then the scenario's own."""
    add_grader(make("tone", lambda _, **__: True))
    add_grader(make("length", lambda _: True))
    called_for = graders_for(a_trial(graders=[{"tone": {"kind": "warm"}}]), more=["length"])
    assert called_for == {"path": {}, "length": {}, "tone": {"kind": "warm"}}


def test_grade_trial_hands_parameters_to_the_grader() -> None:
    """What stands under `graders:` arrives as keyword arguments."""
    add_grader(make("at_most", lambda trial, n: len(trial.reply) <= n))
    assert grade_trial(a_trial(graders=[{"at_most": {"n": 6}}]))[-1].passed is True
    assert grade_trial(a_trial(graders=[{"at_most": {"n": 5}}]))[-1].passed is False


def test_grade_trial_with_a_wrong_parameter_is_incomplete() -> None:
    """A parameter that a grader does not have is no silent default."""
    add_grader(make("at_most", lambda trial, n: len(trial.reply) <= n))
    grade = grade_trial(a_trial(graders=[{"at_most": {"m": 6}}]))[-1]
    assert (grade.status, grade.reason_code) == ("incomplete", "grader_raised")
