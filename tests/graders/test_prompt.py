"""Prompt: what the model must be sent, and what it must not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, graders_for
from evalkit.graders.prompt import texts_of
from evalkit.ledger import JSON
from evalkit.suite import Scenario
from evalkit.trace import ModelCall, Trace, Turn

PROMPT = {
    "system": [{"type": "text", "text": "You are brief."}],
    "tools": [{"name": "book", "description": "Book a flight.", "input_schema": {"kind": {}}}],
    "messages": [
        {"role": "user", "content": 'Say "hi"\nand go.'},
        {"role": "user", "content": [{"type": "tool_result", "content": '{"note": "Zo\\u00eb"}'}]},
    ],
    "max_tokens": 1024,
}


def prompt(
    scenario: dict[str, Any],
    *calls: ModelCall,
    n_turns: int = 1,
    models_observed: bool = True,
    whole: bool = True,
    counted: tuple[tuple[str, int], ...] = (),
) -> Grade:
    """Grade what a model was sent."""
    said = {"input": "Hi."} if "turns" not in scenario else {}
    checked = Scenario.model_validate({"id": "s", **said, **scenario})
    trace = Trace(
        turns=(Turn("", ("x",)),) * n_turns, model_calls=calls, models_observed=models_observed
    )
    sides: Any = [{"turn": turn, "body": {"messages": [text]}} for text, turn in counted]
    outcome = {"counted_prompts": sides} if sides else {}
    return find_grader("prompt")(Trial(checked, trace, outcome, lane="contract", whole=whole))


def wants(**checks: Any) -> dict[str, Any]:
    """Expect something of prompts."""
    return {"expect": {"prompt": checks}}


def sent(text: JSON, turn: int = 0) -> ModelCall:
    """Make a call of the model."""
    return ModelCall(prompt=text, turn=turn)


@pytest.mark.parametrize(
    "checks",
    [
        {"contains": ["YOU ARE BRIEF", "book a flight", "book"]},
        {"contains": 'say "hi"\nand'},
        {"contains": "Zoë"},
        {"contains": '{"note"'},
        {"regex": ["^You are", "(?m)^and go"]},
        {"equals": "You are brief."},
        {"not_contains": ["input_schema", "kind", "1024"]},
    ],
)
def test_prompt_is_searched_text_by_text_as_it_was_written(checks: Any) -> None:
    """System prompt, tools, messages and results count, as written; keys do not."""
    grade = prompt(wants(**checks), sent(PROMPT))
    assert (grade.value, grade.reason) == (1.0, "what the model was sent is as expected")


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ({"contains": ["brief", "verbose"]}, "what the model was sent does not contain 'verbose'"),
        ({"contains": "brief. Book"}, "does not contain 'brief. Book'"),
        ({"not_contains": "zoë"}, "what the model was sent contains 'zoë'"),
        ({"regex": "you are"}, "does not match /you are/"),
        ({"equals": "You are brief"}, "is not 'You are brief'"),
    ],
)
def test_prompt_that_misses_fails_and_quotes_what(checks: Any, reason: str) -> None:
    """A check that does not hold fails the trial, and the reason quotes it."""
    grade = prompt(wants(**checks), sent(PROMPT))
    assert (grade.status, grade.value) == ("failed", 0.0)
    assert reason in grade.reason


@pytest.mark.parametrize("banned", ["ZOË", {"contains": "zoë"}, {"regex": "Zo."}, ["x1", "zoë"]])
def test_forbidden_text_fails_in_any_prompt(banned: Any) -> None:
    """One call that was sent it is enough, and the reason quotes it."""
    grade = prompt({"forbid": {"prompt": banned}}, sent("hello"), sent(PROMPT))
    assert grade.status == "failed"
    assert "which is forbidden: " in grade.reason
    assert prompt({"forbid": {"prompt": banned}}, sent("hello")).passed


def test_expected_texts_may_stand_in_different_calls() -> None:
    """Each text must be somewhere in the prompts, not all in one."""
    assert prompt(wants(contains=["a", "b"]), sent("a"), sent("b")).passed


def test_model_that_was_never_called_was_sent_nothing() -> None:
    """What must be sent was not; what must not be was not either."""
    grade = prompt(wants(contains="x"))
    assert (grade.status, grade.reason) == (
        "failed",
        "what the model was sent does not contain 'x'; the model was never called",
    )
    assert prompt(wants(not_contains="x")).passed
    assert prompt({"forbid": {"prompt": "x"}}).passed


@pytest.mark.parametrize(
    "scenario", [wants(contains="x"), wants(not_contains="x"), {"forbid": {"prompt": "x"}}]
)
def test_prompts_that_nobody_saw_are_incomplete(scenario: Any) -> None:
    """Neither a pass nor a fault comes of what was not observed."""
    grade = prompt(scenario, models_observed=False)
    assert (grade.status, grade.reason) == (
        "incomplete", "nobody saw what the agent sent to its model",
    )  # fmt: skip
    lost = prompt(scenario, sent("hello"), ModelCall())
    assert (lost.status, lost.reason) == (
        "incomplete", "the prompt of 1 of 2 model call(s) was not recorded",
    )  # fmt: skip


def test_forbidden_text_that_was_seen_fails_whatever_else_was_not() -> None:
    """A fault decides, though some prompts are unknown."""
    grade = prompt({"forbid": {"prompt": "x"}}, sent("x"), ModelCall(), models_observed=False)
    assert grade.status == "failed"


@pytest.mark.parametrize(
    "scenario", [wants(not_contains="secret"), {"forbid": {"prompt": {"regex": "s.cret"}}}]
)
def test_text_that_was_sent_to_be_counted_has_left_too(scenario: Any) -> None:
    """What no prompt may say may not be in a request that only has tokens counted."""
    grade = prompt(scenario, sent("hello"), counted=(("the SECRET secret", 0),))
    assert grade.status == "failed"
    assert "what was sent to have its tokens counted" in grade.reason
    assert grade.evidence["n_model_calls"] == 1
    assert prompt(scenario, sent("hello"), counted=(("nothing", 0),)).passed


def test_text_that_was_only_counted_meets_no_expectation() -> None:
    """The model was not sent it."""
    assert prompt(wants(contains="x"), sent("y"), counted=(("x", 0),)).status == "failed"


def test_text_that_was_counted_belongs_to_its_turn() -> None:
    """A turn's ban looks at its own requests."""
    scenario = {"turns": [{"user": "a"}, {"user": "b", "forbid": {"prompt": "x"}}]}
    assert prompt(scenario, counted=(("x", 0),), n_turns=2).passed
    assert prompt(scenario, counted=(("x", 1),), n_turns=2).turn == 1


