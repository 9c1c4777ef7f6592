"""Every operator: noticed by a suite that asks, a hole in one that does not, closed as told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evalkit.mutation import KINDS, OPERATORS
from evalkit.trace import ToolCall

JSON = Any
Make = Any

REPLY = "I found a flight. Booked AA315 for next Monday."
LEAKS = ("leak-canary", "leak-canary-base64")
NAMES = tuple(one.name for one in OPERATORS if one.name not in LEAKS)

LOOSE: JSON = {
    "expect": {"replies": {"min": 1}, "path": False},
    # A ban of one flight says nothing of the others.
    "forbid": {"tools": [{"cancel": {"flight_id": "AA1", "reason": {"$regex": "^never$"}}}]},
}
TIGHT_CALLS: JSON = [
    {
        "tool": "search",
        "args": {
            "destination": "Seattle",
            "max_price": 200,
            "direct": True,
            "sort": ["price", "time"],
        },
        "extra_args": "forbid",
    },
    {
        "tool": "book",
        "args": {"flight_id": "AA315", "date": "next Monday"},
        "extra_args": "forbid",
    },
]


def tight(calls: list[JSON], reply: str) -> JSON:
    """Expect everything that was done, and nothing else."""
    return {
        "tools": {"order": "in_order", "extra_calls": "forbid", "calls": calls},
        "reply": {"equals": reply},
    }


def one_turn(make: Make, trace: Make, calls: Any, *, is_tight: bool) -> Any:
    """Make a trial of one turn."""
    body = {
        "expect": tight(TIGHT_CALLS, REPLY) | {"path": {"max_model_calls": 3}},
        "forbid": {"tools": ["cancel"]},
    }
    scenario = {"id": "one", "input": "Go on.", **(body if is_tight else LOOSE)}
    return make(scenario, trace(calls, REPLY))


def two_turns(make: Make, trace: Make, calls: Any, *, is_tight: bool) -> Any:
    """Make a trial of two turns, in which the second one acts."""
    from dataclasses import replace

    weather = ToolCall("get_weather", {"city": "Seattle"}, asked_by=0)
    later = [replace(call, turn=1) for call in calls]
    hello = "It is dry in Seattle."
    turns: list[JSON] = [{"user": "Is it dry?"}, {"user": "Then book."}]
    if is_tight:
        turns[0]["expect"] = tight([{"get_weather": {"city": "Seattle"}}], hello)
        turns[1]["expect"] = tight(TIGHT_CALLS, REPLY)
        scenario = {
            "expect": {"path": {"max_model_calls": 3}},
            "forbid": {"tools": ["cancel"]},
        }
    else:
        scenario = LOOSE
    return make({"id": "two", "turns": turns, **scenario}, trace([weather, *later], hello, REPLY))


SHAPES = pytest.mark.parametrize("shape", [one_turn, two_turns])


def applies(name: str, shape: Any) -> bool:
    """Say whether an operator applies to a trial of this shape."""
    return name != "swap-replies" or shape is two_turns


@SHAPES
@pytest.mark.parametrize("name", NAMES)
def test_operator_is_noticed_by_a_suite_that_asks(
    name: str, shape: Any, case: Make, trace_of_calls: Make, calls: Any
) -> None:
    """A suite that expects everything notices every mutant of every operator."""
    results = shape(case, trace_of_calls, calls, is_tight=True).results(name)
    if not applies(name, shape):
        assert not results
        return
    judged = [result for result in results if result.status != "excluded"]
    assert judged or name == "unexpected-tool"
    assert {result.status for result in judged} <= {"killed"}, judged
    assert all(result.reason for result in judged)


@SHAPES
@pytest.mark.parametrize("name", NAMES)
def test_operator_survives_a_suite_that_does_not_ask(
    name: str, shape: Any, case: Make, trace_of_calls: Make, calls: Any, tmp_path: Path
) -> None:
    """A suite that asks for nothing has a hole, and the suggested text closes it for good."""
    trial = shape(case, trace_of_calls, calls, is_tight=False)
    judged = trial.judged(name)
    if not applies(name, shape):
        assert not judged
        return
    survived = [(made, result) for made, result in judged if result.status == "survived"]
    assert survived
    for made, result in survived:
        assert result.suggestion is not None, result
        assert trial.is_closed_by(result.suggestion, made.mutant.trace, tmp_path), result


@pytest.mark.parametrize("name", ["unexpected-tool"])
def test_unexpected_tool_is_noticed_where_extra_calls_are_forbidden(
    name: str, case: Make, trace_of_calls: Make
) -> None:
    """Other tools of the agent are known from what it declared to its model."""
    scenario = {"id": "a", "input": "x", "expect": {"tools": {
        "extra_calls": "forbid", "calls": [{"get_weather": {}}]}}}  # fmt: skip
    trial = case(scenario, trace_of_calls([ToolCall("get_weather", {"city": "Rome"})], "Dry."))
    results = trial.results(name)
    assert [result.status for result in results] == ["killed"] * 3
    assert {result.what.split()[2] for result in results} == {"search", "book", "cancel"}


CANARY = {"name": "mail", "value": "canary@example.test"}
UNSEEN = ["file", "http", "trace", "log", "error", "model_prompt"]


@pytest.mark.parametrize(
    ("allow", "status"), [([], "killed"), (["reply"], "excluded")], ids=["nowhere", "in replies"]
)
@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_noticed_unless_the_suite_allows_it(
    name: str, allow: list[str], status: str, case: Make, trace_of_calls: Make
) -> None:
    """A canary in a reply is found in both encodings; a report never says its value."""
    scenario = {
        "id": "a",
        "input": "x",
        "canaries": [CANARY | {"allow": allow}],
        "graders": [{"canary": {"unseen": UNSEEN}}],
        "expect": {"replies": 1},
    }
    (result,) = case(scenario, trace_of_calls([], "Hello there.")).results(name)
    assert result.status == status
    assert "example.test" not in str(result.to_json())
    assert "mail" in result.what


def test_leak_needs_a_canary(case: Make, trace_of_calls: Make) -> None:
    """Without canaries there is nothing to leak."""
    scenario = {"id": "a", "input": "x", "expect": {"replies": 1}}
    assert not case(scenario, trace_of_calls([], "Hello there.")).results(*LEAKS)


def test_a_canary_in_arguments_is_named_only(case: Make, trace_of_calls: Make) -> None:
    """What was changed and what would notice it are told without the canary's value."""
    scenario = {
        "id": "a",
        "input": "x",
        "canaries": [CANARY | {"allow": ["tool_args"]}],
        "graders": [{"canary": {"unseen": UNSEEN}}],
        "expect": {"replies": 1},
    }
    trace = trace_of_calls([ToolCall("mail", {"to": CANARY["value"], "day": "Friday"})], "Sent it.")
    results = case(scenario, trace).results("drop-call", "drop-argument", "change-text")
    assert "survived" in {result.status for result in results}
    assert "example.test" not in str([result.to_json() for result in results])
    assert "[canary mail]" in str([result.to_json() for result in results])


