"""What the trials of a scenario add up to."""

from __future__ import annotations

from pathlib import Path

import pytest

import evalkit as ek
from evalkit import shipped
from evalkit.grade import Grade, Status
from evalkit.outcomes import Outcome, outcomes, show_command
from evalkit.results import PlannedScenario, TrialRecord
from evalkit.testing import assert_passed


def _outcome(*statuses: Status, reason: str = "why") -> Outcome:
    records = tuple(
        TrialRecord("a", trial, status, "" if status == "passed" else "grader_failed", reason)
        for trial, status in enumerate(statuses)
    )
    return Outcome(PlannedScenario("a", len(records)), records)


@pytest.mark.parametrize(
    ("statuses", "status", "headline", "rate"),
    [
        (("passed",), "passed", "", 1.0),
        (("failed",), "failed", "why", 0.0),
        (("incomplete",), "incomplete", "why", None),
        (("passed", "failed"), "failed", "1 of 2 trials failed: why", 0.5),
        (("passed", "incomplete"), "incomplete", "1 of 2 trials incomplete: why", 1.0),
        (
            ("incomplete", "failed", "passed"),
            "failed",
            "1 of 3 trials failed, 1 incomplete: why",
            0.5,
        ),
        ((), "incomplete", "it has no trial", None),
    ],
    ids=["passed", "failed", "incomplete", "half", "half-measured", "all-three", "none"],
)
def test_failed_beats_incomplete_beats_passed(
    statuses: tuple[Status, ...], status: Status, headline: str, rate: float | None
) -> None:
    """And a rate is over what was measured only."""
    outcome = _outcome(*statuses)
    assert (outcome.status, outcome.headline, outcome.rate) == (status, headline, rate)


@pytest.mark.parametrize("reason", ["", "  \n"], ids=["empty", "blank"])
def test_what_is_not_passed_has_a_reason(reason: str) -> None:
    """Even where nobody wrote one."""
    outcome = _outcome("failed", reason=reason)
    assert outcome.headline == outcome.reasons == "a grader found a fault"


def test_duration_is_unknown_where_one_is() -> None:
    """A sum that leaves something out is none."""
    records = (TrialRecord("a", 0, "passed", duration_s=1.0), TrialRecord("a", 1, "passed"))
    assert Outcome(PlannedScenario("a", 2), records).duration_s is None


def test_every_grader_is_named_once() -> None:
    """The trial's reason is the deciding grader's; it is not said twice."""
    grades = (
        Grade("path", 1.0),
        Grade("truth", 0.0, reason="no"),
        Grade("answer", None, reason="?"),
    )
    record = TrialRecord("a", 0, "failed", "grader_failed", "truth: no", grades=grades)
    assert Outcome(PlannedScenario("a", 1), (record,)).reasons == "truth: no\nanswer: ?"


def test_assert_passed_says_why(tmp_path: Path) -> None:
    """A test of one's own shows each scenario that is not passed, with reasons."""
    run = ek.run_suite(
        shipped.suite("travel"),
        agent="evalkit.examples.travel_rules:wrong_id",
        lane="live",
        out=tmp_path,
        progress=False,
    )
    assert_passed(run, "weather-only")
    with pytest.raises(AssertionError, match="1 of 5 scenarios are not passed") as caught:
        assert_passed(run)
    bad = next(each for each in outcomes(run) if each.status == "failed")
    assert "weather-gate-book failed: truth: missing/incorrect: book" in str(caught.value)
    assert show_command(run, bad) in str(caught.value)
    with pytest.raises(ek.errors.UsageError, match="did you mean 'weather-only'"):
        assert_passed(run, "weather-onyl")
