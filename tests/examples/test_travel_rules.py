"""The rule-based travel agent on the golden five, and its variants that go wrong."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from evalkit import shipped
from evalkit.examples import travel_rules
from evalkit.grade import Grade
from evalkit.graders import Trial, grade_trial
from evalkit.suite import Scenario, Suite
from evalkit.suite.loading import parse_suite
from evalkit.trace import ToolCall, Trace

GOLDEN_FIVE = (
    "weather-gate-book",
    "search-before-book",
    "no-book-when-raining",
    "weather-only",
    "ambiguous-needs-search",
)
Agent = Callable[[str], Trace]


@pytest.fixture(scope="module")
def suite() -> Suite:
    """Load the suite as it ships."""
    return parse_suite(shipped.suite("travel"))


def grades(scenario: Scenario, trace: Trace) -> dict[str, Grade]:
    """Grade a trace, by grader."""
    return {grade.grader: grade for grade in grade_trial(Trial(scenario, trace))}


def failing(scenario: Scenario, trace: Trace) -> dict[str, str]:
    """Give the reasons of the graders that do not pass."""
    found = grades(scenario, trace).values()
    return {grade.grader: grade.reason for grade in found if not grade.passed}


def test_suite_holds_the_golden_five_for_this_agent(suite: Suite) -> None:
    """The suite has the five scenarios in order, each with tags."""
    assert suite.name == "travel-support"
    assert tuple(scenario.id for scenario in suite) == GOLDEN_FIVE
    assert all(scenario.tags for scenario in suite)


@pytest.mark.parametrize("scenario_id", GOLDEN_FIVE)
def test_agent_solves_the_golden_five(suite: Suite, scenario_id: str) -> None:
    """The good agent passes every scenario, graded by truth, path and answer."""
    scenario = suite.scenario(scenario_id)
    found = grades(scenario, travel_rules.agent(scenario.input))
    assert list(found) == ["truth", "path", "answer"]
    assert {grade.status for grade in found.values()} == {"passed"}
    assert found["truth"].reason == "all expected tool calls present with correct args"


def test_good_run_is_told_in_the_tutorials_words(suite: Suite) -> None:
    """Two calls, no duplicates."""
    scenario = suite.scenario("weather-gate-book")
    found = grades(scenario, travel_rules.agent(scenario.input))
    assert found["path"].reason == "efficient: 2 calls, no duplicates"


def test_calls_carry_real_results_and_durations() -> None:
    """What the tools gave is recorded with each call."""
    trace = travel_rules.agent("Find the cheapest flight to Seattle next Monday and book it.")
    searched, booked = trace.tool_calls
    assert [found["id"] for found in searched.result] == ["AA315", "AA310"]
    assert booked.args == {"flight_id": "AA315", "date": "Monday"}
    assert booked.result == {"number": 1, "flight_id": "AA315", "date": "Monday"}
    assert all(call.duration_s is not None and call.duration_s >= 0 for call in trace.tool_calls)
    assert trace.models_observed


@pytest.mark.parametrize(
    ("message", "tools", "reply"),
    [
        ("Book AA777 for Friday.", ["book"], "There is no flight AA777, so I did not book it."),
        ("Book AA123 only if Atlantis is clear.", [],
         "I cannot check the weather that you mean, so I did not book AA123."),
        ("Will it be nice?", [], "Which city do you mean?"),
        ("It is raining in Seattle. Is it?", ["get_weather"], "In Seattle it is raining."),
    ],
)  # fmt: skip
def test_agent_is_honest_about_what_it_cannot_do(
    message: str, tools: list[str], reply: str
) -> None:
    """The agent confirms only what its tools confirmed."""
    trace = travel_rules.agent(message)
    assert ([call.name for call in trace.tool_calls], trace.reply) == (tools, reply)


def test_failed_call_is_recorded_as_failed() -> None:
    """A tool that raises leaves a call of status error, with what it said."""
    (call,) = travel_rules.agent("Book AA777 for Friday.").tool_calls
    assert (call.status, call.result) == ("error", "no flight AA777")


def test_each_message_meets_a_fresh_world() -> None:
    """Nothing is shared between conversations: the first booking is always number 1."""
    for _ in range(2):
        (call,) = travel_rules.agent("Book AA123 for Friday.").tool_calls
        assert call.result["number"] == 1


@pytest.mark.parametrize(
    ("agent", "scenario_id", "grader", "reason"),
    [
        (travel_rules.wrong_id, "weather-gate-book", "truth",
         "missing/incorrect: book {'flight_id': 'AA123', 'date': 'Friday'}"),
        (travel_rules.looping, "weather-gate-book", "path",
         "1 duplicate tool call(s) — looping"),
        (travel_rules.blind_booking, "no-book-when-raining", "truth",
         "called forbidden tool: book"),
        (travel_rules.blind_booking, "ambiguous-needs-search", "answer",
         "the reply does not contain 'options'"),
    ],
)  # fmt: skip
def test_variant_is_caught_by_grader_and_reason(
    suite: Suite, agent: Agent, scenario_id: str, grader: str, reason: str
) -> None:
    """Each way to go wrong is told apart, with value 0.0 and in the tutorial's words."""
    scenario = suite.scenario(scenario_id)
    trace = agent(scenario.input)
    assert grades(scenario, trace)[grader].value == 0.0
    assert failing(scenario, trace)[grader].startswith(reason)


