"""Path: repeats, ratios, cycles and limits of a route."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, grade_trial
from evalkit.graders.repeats import MAX_ATTEMPTS, find_cycle, find_repeats, same_calls
from evalkit.suite import Scenario
from evalkit.trace import ModelCall, Span, ToolCall, Trace, Turn, Usage

LOOPING = "1 duplicate tool call(s) — looping"
WEATHER = ("get_weather", {"city": "Denver"})
BOOK = ("book", {"flight_id": "AA123", "date": "Friday"})


def a_scenario(**keys: Any) -> Scenario:
    """Make a scenario of one turn."""
    return Scenario.model_validate({"id": "s", "input": "Go.", **keys})


def journey(*turns: dict[str, Any], **keys: Any) -> Scenario:
    """Make a scenario of several turns, each with what it expects."""
    said = [{"user": f"turn {n}", **turn} for n, turn in enumerate(turns, start=1)]
    return Scenario.model_validate({"id": "s", "turns": said, **keys})


def path(trace: Trace, scenario: Scenario | None = None, **more: Any) -> Grade:
    """Grade a route."""
    return find_grader("path")(Trial(scenario or a_scenario(), trace, **more))


def calls(*made: Any) -> Trace:
    """Make the trace of these calls."""
    return Trace.from_calls(made, reply="Done.")


def searches(n: int) -> list[tuple[str, dict[str, int]]]:
    """Make calls that all differ."""
    return [("search", {"page": page}) for page in range(n)]


def limited(**limits: Any) -> Scenario:
    """Make a scenario with limits on its route."""
    return a_scenario(expect={"path": limits})


def models(*usages: Usage | None, observed: bool = True) -> Trace:
    """Make the trace of model calls with these usages."""
    made = tuple(ModelCall(usage=usage) for usage in usages)
    return Trace((Turn("Go.", ("Done.",)),), model_calls=made, models_observed=observed)


# --- the tutorial's words ------------------------------------------------------


def test_good_run_is_efficient() -> None:
    """A run that makes each call once passes, in the tutorial's words."""
    grade = path(calls(WEATHER, BOOK), a_scenario(expect={"tools": [{"book": {}}]}))
    assert (grade.value, grade.reason) == (1.0, "efficient: 2 calls, no duplicates")


def test_identical_repeat_is_looping() -> None:
    """The same call twice fails, in the tutorial's words."""
    grade = path(calls(WEATHER, WEATHER, BOOK))
    assert (grade.value, grade.status, grade.reason) == (0.0, "failed", LOOPING)


def test_more_than_twice_the_expected_calls_is_inefficient() -> None:
    """Seven calls for three expected ones fail, in the tutorial's words."""
    scenario = a_scenario(expect={"tools": ["search", "get_weather", "book"]})
    grade = path(calls(*searches(5), WEATHER, BOOK), scenario)
    assert (grade.value, grade.reason) == (0.0, "inefficient: 7 calls for a 3-call task")


def test_one_call_is_singular() -> None:
    """One call is one call."""
    assert path(calls(WEATHER)).reason == "efficient: 1 call, no duplicates"


# --- repeats ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "n_duplicates"),
    [
        ({"n": 1}, {"n": 1.0}, 1),
        ({"n": 1}, {"n": True}, 0),
        ({"n": 0}, {"n": False}, 0),
        ({"n": 1}, {"n": "1"}, 0),
        ({"n": None}, {}, 0),
        ({"n": 2**53}, {"n": 2**53 + 1}, 0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, 1),
        ({"a": [1, 2]}, {"a": [2, 1]}, 0),
        ({"a": [1, {"b": 1}]}, {"a": [1.0, {"b": 1.0}]}, 1),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": True}]}, 0),
        ({"n": float("nan")}, {"n": float("nan")}, 1),
        ({"city": "Denver"}, {"city": "denver"}, 0),
        ({}, {}, 1),
    ],
)
def test_repeat_is_told_by_json_types(one: Any, other: Any, n_duplicates: int) -> None:
    """Arguments compare as JSON: types matter, order of keys and spelling of numbers do not."""
    repeats = find_repeats([ToolCall("t", one), ToolCall("t", other)])
    assert len(repeats.duplicates) == n_duplicates


def test_repeat_of_another_tool_is_none() -> None:
    """Equal arguments to different tools are different calls."""
    assert path(calls(("get", {"id": 1}), ("delete", {"id": 1}))).passed