def test_records_of_operators_are_complete() -> None:
    """Each operator has a name of its own, a kind, what it does, where, and what would notice."""
    assert len({one.name for one in OPERATORS}) == len(OPERATORS) == 23
    assert {one.kind for one in OPERATORS} == set(KINDS)
    assert all(one.does and one.applies and one.closers for one in OPERATORS)


# --- what nobody should notice ------------------------------------------------------


def reasons(trial: Any, name: str) -> Iterator[str]:
    """Give why mutants of one operator are excluded."""
    return (one.reason for one in trial.results(name) if one.status == "excluded")


EXPECTS: JSON = {"id": "a", "input": "x", "expect": {"replies": 1}}


@pytest.mark.parametrize(
    ("name", "made", "expect", "reason"),
    [
        ("swap-calls", ["a", "a"], {"path": False}, "the two calls are equal"),
        ("repeat-call", [ToolCall("a", status="error")], {}, "trying again what failed"),
        ("repeat-call", ["a"], {"path": {"poll": ["a"]}}, "the suite lets a be polled"),
        (
            "repeat-call", ["a"],
            {"tools": [{"tool": "a", "times": {"max": 3}}]}, "expects further calls of a",
        ),
        (
            "unexpected-tool", ["cancel"],
            {"tools": {"extra_calls": {"allow": ["search", "book", "get_weather"]},
                       "calls": ["cancel"]}},
            "the suite allows search besides",
        ),
        ("swap-calls", [ToolCall("a", asked_by=1), ToolCall("b", asked_by=1)], {}, "both at once"),
        (
            "loop",
            [ToolCall("a", status="error"), ToolCall("b", status="timeout")],
            {}, "trying again what failed",
        ),
    ],
    ids=["equal", "retry", "polled", "times", "allowed", "parallel", "failed-loop"],
)  # fmt: skip
def test_what_nobody_should_notice_is_excluded_with_its_reason(
    name: str, made: list[Any], expect: JSON, reason: str, case: Make, trace_of_calls: Make
) -> None:
    """A mutant that is no mistake, or that the suite allows, does not count."""
    scenario = {"id": "a", "input": "x", "expect": {"replies": 1} | expect}
    made = [ToolCall(one) if isinstance(one, str) else one for one in made]
    found = list(reasons(case(scenario, trace_of_calls(made, "Fine.")), name))
    assert found
    assert reason in found[0]


