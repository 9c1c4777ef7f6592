"""Answer: what a reply must say, what it must not, and how many there are."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, graders_for
from evalkit.suite import Scenario
from evalkit.trace import Trace, Turn


def answer(scenario: dict[str, Any], *turns: tuple[str, ...], whole: bool = True) -> Grade:
    """Grade the replies of one or several turns."""
    said = {"input": "Hi."} if "turns" not in scenario else {}
    checked = Scenario.model_validate({"id": "s", **said, **scenario})
    trace = Trace(tuple(Turn("", replies) for replies in turns))
    return find_grader("answer")(Trial(checked, trace, whole=whole))


def reply(expect: dict[str, Any], text: str) -> Grade:
    """Grade a single reply."""
    return answer({"expect": {"reply": expect}}, (text,))


SCHEMA = {
    "type": "object",
    "required": ["fit"],
    "properties": {"fit": {"type": "integer", "maximum": 5}},
}


@pytest.mark.parametrize(
    ("expect", "text"),
    [
        ({"contains": "booked"}, "Booked AA123 for Friday."),
        ({"contains": ["booked", "FRIDAY"]}, "Booked AA123 for Friday."),
        ({"contains": "straße"}, "In der STRASSE"),
        ({"contains": "caf\u00e9"}, "Cafe\u0301 au lait"),
        ({"not_contains": ["error", "traceback"]}, "All is well."),
        ({"regex": r"AA\d+"}, "Booked AA123."),
        ({"regex": ["^Booked", r"\.$"]}, "Booked AA123."),
        ({"equals": "42"}, "42"),
        ({"one_of": ["yes", "no"]}, "no"),
        ({"max_chars": 5}, "12345"),
        ({"json_schema": SCHEMA}, '{"fit": 4}'),
        ({"json_schema": SCHEMA}, ' {"fit": 4.0}\n'),
    ],
)
def test_reply_as_expected_passes(expect: Any, text: str) -> None:
    """A reply that is as expected passes."""
    grade = reply(expect, text)
    assert (grade.value, grade.reason) == (1.0, "the reply is as expected")


@pytest.mark.parametrize(
    ("expect", "text", "reason"),
    [
        ({"contains": "booked"}, "Sorry.", "does not contain 'booked'; it reads 'Sorry.'"),
        ({"contains": ["a", "x"]}, "abc", "the reply does not contain 'x'; it reads 'abc'"),
        ({"contains": "booked"}, "", "does not contain 'booked'; it is empty"),
        ({"not_contains": "error"}, "An ERROR!", "contains 'error'; it reads 'An ERROR!'"),
        ({"not_contains": ["x", "b"]}, "abc", "the reply contains 'b'"),
        ({"regex": r"AA\d+"}, "aa123", r"does not match /AA\d+/"),
        ({"regex": ["a", "z"]}, "abc", "does not match /z/"),
        ({"equals": "42"}, "42 ", "is not '42'; it reads '42 '"),
        ({"equals": "Yes"}, "yes", "is not 'Yes'"),
        ({"one_of": ["yes", "no"]}, "No", "is none of ['yes', 'no']; it reads 'No'"),
        ({"max_chars": 5}, "123456", "has 6 characters, at most 5 are allowed"),
        ({"json_schema": SCHEMA}, "fit: 4", "is no JSON: "),
        ({"json_schema": SCHEMA}, '```json\n{"fit": 4}\n```', "(it stands in a Markdown fence)"),
        ({"json_schema": SCHEMA}, '{"fit": "4"}', "breaks the JSON Schema at $.fit: '4' is not"),
        ({"json_schema": SCHEMA}, '{"fit": 6}', "6 is greater than the maximum of 5"),
        ({"json_schema": SCHEMA}, "{}", "'fit' is a required property"),
        ({"json_schema": {"type": "number"}}, "NaN", "NaN is no JSON"),
        ({"json_schema": {}}, "[" * 100_000, "is no JSON"),
    ],
)
def test_reply_that_misses_fails_and_says_what(expect: Any, text: str, reason: str) -> None:
    """Each check fails what it should, quoting what was missing and what was there."""
    grade = reply(expect, text)
    assert (grade.value, grade.status) == (0.0, "failed")
    assert reason in grade.reason


def test_every_miss_is_in_the_one_reason() -> None:
    """One grade names all that is wrong with a reply."""
    grade = reply({"contains": "booked", "not_contains": "sorry", "max_chars": 3}, "Sorry.")
    assert grade.reason == (
        "the reply does not contain 'booked', contains 'sorry', "
        "has 6 characters, at most 3 are allowed; it reads 'Sorry.'"
    )
    assert len(grade.evidence["faults"][0]["misses"]) == 3


def test_long_reply_is_clipped_in_the_reason() -> None:
    """A reason stays readable whatever the agent wrote."""
    grade = reply({"contains": "booked"}, "x" * 1_000_000)
    assert len(grade.reason) < 300
    assert len(grade.evidence["reply"]) == 1000


def test_reply_with_odd_characters_is_quoted_safely() -> None:
    """Control characters and lone surrogates reach the reason escaped."""
    grade = reply({"contains": "booked"}, "a\x00\n\ud800")
    assert grade.reason.isprintable()
    grade.reason.encode()


def test_schema_that_is_none_is_incomplete() -> None:
    """A broken schema is the suite's fault, not the agent's."""
    grade = reply({"json_schema": {"type": "nonsense"}}, "{}")
    assert (grade.status, grade.reason_code) == ("incomplete", "grader_raised")


texts = st.text(max_size=12)


@settings(deadline=None, max_examples=100)
@given(texts, st.text(min_size=1, max_size=4), texts)
def test_contains_finds_a_text_in_any_case_and_composition(
    before: str, text: str, after: str
) -> None:
    """A text is found upper-cased, and `contains` and `not_contains` never both hold."""
    said = f"{before} {text.upper()} {after}"
    # Upper case may not lead back ("ŉ" becomes two letters); then nothing is promised.
    if text.upper().casefold() == text.casefold():
        assert reply({"contains": text}, said).passed
    contains, lacks = (reply({key: text}, said).passed for key in ("contains", "not_contains"))
    assert contains is not lacks
    decomposed = unicodedata.normalize("NFD", said)
    assert reply({"contains": text}, decomposed).passed is contains


@settings(deadline=None, max_examples=50)
@given(texts)
def test_equals_and_one_of_accept_only_the_text_itself(text: str) -> None:
    """Exact checks take the text as it stands, and nothing longer."""
    assert reply({"equals": text}, text).passed
    assert not reply({"equals": text}, text + "x").passed
    if text:
        assert reply({"one_of": [text]}, text).passed
        assert not reply({"one_of": [text]}, text + "x").passed


@settings(deadline=None, max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    )
)
def test_json_schema_const_accepts_exactly_its_value(value: Any) -> None:
    """Any JSON value passes the schema that names it, and fails the one that refuses it."""
    assert reply({"json_schema": {"const": value}}, json.dumps(value)).passed
    assert not reply({"json_schema": {"not": {"const": value}}}, json.dumps(value)).passed


# --- which reply, and how many -----------------------------------------------------


def two_turns(first: dict[str, Any], second: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Make a scenario of two turns."""
    return {"turns": [{"user": "a", **first}, {"user": "b", **second}], **keys}