def test_repeats_beyond_the_first_are_counted() -> None:
    """Every call beyond the first of its group counts."""
    assert path(calls("a", "b", "a", "c", "a", "b")).reason.startswith("3 duplicate tool call(s)")


def test_malformed_calls_repeat_by_their_raw_text() -> None:
    """Arguments that are no JSON are the same only if their text is."""
    broken = [ToolCall("t", None, "denied", raw_args=text) for text in ("{a", "{a", "{b")]
    assert find_repeats(broken).duplicates == (1,)


@pytest.mark.parametrize("status", ["error", "timeout"])
def test_retry_after_failure_is_no_duplicate(status: Any) -> None:
    """Trying again what failed is sane."""
    failed = ToolCall(*WEATHER, status=status)
    assert path(calls(failed, failed, WEATHER)).passed


@pytest.mark.parametrize("status", ["ok", "denied", "unknown"])
def test_repeat_after_an_answer_is_a_duplicate(status: Any) -> None:
    """Asking again for what was given, refused or never told is no retry."""
    assert path(calls(ToolCall(*WEATHER, status=status), WEATHER)).reason == LOOPING


def test_repeat_counts_once_the_call_has_succeeded() -> None:
    """A failure after a success does not open the way for more of the same."""
    failed = ToolCall(*WEATHER, status="error")
    assert find_repeats([failed, ToolCall(*WEATHER), failed, failed]).duplicates == (2, 3)


def test_patience_with_a_failing_call_ends() -> None:
    """The same failing call again and again is looping, even though each is a retry."""
    failed = ToolCall(*WEATHER, status="error")
    assert path(calls(*[failed] * MAX_ATTEMPTS)).passed
    grade = path(calls(*[failed] * (MAX_ATTEMPTS + 1)))
    assert grade.reason == (
        "get_weather {'city': 'Denver'} failed 6 times without any change — looping"
    )


def test_polled_tool_may_repeat() -> None:
    """A tool named under `poll` is free to repeat, and others stay bound."""
    scenario = limited(poll=["status"])
    assert path(calls("status", "status", "status"), scenario).passed
    assert path(calls("status", "status", WEATHER, WEATHER), scenario).reason == LOOPING


def test_polling_does_not_count_as_inefficient() -> None:
    """Free repeats are left out of the ratio."""
    scenario = a_scenario(expect={"tools": ["status"], "path": {"poll": ["status"]}})
    assert path(calls(*["status"] * 9), scenario).passed


@pytest.mark.parametrize(
    "tools",
    [
        [{"tool": "search", "args": {"to": "Seattle"}, "times": 2}],
        [{"tool": "search", "times": {"max": 3}}],
        [{"search": {"to": "Seattle"}}, {"search": {}}],
    ],
)
def test_repeat_that_the_suite_expects_is_no_duplicate(tools: Any) -> None:
    """What the expectations themselves ask for twice may be done twice."""
    search = ("search", {"to": "Seattle"})
    assert path(calls(search, search), a_scenario(expect={"tools": tools})).passed


@pytest.mark.parametrize(
    "tools",
    [
        [{"search": {"to": "Seattle"}}],
        [{"tool": "search", "times": {"min": 1}}],
        [{"tool": "search", "args": {"to": "Denver"}, "times": 2}],
        [{"tool": "book", "times": 2}],
    ],
)
def test_repeat_that_the_suite_does_not_expect_is_a_duplicate(tools: Any) -> None:
    """Being expected once, or any number of times, is no leave to repeat oneself."""
    search = ("search", {"to": "Seattle"})
    assert path(calls(search, search), a_scenario(expect={"tools": tools})).reason == LOOPING


def test_repeat_across_turns_is_a_duplicate_unless_both_turns_expect_it() -> None:
    """Repeats count over the whole trial; a turn that expects the call may make it."""
    trace = Trace(
        (Turn("a", ("x",)), Turn("b", ("y",))),
        (ToolCall(*WEATHER, turn=0), ToolCall(*WEATHER, turn=1)),
    )
    expects = {"expect": {"tools": [dict([WEATHER])]}}
    assert path(trace, journey({}, {})).reason == LOOPING
    assert path(trace, journey(expects, expects)).passed


argument_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
tool_calls = st.builds(
    ToolCall,
    st.sampled_from("ab"),
    st.dictionaries(st.sampled_from("xy"), argument_values, max_size=2),
)


