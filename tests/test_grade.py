"""Grades, endings, and what both make of a trial."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import GraderError
from evalkit.grade import REASON_CODES, STATUSES, Ending, Grade, judge_status, worst

PASSED = Grade("truth", 1.0)
FAILED = Grade("path", 0.0, reason="1 duplicate tool call(s) — looping")
INCOMPLETE = Grade.incomplete("answer", "unseen", reason_code="tools_not_observed")


@pytest.mark.parametrize(
    ("grade", "status", "code"),
    [
        (Grade("g", 1.0), "passed", ""),
        (Grade("g", 0.999), "failed", "grader_failed"),
        (Grade("g", 0.0), "failed", "grader_failed"),
        (Grade("g", 0.5, passed=True), "passed", ""),
        (Grade("g", 1.0, passed=False), "failed", "grader_failed"),
        (Grade("g", None), "incomplete", "grader_incomplete"),
        (Grade.incomplete("g", "why", reason_code="grader_raised"), "incomplete", "grader_raised"),
    ],
)
def test_grade_status_follows_value_unless_said(grade: Grade, status: str, code: str) -> None:
    """Only the best value passes by itself, and nothing measured never does."""
    assert (grade.status, grade.reason_code) == (status, code)


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf")])
def test_grade_refuses_a_value_outside_0_to_1(value: float) -> None:
    """A value that means nothing is refused where it arises."""
    with pytest.raises(GraderError, match=r"lies outside \[0, 1\]"):
        Grade("g", value)


def test_grade_refuses_an_unknown_reason_code() -> None:
    """Reason codes are a closed list."""
    with pytest.raises(GraderError, match="unknown reason code 'odd'"):
        Grade("g", None, reason_code="odd")


def test_every_reason_code_says_what_it_means() -> None:
    """The closed list explains itself."""
    assert all(REASON_CODES.values())


@given(st.lists(st.sampled_from(STATUSES), min_size=1))
def test_worst_is_failed_then_incomplete_then_passed(statuses: list[str]) -> None:
    """Failed beats incomplete beats passed, however many there are and in any order."""
    ranking = ("failed", "incomplete", "passed")
    assert worst(statuses) == min(statuses, key=ranking.index)  # type: ignore[arg-type]


def test_worst_of_nothing_is_an_error() -> None:
    """No status at all is not a pass."""
    with pytest.raises(ValueError, match="empty"):
        worst([])


@pytest.mark.parametrize(
    ("ending", "grades", "status", "code", "reason"),
    [
        (Ending(), [PASSED], "passed", "", ""),
        (Ending(), [], "incomplete", "not_graded", "no grader looked at the trial"),
        (Ending(), [PASSED, INCOMPLETE], "incomplete", "tools_not_observed", "answer: unseen"),
        (Ending(), [INCOMPLETE, FAILED], "failed", "grader_failed",
         "path: 1 duplicate tool call(s) — looping"),
        (Ending("failed", "agent_raised", "boom"), [], "failed", "agent_raised", "boom"),
        (Ending("failed", "agent_raised", "boom"), [FAILED], "failed", "agent_raised", "boom"),
        (Ending("failed", "deadline", "slow"), [PASSED], "failed", "deadline", "slow"),
        (Ending("incomplete", "interrupted", "^C"), [PASSED], "incomplete", "interrupted", "^C"),
        (Ending("incomplete", "interrupted", "^C"), [FAILED], "failed", "grader_failed",
         "path: 1 duplicate tool call(s) — looping"),
    ],
)  # fmt: skip
def test_judge_status_takes_the_worst_and_its_reason(
    ending: Ending, grades: list[Grade], status: str, code: str, reason: str
) -> None:
    """The ending explains the trial where it decides, else the first grader that does."""
    judged = judge_status(ending, grades)
    assert (judged.status, judged.reason_code, judged.reason) == (status, code, reason)


@given(st.lists(st.sampled_from([PASSED, FAILED, INCOMPLETE])))
def test_judge_status_never_improves_with_more_grades(grades: list[Grade]) -> None:
    """Another failing grade can only make a trial worse."""
    assert judge_status(Ending(duration_s=2.0), [*grades, FAILED]).status == "failed"
    assert judge_status(Ending(duration_s=2.0), [*grades, FAILED]).duration_s == 2.0