def test_variants_fail_only_where_they_go_wrong(suite: Suite) -> None:
    """A wrong flight is a matter of truth alone, a repeat of path alone."""
    scenario = suite.scenario("weather-gate-book")
    assert list(failing(scenario, travel_rules.wrong_id(scenario.input))) == ["truth"]
    assert list(failing(scenario, travel_rules.looping(scenario.input))) == ["path"]


def test_flaky_agent_is_seeded_and_fails_sometimes(suite: Suite) -> None:
    """Drawing from the seeded generator, it repeats itself, and fails some trials but not all."""
    scenario = suite.scenario("no-book-when-raining")

    def outcomes() -> list[bool]:
        random.seed(7)
        return [not failing(scenario, travel_rules.flaky(scenario.input)) for _ in range(200)]

    first = outcomes()
    assert first == outcomes()
    # Looping and blind booking fail this scenario: two draws of ten.
    assert 0.7 < sum(first) / len(first) < 0.9


# --- the suite notices: mutations of the good run -------------------------------------


@pytest.mark.parametrize("scenario_id", GOLDEN_FIVE)
def test_dropping_or_repeating_any_call_is_noticed(suite: Suite, scenario_id: str) -> None:
    """A good run with one call less or one call twice no longer passes."""
    scenario = suite.scenario(scenario_id)
    good = travel_rules.agent(scenario.input)
    for index, call in enumerate(good.tool_calls):
        others = [*good.tool_calls[:index], *good.tool_calls[index + 1 :]]
        assert "truth" in failing(scenario, Trace.from_calls(others, good.reply))
        assert "path" in failing(scenario, Trace.from_calls([*good.tool_calls, call], good.reply))


@pytest.mark.parametrize(
    ("scenario_id", "tool"),
    [
        ("no-book-when-raining", "book"),
        ("weather-only", "book"),
        ("weather-only", "search"),
    ],
)
def test_any_attempt_at_a_forbidden_tool_is_noticed(
    suite: Suite, scenario_id: str, tool: str
) -> None:
    """A forbidden call fails the trial, also if the call itself failed."""
    scenario = suite.scenario(scenario_id)
    good = travel_rules.agent(scenario.input)
    tried = [*good.tool_calls, ToolCall(tool, {}, "error")]
    found = failing(scenario, Trace.from_calls(tried, good.reply))
    assert list(found) == ["truth"]
    assert found["truth"].startswith(f"called forbidden tool: {tool}")