@settings(deadline=None, max_examples=100)
@given(st.lists(tool_calls, max_size=8), st.randoms(use_true_random=False))
def test_permuting_calls_keeps_the_number_of_duplicates(
    made: list[ToolCall], order: random.Random
) -> None:
    """The order of calls that all succeed changes neither groups nor duplicates."""
    shuffled = list(made)
    order.shuffle(shuffled)
    assert len(find_repeats(shuffled).duplicates) == len(find_repeats(made).duplicates)


@settings(deadline=None, max_examples=100)
@given(st.lists(tool_calls, max_size=8))
def test_groups_hold_each_call_once(made: list[ToolCall]) -> None:
    """Grouping loses no call, and what it groups is what a duplicate is counted from."""
    groups = same_calls(made)
    assert sorted(index for group in groups for index in group) == list(range(len(made)))
    assert len(find_repeats(made).duplicates) == len(made) - len(groups)


@settings(deadline=None, max_examples=100)
@given(st.lists(tool_calls, min_size=1, max_size=6), st.data())
def test_repeating_any_call_is_noticed(made: list[ToolCall], data: st.DataObject) -> None:
    """Copying one successful call to any place always makes one more duplicate."""
    copied = data.draw(st.sampled_from(made))
    place = data.draw(st.integers(0, len(made)))
    longer = [*made[:place], copied, *made[place:]]
    assert len(find_repeats(longer).duplicates) == len(find_repeats(made).duplicates) + 1


# --- ratio -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_calls", "tools", "ratio", "passes"),
    [
        (2, ["search"], None, True),
        (3, ["search"], None, False),
        (3, ["search"], 3, True),
        (2, ["search"], 1.5, False),
        (6, [{"tool": "search", "times": {"max": 3}}], None, True),
        (7, [{"tool": "search", "times": {"max": 3}}], None, False),
        (50, [{"tool": "search", "times": {"min": 1}}], None, True),
        (50, None, None, True),
    ],
)
def test_ratio_is_over_the_most_that_is_expected(
    n_calls: int, tools: Any, ratio: float | None, passes: bool
) -> None:
    """Expected calls count with their maximum; without a number there is no ratio."""
    limits = {} if ratio is None else {"max_ratio": ratio}
    wanted = {} if tools is None else {"tools": tools}
    scenario = a_scenario(expect={"path": limits, **wanted})
    assert path(calls(*searches(n_calls)), scenario).passed is passes


def test_ratio_sums_the_turns_and_counts_once_what_the_scenario_repeats() -> None:
    """Expected calls of all turns add up; the same call listed for the whole is not added."""
    turns = [{"expect": {"tools": ["search"]}}, {"expect": {"tools": ["book"]}}]
    trace = calls(*searches(5))
    assert "5 calls for a 2-call task" in path(trace, journey(*turns)).reason
    whole = {"expect": {"tools": ["search", "book"]}}
    assert "5 calls for a 2-call task" in path(trace, journey(*turns, **whole)).reason


def test_failed_attempts_count_for_the_ratio() -> None:
    """A retry is a call too."""
    failed = ToolCall(*WEATHER, status="error")
    scenario = a_scenario(expect={"tools": ["get_weather"]})
    assert path(calls(failed, failed, WEATHER), scenario).reason == (
        "inefficient: 3 calls for a 1-call task"
    )


# --- cycles ----------------------------------------------------------------------


def test_cycle_of_equal_calls_is_named() -> None:
    """A-B-A-B fails as looping and says what goes round."""
    grade = path(calls(WEATHER, "search", WEATHER, "search", WEATHER, "search"))
    assert grade.reason == (
        "4 duplicate tool call(s) — looping; cycle: get_weather, search — 3 times round"
    )


def test_working_through_a_list_is_no_cycle() -> None:
    """The same tools in turn with changing arguments are honest work: evidence, no fault."""
    made = [call for n in range(5) for call in (("fetch", {"id": n}), ("save", {"id": n}))]
    grade = path(calls(*made))
    assert grade.passed
    assert grade.evidence["tools_in_turn"] == "fetch, save — 5 times round"