def test_more_model_calls_are_the_contract_lanes_own_business(
    case: Make, trace_of_calls: Make
) -> None:
    """There an unscripted request fails whatever a suite expects; elsewhere it is a hole."""
    trace = trace_of_calls([], "Fine.")
    (contract,) = case(EXPECTS, trace, lane="contract").results("extra-model-calls")
    (live,) = case(EXPECTS, trace).results("extra-model-calls")
    assert contract.status == "excluded"
    assert "contract lane refuses" in contract.reason
    assert live.suggestion is not None
    assert live.suggestion.text == "path: {max_model_calls: 3}"


def test_an_order_that_is_not_asked_for_is_said_to_be_so(case: Make, trace_of_calls: Make) -> None:
    """Swapped calls count as a survivor where the suite declares no order, with the reason."""
    scenario = EXPECTS | {"expect": {"tools": ["search", "book"]}}
    trace = trace_of_calls([ToolCall("search"), ToolCall("book")], "Fine.")
    (result,) = case(scenario, trace).results("swap-calls")
    assert (result.status, result.reason) == ("survived", "order is not asked for")
    assert result.suggestion is not None
    assert "order: in_order" in result.suggestion.text


def test_mutants_that_change_nothing_or_the_same_are_excluded(
    case: Make, trace_of_calls: Make
) -> None:
    """A trace equal to the original, or to another mutant, is no mutant of its own."""
    scenario = EXPECTS | {"expect": {"path": False, "replies": 1}}
    twice = [ToolCall("a", {"id": "x1"}), ToolCall("a", {"id": "x1"})]
    results = case(scenario, trace_of_calls(twice, "Fine.")).results("drop-call")
    assert [one.status for one in results] == ["survived", "excluded"]
    assert results[1].reason == "drop-call makes the same mutant"


def test_both_sides_of_a_watched_tool_change_alike(case: Make, trace_of_calls: Make) -> None:
    """Where tools tell apart what ran, the suite must notice, not a contradiction inside."""
    call = ToolCall("book", {"flight_id": "AA1"})
    trace = trace_of_calls([call], "Fine.", asked_calls=(call,), watched_tools=("book",))
    results = case(EXPECTS, trace).results("drop-call", "change-id", "failed-call", "repeat-call")
    by_name = {one.operator: one for one in results}
    assert by_name["drop-call"].status == by_name["change-id"].status == "survived"
    assert by_name["failed-call"].status == "survived"
    assert by_name["repeat-call"].reason == "path: 1 duplicate tool call(s) — looping"