def test_turn_looks_at_its_own_calls() -> None:
    """What a turn expects is held against the calls of that turn, and the grade names it."""
    scenario = {"turns": [{"user": "a"}, {"user": "b", **wants(contains="x")}]}
    assert prompt(scenario, sent("y"), sent("x", 1), n_turns=2).passed
    grade = prompt(scenario, sent("x"), sent("y", 1), n_turns=2)
    assert (grade.turn, grade.reason) == (
        1, "turn 2: what the model was sent does not contain 'x'",
    )  # fmt: skip
    never = prompt(scenario, sent("x"), n_turns=2)
    assert never.reason.endswith("the model was not called in this turn")
    assert prompt(scenario, sent("x"), n_turns=1).status == "incomplete"


@pytest.mark.parametrize(
    ("scenario", "status"),
    [
        (wants(contains="x"), "incomplete"),
        (wants(not_contains="hello"), "failed"),
        ({"forbid": {"prompt": "hello"}}, "failed"),
        ({"forbid": {"prompt": "x"}}, "incomplete"),
    ],
)
def test_trial_cut_short_fails_for_what_was_sent_only(scenario: Any, status: str) -> None:
    """What was not sent yet might have been."""
    assert prompt(scenario, sent("hello"), whole=False).status == status


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100)
@given(VALUES, st.text(min_size=1))
def test_texts_of_finds_a_text_wherever_it_lies(value: Any, text: str) -> None:
    """However deep a text is, and though the data is itself a text, it is given as it stands."""
    data = [value, {"a": [text]}]
    assert text in texts_of(data)
    assert text in texts_of([json.dumps(data)])


def test_texts_of_bears_any_depth() -> None:
    """An agent chooses how deep its prompt is."""
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    assert texts_of([deep]) == ("end",)
    assert len(texts_of(["[" * 100_000])) == 1


def test_prompt_applies_where_prompts_are_spoken_of() -> None:
    """The grader applies by itself exactly where it has something to check."""

    def applies(**keys: Any) -> bool:
        scenario = Scenario.model_validate({"id": "s", "turns": [{"user": "a"}], **keys})
        return "prompt" in graders_for(Trial(scenario, Trace()))

    assert applies(**wants(contains="x"))
    assert applies(forbid={"prompt": "x"})
    assert applies(turns=[{"user": "a", **wants(contains="x")}])
    assert not applies(expect={"reply": {"contains": "x"}}, forbid={"log": "x"})
    assert prompt({}).status == "incomplete"
    assert find_grader("prompt").version == "2"