def test_cycle_by_name_is_named_where_the_route_is_too_long() -> None:
    """Where there are too many calls anyway, the tools that alternate explain why."""
    made = [call for n in range(3) for call in (("fetch", {"id": n}), ("save", {"id": n}))]
    grade = path(calls(*made), a_scenario(expect={"tools": ["fetch", "save"]}))
    assert grade.reason == ("inefficient: 6 calls for a 2-call task (fetch, save — 3 times round)")


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ("abab", (0, 2, 2)),
        ("xababy", (1, 2, 2)),
        ("abcabcabc", (0, 3, 3)),
        ("aba", None),
        ("aaaa", None),
        ("abba", None),
        ("", None),
        ("zzababab", (2, 2, 3)),
    ],
)
def test_find_cycle_finds_consecutive_rounds(items: str, found: Any) -> None:
    """A cycle has two to eight items, not all equal, and whole rounds in a row."""
    assert find_cycle(items, min_rounds=2) == found


# --- limits ----------------------------------------------------------------------


KNOWN = Usage(input_tokens=100, output_tokens=20, cost_usd=0.1)


@pytest.mark.parametrize(
    ("limit", "trace", "reason"),
    [
        (
            {"max_tool_calls": 2},
            calls("a", "b", "c"),
            "3 tool call(s), more than",
        ),
        ({"max_tool_calls": 0}, calls("a"), "1 tool call(s), more than max_tool_calls (0)"),
        (
            {"max_model_calls": 1},
            models(KNOWN, KNOWN),
            "2 model call(s), more than",
        ),
        ({"max_tokens": 239}, models(KNOWN, KNOWN), "240 tokens, more than max_tokens (239)"),
        ({"max_usd": 0.19}, models(KNOWN, KNOWN), "$0.2, more than max_usd (0.19)"),
    ],
)
def test_limit_that_is_exceeded_fails(limit: Any, trace: Trace, reason: str) -> None:
    """Each limit fails what exceeds it, and says by how much."""
    grade = path(trace, limited(**limit))
    assert grade.status == "failed"
    assert reason in grade.reason


@pytest.mark.parametrize(
    ("limit", "trace"),
    [
        ({"max_tool_calls": 3}, calls("a", "b", "c")),
        ({"max_model_calls": 2}, models(KNOWN, KNOWN)),
        ({"max_tokens": 240}, models(KNOWN, KNOWN)),
        ({"max_usd": 0.3}, models(KNOWN, KNOWN, KNOWN)),
        ({"max_model_calls": 0, "max_tokens": 0, "max_usd": 0}, models()),
    ],
)
def test_limit_that_is_just_met_passes(limit: Any, trace: Trace) -> None:
    """A limit is the most that is allowed; 0.1 + 0.1 + 0.1 dollars are 0.3."""
    assert path(trace, limited(**limit)).passed


@pytest.mark.parametrize("limit", ["max_model_calls", "max_tokens", "max_usd", "max_seconds"])
def test_limit_on_what_nobody_saw_is_incomplete(limit: str) -> None:
    """What was not observed is never within its limit."""
    grade = path(calls("a"), limited(**{limit: 100}))
    assert grade.status == "incomplete"
    assert grade.reason.startswith(f"{limit} cannot be checked")


@pytest.mark.parametrize(
    ("limit", "usage"),
    [
        ("max_tokens", None),
        ("max_tokens", Usage(input_tokens=1)),
        ("max_tokens", Usage(output_tokens=1)),
        ("max_usd", None),
        ("max_usd", Usage(input_tokens=1, output_tokens=1)),
        ("max_usd", Usage(cost_usd=float("nan"))),
    ],
)
def test_unknown_usage_is_incomplete(limit: str, usage: Usage | None) -> None:
    """A model call whose usage nobody knows costs nobody knows what, not nothing."""
    grade = path(models(KNOWN, usage), limited(**{limit: 1000}))
    assert grade.status == "incomplete"
    assert "the usage of 1 of 2 model call(s) is unknown" in grade.reason


@pytest.mark.parametrize("limit", [{"max_tokens": 5}, {"max_usd": 0.05}])
def test_excess_of_what_is_known_fails_whatever_is_unknown(limit: Any) -> None:
    """Unknown usage can only add to a limit that is exceeded already."""
    assert path(models(KNOWN, None), limited(**limit)).status == "failed"


def test_excess_of_model_calls_fails_even_if_others_were_not_seen() -> None:
    """Calls that were seen are certain."""
    assert path(models(KNOWN, KNOWN, observed=False), limited(max_model_calls=1)).status == "failed"


@pytest.mark.parametrize(("duration_s", "status"), [(1.9, "passed"), (2.1, "failed")])
def test_seconds_are_the_trials(duration_s: float, status: str) -> None:
    """The measured time of the trial is compared."""
    assert path(calls("a"), limited(max_seconds=2), duration_s=duration_s).status == status