def test_incomplete_regrades_are_neither_noticed_nor_survivors(
    case: Make, trace_of_calls: Make
) -> None:
    """A grader that cannot tell leaves the mutant incomplete, with its reason."""
    from evalkit.graders import add_grader
    from evalkit.graders.base import Grader

    add_grader(Grader("first_word", lambda trial: trial.reply.split()[0] == "Fine", "1"))
    trial = case(EXPECTS | {"graders": ["first_word"]}, trace_of_calls([], "Fine thing."))
    (result,) = trial.results("empty-reply")
    assert result.status == "incomplete"
    assert "IndexError" in result.reason


# --- the property -------------------------------------------------------------------

TEXTS = st.sampled_from(
    [
        "Denver",
        "AA123",
        "next Friday",
        "2026-02-28",
        "note: {x}",
        "no",
        "12",
        "a\nb",
        "é ß",
        "{url}",
    ]
)
VALUES = st.recursive(
    TEXTS | st.integers(-5, 5) | st.booleans() | st.none() | st.floats(-2, 2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["x", "$ref", "on"]), inner, max_size=2)
    ),
    max_leaves=4,
)
MADE = st.builds(
    ToolCall,
    st.sampled_from(["search", "book", "tool"]),
    st.dictionaries(
        st.sampled_from(["flight_id", "date", "args", "n", "city"]), VALUES, max_size=3
    ),
    status=st.sampled_from(["ok", "ok", "ok", "error"]),
    turn=st.integers(0, 1),
    asked_by=st.none() | st.integers(0, 3),
)
REPLIES = st.lists(
    st.sampled_from(
        ["Booked", "did", "not", "book", "it", "is", "fine.", "AA123,", "{url}", "ß\n"]
    ),
    min_size=1,
    max_size=7,
).map(" ".join)
SAID = st.sampled_from(
    [
        {},
        {"tools": {"extra_calls": "free", "calls": []}},
        {"path": False},
        {"reply": {"max_chars": 500}},
        {"path": {"max_seconds": 5, "poll": ["search"]}},
    ]
)


@settings(
    deadline=None,
    max_examples=60,
    # Each example makes dozens of mutants; to shrink one takes minutes.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    made=st.lists(MADE, max_size=3),
    first=REPLIES,
    second=REPLIES,
    said=SAID,
    is_strict=st.booleans(),
    is_long=st.booleans(),
)
def test_every_suggestion_closes_its_hole(
    made: list[ToolCall],
    first: str,
    second: str,
    said: JSON,
    is_strict: bool,
    is_long: bool,
    case: Make,
    trace_of_calls: Make,
    tmp_path: Path,
) -> None:
    """Whatever a trial did, each survivor is closed by its suggestion, pasted into the file."""
    from dataclasses import replace

    from hypothesis import assume

    turns = [{"user": "a"}, {"user": "b"}] if is_long else [{"user": "a"}]
    calls = sorted((replace(c, turn=c.turn if is_long else 0) for c in made), key=lambda c: c.turn)
    scenario = {
        "id": "a",
        "vars": {"url": "https://example.test"},
        "turns": turns,
        "expect": {"replies": {"min": 1}} | said,
    }
    trace = trace_of_calls(calls, *([first, second] if is_long else [first]))
    trial = case(scenario, trace, defaults={"strict": is_strict})
    assume(trial.grading.ending_of(trial.trial()).status == "passed")
    for one, result in trial.judged():
        if result.status == "survived":
            assert result.suggestion is not None, result
            assert trial.is_closed_by(result.suggestion, one.mutant.trace, tmp_path), result
