"""Log and errors: what must be logged, and what must not."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, graders_for
from evalkit.suite import Scenario
from evalkit.trace import Trace, Turn


def graded(name: str, scenario: dict[str, Any], trace: Trace, **trial: Any) -> Grade:
    """Grade a trace in the contract lane."""
    said = {"input": "Hi."} if "turns" not in scenario else {}
    checked = Scenario.model_validate({"id": "s", **said, **scenario})
    return find_grader(name)(Trial(checked, trace, **{"lane": "contract", **trial}))


def log(scenario: dict[str, Any], *logs: str, **trial: Any) -> Grade:
    """Grade a log."""
    return graded("log", scenario, Trace((Turn("", ("x",)),), logs=logs), **trial)


def errors(scenario: dict[str, Any], *texts: str, **trial: Any) -> Grade:
    """Grade errors."""
    trace = Trace((Turn("", ("x",)),), logs=("started", *texts), errors=texts)
    return graded("errors", scenario, trace, **trial)


LOGS = ("started", "first line\nsecond line\n", "done in 3 s")


@pytest.mark.parametrize(
    "checks",
    [
        {"contains": ["STARTED", "second"]},
        {"contains": "line\nsecond"},
        {"not_contains": ["error", "traceback"]},
        {"regex": ["^second line$", r"done in \d+ s$"]},
        {"regex": "(?s)^started.*3 s$"},
        {"equals": "done in 3 s"},
        {"equals": "second line"},
        {"equals": "\n".join(LOGS)},
    ],
)
def test_log_is_searched_whole_and_line_by_line(checks: Any) -> None:
    """A check may be met by the whole log or by one line of it."""
    assert log({"expect": {"log": checks}}, *LOGS).passed


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ({"contains": "finished"}, "the log does not contain 'finished'; it reads 'started"),
        ({"not_contains": "SECOND"}, "the log contains 'SECOND'"),
        ({"regex": "^line"}, "does not match /^line/"),
        ({"equals": "started "}, "is not 'started '"),
    ],
)
def test_log_that_misses_fails_and_says_what(checks: Any, reason: str) -> None:
    """Each check fails what it should."""
    grade = log({"expect": {"log": checks}}, *LOGS)
    assert grade.status == "failed"
    assert reason in grade.reason


def test_empty_log_is_an_empty_log() -> None:
    """Nothing logged is an observation, not a gap."""
    grade = log({"expect": {"log": {"contains": "x"}}})
    assert (grade.status, grade.reason) == ("failed", "the log does not contain 'x'; it is empty")
    assert log({"forbid": {"log": "x"}}).passed


@pytest.mark.parametrize("banned", ["SECOND", {"regex": "^second"}, ["x1", "second"]])
def test_forbidden_text_in_the_log_fails(banned: Any) -> None:
    """One place where it was logged is enough, and it is quoted."""
    grade = log({"forbid": {"log": banned}}, *LOGS)
    assert grade.status == "failed"
    assert "which is forbidden" in grade.reason
    assert "second line" in grade.reason


@pytest.mark.parametrize(
    ("checks", "texts", "reason"),
    [
        (0, (), ""),
        (0, ("e1",), "1 error(s) logged, expected 0: 'e1'"),
        (1, (), "0 error(s) logged, expected 1"),
        ({"count": {"min": 1}}, ("e1", "e2"), ""),
        ({"count": {"max": 1}}, ("e1", "e2"), "2 error(s) logged, expected 0 to 1: 'e1', 'e2'"),
        ({"count": {"min": 3}}, ("e1",), "1 error(s) logged, expected at least 3: 'e1'"),
        (0, ("e",) * 5, "5 error(s) logged, expected 0: 'e', 'e', 'e' and 2 more"),
        ({"contains": "TIMEOUT"}, ("a timeout",), ""),
        ({"contains": "timeout"}, (), "does not contain 'timeout'; it is empty"),
        ({"contains": "started"}, ("e1",), "does not contain 'started'; it reads 'e1'"),
        ({"not_contains": "e2"}, ("e1", "e2"), "the log of errors contains 'e2'"),
        ({"regex": "^e2$"}, ("e1", "e2"), ""),
        ({"regex": "^e3$"}, ("e1", "e2"), "does not match /^e3$/"),
    ],
)
def test_errors_are_counted_and_searched(checks: Any, texts: tuple[str, ...], reason: str) -> None:
    """Only what was logged as an error counts, one by one."""
    grade = errors({"expect": {"errors": checks}}, *texts)
    assert grade.status == ("failed" if reason else "passed")
    assert reason in grade.reason


def test_forbidden_error_fails() -> None:
    """What no error may say fails where one says it, and only there."""
    scenario = {"forbid": {"errors": "key"}}
    assert errors(scenario, "no KEY given").status == "failed"
    assert errors(scenario, "other").passed
    assert graded("errors", scenario, Trace(logs=("key read",))).passed


EVERY: list[tuple[str, dict[str, Any]]] = [
    ("log", {"expect": {"log": {"contains": "x"}}}),
    ("log", {"expect": {"log": {"not_contains": "x"}}}),
    ("log", {"forbid": {"log": "x"}}),
    ("errors", {"expect": {"errors": 0}}),
    ("errors", {"expect": {"errors": {"contains": "x"}}}),
    ("errors", {"forbid": {"errors": "x"}}),
]


@pytest.mark.parametrize(("name", "scenario"), EVERY)
def test_log_that_nobody_saw_is_incomplete(name: str, scenario: Any) -> None:
    """Traces of others have no log, and a part that was cut off may hold anything."""
    grade = graded(name, scenario, Trace(), lane="imported")
    assert (grade.status, grade.reason) == ("incomplete", "nobody saw the agent's log")
    cut = graded(name, scenario, Trace(), outcome={"log_gap": "only the end was kept"})
    assert (cut.status, cut.reason) == ("incomplete", "only the end was kept")


@pytest.mark.parametrize(("name", "scenario"), [EVERY[1], EVERY[2], EVERY[3], EVERY[5]])
def test_fault_in_what_was_seen_of_a_log_decides(name: str, scenario: Any) -> None:
    """What is against the rules fails, also where the rest is unknown or was cut short."""
    trace = Trace(logs=("x",), errors=("x",))
    assert graded(name, scenario, trace, outcome={"log_gap": "cut"}).status == "failed"
    assert graded(name, scenario, trace, whole=False).status == "failed"


@pytest.mark.parametrize(("name", "scenario"), EVERY)
def test_trial_cut_short_may_still_log(name: str, scenario: Any) -> None:
    """What is not there yet is no fault, and what is not forbidden yet no pass."""
    assert graded(name, scenario, Trace(), whole=False).status == "incomplete"


@pytest.mark.parametrize(
    ("name", "place", "logged", "status"),
    [
        ("log", {"expect": {"log": {"contains": "x"}}}, "y", "failed"),
        ("log", {"expect": {"log": {"contains": "x"}}}, "x", "incomplete"),
        ("log", {"forbid": {"log": "x"}}, "y", "passed"),
        ("log", {"forbid": {"log": "x"}}, "x", "incomplete"),
        ("errors", {"expect": {"errors": 0}}, "y", "incomplete"),
        ("errors", {"expect": {"errors": 2}}, "y", "failed"),
        ("errors", {"expect": {"errors": {"count": {"max": 1}}}}, "y", "passed"),
    ],
)
def test_turn_is_judged_where_it_does_not_matter_which(
    name: str, place: Any, logged: str, status: str
) -> None:
    """A log tells no turns: what was never logged was not in this turn either."""
    trace = Trace((Turn(), Turn()), logs=(logged,), errors=(logged,))
    scenario = {"turns": [{"user": "a"}, {"user": "b", **place}]}
    grade = graded(name, scenario, trace)
    assert grade.status == status
    assert (grade.turn == 1) is (status != "passed")


def test_only_turn_has_the_whole_log() -> None:
    """Where there is one turn, all that was logged is its."""
    scenario = {"turns": [{"user": "a", "expect": {"errors": 0, "log": {"contains": "x"}}}]}
    assert graded("log", scenario, Trace((Turn(),), logs=("x",))).passed
    failed = graded("errors", scenario, Trace((Turn(),), logs=("x",), errors=("x",)))
    assert failed.status == "failed"


def test_log_and_errors_apply_where_they_are_spoken_of() -> None:
    """Each applies by itself exactly where it has something to check."""

    def applied(**keys: Any) -> set[str]:
        scenario = Scenario.model_validate({"id": "s", "turns": [{"user": "a"}], **keys})
        return {"log", "errors"} & set(graders_for(Trial(scenario, Trace())))

    for name, keys in EVERY:
        assert applied(**keys) == {name}
        assert applied(turns=[{"user": "a", **keys}]) == {name}
    assert applied(expect={"reply": {"contains": "x"}}) == set()
    for name in ("log", "errors"):
        assert graded(name, {}, Trace()).status == "incomplete"
        assert find_grader(name).version == "1"