WANTS_X: dict[str, Any] = {"expect": {"reply": {"contains": "x"}}}
NOT_X: dict[str, Any] = {"forbid": {"reply": "x"}}


def test_scenario_looks_at_the_last_reply() -> None:
    """What the scenario expects is said of the last reply of all."""
    assert answer(two_turns({}, {}, **WANTS_X), ("a",), ("b", "x")).passed
    assert not answer(two_turns({}, {}, **WANTS_X), ("x",), ("x", "b")).passed


def test_scenario_looks_past_a_silent_turn() -> None:
    """The last reply may have come before the last turn."""
    assert answer(two_turns({}, {}, **WANTS_X), ("x",), ()).passed


def test_turn_looks_at_its_own_last_reply_and_is_named() -> None:
    """What a turn expects is said of its last reply, and the grade names the turn."""
    assert answer(two_turns(WANTS_X, {}), ("a", "x"), ("b",)).passed
    grade = answer(two_turns({}, WANTS_X), ("x",), ("b",))
    assert (grade.turn, grade.reason) == (
        1, "turn 2: the reply does not contain 'x'; it reads 'b'",
    )  # fmt: skip


def test_misses_in_several_turns_name_each() -> None:
    """Where several turns miss, the grade is of the whole trial and the reason names each."""
    grade = answer(two_turns(WANTS_X, WANTS_X), ("a",), ("b",))
    assert grade.turn is None
    assert "turn 1: the reply" in grade.reason
    assert "turn 2: the reply" in grade.reason