@pytest.mark.parametrize(
    ("end_s", "status"), [(11.0, "passed"), (13.0, "failed"), (None, "incomplete")]
)
def test_seconds_come_from_spans_where_nobody_timed_the_trial(
    end_s: float | None, status: str
) -> None:
    """An imported trace lasts from its first span's start to its last span's end."""
    spans = (Span("r", start_s=10.0, end_s=10.5), Span("c", "r", start_s=10.1, end_s=end_s))
    trace = Trace((Turn("Go.", ("Done.",)),), spans=spans)
    assert path(trace, limited(max_seconds=2)).status == status


# --- what was observed, and how much ------------------------------------------------


@pytest.mark.parametrize(
    "expect", [{"tools": ["book"]}, {"tools": []}, {"path": {"max_tool_calls": 3}}, {"path": {}}]
)
def test_unobserved_tools_are_incomplete_where_tools_or_path_are_expected(expect: Any) -> None:
    """Where the suite asks for the route and nobody saw it, nothing passes."""
    trial = Trial(
        a_scenario(expect=expect), Trace((Turn("Go.", ("Done.",)),), tools_observed=False)
    )
    grade = next(grade for grade in grade_trial(trial) if grade.grader == "path")
    assert (grade.status, grade.reason_code) == ("incomplete", "tools_not_observed")


def test_unobserved_tools_are_not_judged_where_nobody_asked() -> None:
    """An agent that hands back text is not blamed for a route that nobody asked about."""
    scenario = a_scenario(expect={"reply": {"contains": "done"}})
    trial = Trial(scenario, Trace((Turn("Go.", ("Done.",)),), tools_observed=False))
    assert [grade.grader for grade in grade_trial(trial)] == ["answer"]


def test_duplicates_that_were_seen_fail_though_not_all_was_observed() -> None:
    """A fault that was seen is a fault."""
    trace = Trace((Turn(),), (ToolCall("a"), ToolCall("a")), tools_observed=False)
    assert path(trace, limited(max_tool_calls=9)).status == "failed"


@pytest.mark.parametrize(
    ("made", "status"), [("aa", "failed"), ("abcd", "failed"), ("a", "incomplete")]
)
def test_trial_cut_short_fails_for_what_is_certain_only(made: str, status: str) -> None:
    """A trial cut short can fail already, but it can never pass."""
    scenario = limited(max_tool_calls=3)
    assert path(calls(*made), scenario, whole=False).status == status


def test_path_false_switches_the_grader_off() -> None:
    """`path: false` says that the route is not judged."""
    trial = Trial(a_scenario(expect={"path": False}), calls("a", "a"))
    assert grade_trial(trial) == ()


def test_path_named_beside_path_false_is_incomplete() -> None:
    """A grader that is named but has nothing to judge does not pass."""
    assert path(calls("a"), a_scenario(expect={"path": False})).status == "incomplete"


def test_path_false_of_a_turn_leaves_its_calls_out_but_not_of_limits() -> None:
    """The calls of an unjudged turn make no duplicates, and still count for a limit."""
    trace = Trace(
        (Turn("a", ("x",)), Turn("b", ("y",))),
        (ToolCall("a"), ToolCall("b", turn=1), ToolCall("b", turn=1)),
    )
    off = {"expect": {"path": False}}
    assert path(trace, journey({}, off)).passed
    limits = {"expect": {"path": {"max_tool_calls": 2}}}
    assert path(trace, journey({}, off, **limits)).reason.startswith("3 tool call(s)")


def test_limit_of_a_turn_looks_at_that_turn() -> None:
    """A turn's limit counts its own calls, and the grade names the turn."""
    trace = Trace(
        (Turn("a", ("x",)), Turn("b", ("y",))),
        (ToolCall("a"), ToolCall("b", turn=1), ToolCall("c", turn=1)),
    )
    limit = {"expect": {"path": {"max_tool_calls": 1}}}
    assert path(trace, journey(limit, {})).passed
    grade = path(trace, journey({}, limit))
    assert (grade.turn, grade.reason) == (
        1, "turn 2: 2 tool call(s), more than max_tool_calls (1) allows",
    )  # fmt: skip


def test_evidence_lists_the_repeated_calls() -> None:
    """The evidence says which calls were repeated, and where."""
    grade = path(calls(WEATHER, BOOK, WEATHER))
    assert grade.evidence["faults"][0]["calls"] == [
        {"position": 3, "call": "get_weather {'city': 'Denver'}"}
    ]
