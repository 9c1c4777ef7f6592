"""State: what the agent told of itself, by dotted paths."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, graders_for
from evalkit.suite import Scenario
from evalkit.trace import Trace, Turn

TOLD = {
    "onboarding": {"stage": "done", "steps": ["name", {"at": 3}], "a.b": {"c": 1}},
    "n": 2,
    "none": None,
}


def graded(
    paths: Any, *told: Any, in_turn: int | None = None, n_seen: int = 2, **more: Any
) -> Grade:
    """Grade two turns; each of ``told`` is the state after one, or a problem as text."""
    turns: list[dict[str, Any]] = [{"user": "x"}, {"user": "y"}]
    expect = {"expect": {"state": paths}}
    if in_turn is not None:
        turns[in_turn] |= expect
    data = {"id": "s", "turns": turns, **(expect if in_turn is None else {})}
    events = [
        {"turn": turn, **({"problem": one} if isinstance(one, str) else {"state": one})}
        for turn, one in enumerate(told)
    ]
    trace = Trace(tuple(Turn("x", ("ok",)) for _ in range(n_seen)))
    outcome = {"state": events} if events else {}
    return find_grader("state")(Trial(Scenario.model_validate(data), trace, outcome, **more))


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("onboarding.stage", "done"),
        ("onboarding.steps.0", "name"),
        ("onboarding.steps.1.at", {"$gt": 2}),
        ("onboarding.a.b.c", 1),
        ("onboarding.steps", {"$len": 2}),
        ("none", None),
        ("gone", {"$optional": {"$not": {"$any": True}}}),
    ],
)
def test_paths_lead_through_objects_and_lists(path: str, pattern: Any) -> None:
    """A key may have dots in it; what may be missing may be."""
    assert graded({path: pattern}, {}, TOLD).passed


@pytest.mark.parametrize(
    ("path", "pattern", "reason"),
    [
        ("onboarding.stage", "name", "state: onboarding.stage: expected 'name', got 'done'"),
        ("n", "2", "state: n: expected '2', got 2"),
        ("onboarding.stag", 1, "onboarding has no 'stag': Did you mean `stage`?"),
        ("zzz", 1, "the state has no 'zzz': it has onboarding, n, none"),
        ("onboarding.steps.7", 1, "onboarding.steps is a list of 2, which has no '7'"),
        ("n.x", 1, "n is 2, which has no 'x'"),
    ],
)
def test_otherwise_it_fails_and_says_where(path: str, pattern: Any, reason: str) -> None:
    """With what was expected, what is there, and what was perhaps meant."""
    grade = graded({path: pattern}, {}, TOLD)
    assert (grade.status, reason in grade.reason) == ("failed", True), grade.reason


def test_a_turn_is_judged_by_its_own_state() -> None:
    """The scenario by the last one."""
    assert graded({"n": 1}, {"n": 1}, {"n": 2}, in_turn=0).passed
    assert graded({"n": 2}, {"n": 1}, {"n": 2}).passed
    cut = graded({"n": 2}, {"n": 1}, in_turn=0, n_seen=2, whole=False)
    assert cut.reason == "turn 1: state: n: expected 2, got 1"


def test_what_the_agent_could_not_tell_is_its_fault() -> None:
    """It raised, or gave no JSON."""
    grade = graded({"n": 1}, {"n": 1}, "state() raised KeyError: 'x'")
    assert (grade.status, grade.reason) == ("failed", "state() raised KeyError: 'x'")


def test_agent_that_cannot_be_asked_leaves_a_gap() -> None:
    """Nothing is wrong with what it did, and nothing is known."""
    grade = graded({"n": 1})
    assert grade.status == "incomplete"
    assert "has no state()" in grade.reason
    assert "nobody asked" in graded({"n": 1}, lane="imported").reason
    assert "after this turn" in graded({"n": 1}, {"n": 1}, in_turn=1).reason
    assert graded({"n": 1}, n_seen=1, whole=False).reason == "the trial did not run to its end"


def test_it_applies_where_a_state_is_expected() -> None:
    """And nowhere else."""
    asked = {"id": "s", "input": "x", "expect": {"state": {"a": 1}}}
    for keys, is_graded in ((asked, True), ({"id": "s", "input": "x"}, False)):
        trial = Trial(Scenario.model_validate(keys), Trace())
        assert ("state" in graders_for(trial)) is is_graded