@pytest.mark.parametrize("expect", [{"contains": "x"}, {"not_contains": "x"}, {"max_chars": 9}])
def test_no_reply_fails_whatever_is_expected_of_it(expect: Any) -> None:
    """Silence does not avoid a forbidden word: there is no reply to judge."""
    grade = answer({"expect": {"reply": expect}}, ())
    assert (grade.status, grade.reason) == ("failed", "there was no reply")


@pytest.mark.parametrize(
    ("count", "n", "reason"),
    [
        (1, 1, ""),
        (1, 2, "2 replies, expected 1"),
        (0, 0, ""),
        (0, 1, "1 replies, expected 0"),
        (2, 1, "1 replies, expected 2"),
        ({"min": 1, "max": 2}, 3, "3 replies, expected 1 to 2"),
        ({"min": 2}, 1, "1 replies, expected at least 2"),
        ({"min": 2}, 7, ""),
    ],
)
def test_replies_are_counted(count: Any, n: int, reason: str) -> None:
    """`replies` is how many came, of the scenario or of a turn."""
    grade = answer({"expect": {"replies": count}}, ("x",) * n)
    assert (grade.status, grade.reason) == (
        ("failed", reason) if reason else ("passed", "the reply is as expected")
    )
    turn = answer(two_turns({}, {"expect": {"replies": count}}), ("y",), ("x",) * n)
    assert turn.passed is not bool(reason)


@pytest.mark.parametrize("forbidden", ["x", ["z", "X"], {"regex": "x+"}, {"contains": "x"}])
def test_forbidden_text_fails_in_any_reply(forbidden: Any) -> None:
    """A forbidden text may be in no reply, not only not in the last."""
    scenario = {"forbid": {"reply": forbidden}}
    assert answer(scenario, ("a", "b")).passed
    grade = answer(scenario, ("axx", "b"))
    assert grade.status == "failed"
    assert "reply 1 " in grade.reason
    assert "is forbidden" in grade.reason


def test_forbidden_text_of_a_turn_binds_that_turn_only() -> None:
    """What a turn forbids, others may say."""
    assert answer(two_turns({}, NOT_X), ("x",), ("b",)).passed
    assert answer(two_turns({}, NOT_X), ("a",), ("x",)).turn == 1


def test_turn_that_the_trace_lacks_is_incomplete() -> None:
    """What was expected of a turn that nobody recorded was not measured."""
    grade = answer(two_turns({}, WANTS_X), ("x",))
    assert (grade.status, grade.reason) == ("incomplete", "turn 2: the trace has no turn 2")


@pytest.mark.parametrize(
    ("scenario", "turns", "status"),
    [
        (two_turns(WANTS_X, {}), [("a",), ()], "failed"),
        (two_turns(WANTS_X, {}), [("x",), ()], "incomplete"),
        (two_turns({}, WANTS_X), [("x",), ("a",)], "incomplete"),
        (two_turns({}, WANTS_X), [("x",)], "incomplete"),
        (two_turns({}, {}, **WANTS_X), [("a",), ("a",)], "incomplete"),
        (two_turns({}, {}, **NOT_X), [("x",)], "failed"),
        (two_turns({}, {}, expect={"replies": 1}), [("a",), ("b",)], "failed"),
        (two_turns({}, {}, expect={"replies": 3}), [("a",), ("b",)], "incomplete"),
    ],
)
def test_trial_cut_short_fails_for_what_is_certain_only(
    scenario: Any, turns: Any, status: str
) -> None:
    """Finished turns, forbidden texts and too many replies are certain; the rest is open."""
    assert answer(scenario, *turns, whole=False).status == status


def test_answer_applies_where_replies_are_spoken_of() -> None:
    """The grader applies by itself exactly where it has something to check."""

    def applies(**keys: Any) -> bool:
        scenario = Scenario.model_validate({"id": "s", "turns": [{"user": "a"}], **keys})
        return "answer" in graders_for(Trial(scenario, Trace()))

    assert applies(**WANTS_X)
    assert applies(**NOT_X)
    assert applies(expect={"replies": 1})
    assert applies(turns=[{"user": "a", **WANTS_X}])
    assert not applies(expect={"tools": []}, forbid={"tools": ["a"]})


def test_answer_named_without_anything_to_check_is_incomplete() -> None:
    """A grader that is named but has nothing to check does not pass."""
    assert answer({}, ("x",)).status == "incomplete"
