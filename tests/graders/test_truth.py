"""The Truth grader: its rules from the suite file down, and its words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalkit.graders.base import Trial, find_grader, graders_for
from evalkit.graders.truth import grade_truth
from evalkit.suite import suite_from_data, suite_from_records
from evalkit.trace import ToolCall, Trace, Turn

PASSED = "all expected tool calls present with correct args"
WEATHER = ("get_weather", {"city": "Denver"})
BOOK = ("book", {"flight_id": "AA123", "date": "Friday"})
WRONG_ID = ("book", {"flight_id": "AA999", "date": "Friday"})
RECORD = {
    "task_id": "weather-gate-book",
    "input": "Book flight AA123 for Friday, but only if it isn't raining in Denver.",
    "expect_tools": [{"name": name, "args": args} for name, args in (WEATHER, BOOK)],
    "forbid_tools": ["cancel"],
}


def scenario(*, turns: list | None = None, **keys):
    """Load one scenario of a suite."""
    said = {"turns": turns} if turns else {"input": "hello"}
    data = {"suite": "s", "scenarios": [{"id": "one", **said, **keys}]}
    return suite_from_data(data).scenarios[0]


def expecting(tools, **forbid):
    """Load a scenario that expects these tools."""
    return scenario(expect={"tools": tools}, **forbid)


def grade(subject, *calls, **changes):
    """Grade calls against a scenario."""
    trace = replace(Trace.from_calls(calls, reply="Done."), **changes)
    return grade_truth(Trial(subject, trace))


def record(**changes):
    """Load the tutorial's record."""
    return suite_from_records([{**RECORD, **changes}]).scenarios[0]


@pytest.mark.parametrize(
    ("calls", "value", "reason"),
    [
        ([WEATHER, BOOK], 1.0, PASSED),
        ([BOOK, ("search", {}), WEATHER], 1.0, PASSED),
        (
            [WEATHER, WRONG_ID],
            0.0,
            "missing/incorrect: book {'flight_id': 'AA123', 'date': 'Friday'}",
        ),
        (
            [],
            0.0,
            "missing/incorrect: get_weather {'city': 'Denver'}; "
            "book {'flight_id': 'AA123', 'date': 'Friday'}",
        ),
        ([WEATHER, BOOK, ("cancel", {})], 0.0, "called forbidden tool: cancel"),
        ([WEATHER, BOOK, "cancel", "cancel"], 0.0, "called forbidden tool: cancel"),
    ],
)
def test_record_gives_the_words_of_the_tutorial(calls, value, reason):
    """An older record's reasons are exactly those of the tutorial it comes from."""
    found = grade(record(), *calls)
    assert (found.value, found.reason) == (value, reason)


def test_suite_adds_how_the_nearest_call_differs():
    """In a suite the same sentence goes on with the nearest call's difference."""
    subject = expecting([dict([WEATHER]), dict([BOOK])])
    assert grade(subject, WEATHER, WRONG_ID).reason == (
        "missing/incorrect: book {'flight_id': 'AA123', 'date': 'Friday'} "
        "(nearest call: flight_id: expected 'AA123', got 'AA999')"
    )
    assert grade(subject, WEATHER).reason == (
        "missing/incorrect: book {'flight_id': 'AA123', 'date': 'Friday'}"
    )


def test_forbidden_call_wins_over_everything():
    """A forbidden attempt fails the trial although it failed and all else is right."""
    subject = expecting(["book"], forbid={"tools": ["cancel"]})
    denied = ToolCall("cancel", {"any": "thing"}, "denied")
    assert grade(subject, "book").passed
    assert grade(subject, "book", denied).reason == "called forbidden tool: cancel"
    cut_short = Trial(subject, Trace.from_calls([denied]), whole=False)
    assert find_grader("truth")(cut_short).status == "failed"
    unseen = grade(subject, denied, tools_observed=False)
    assert unseen.status == "failed"


def test_forbidden_arguments_leave_others_free():
    """A ban with arguments hits every call that has them, whatever else it has."""
    subject = expecting(["search"], forbid={"tools": {"refund": {"amount": {"$gt": 100}}}})
    ok = ("refund", {"amount": 100, "note": "x"})
    bad = ("refund", {"amount": 101, "note": "x"})
    assert grade(subject, "search", ok).passed
    assert grade(subject, "search", bad).reason == (
        "called forbidden tool: refund {'amount': 101, 'note': 'x'}"
    )
    assert grade(subject, "search", ("refund", {"amount": True})).passed


def test_unreadable_call_of_a_tool_with_banned_arguments_is_incomplete():
    """What cannot be read can neither be cleared nor condemned."""
    broken = ToolCall("refund", None, "error", raw_args='{"amount": 10')
    some = expecting(["search"], forbid={"tools": {"refund": {"amount": 10}}})
    found = grade(some, "search", broken)
    assert (found.status, found.value) == ("incomplete", None)
    assert "refund" in found.reason
    every = expecting(["search"], forbid={"tools": ["refund"]})
    assert grade(every, "search", broken).status == "failed"


def test_empty_tools_mean_no_tool_at_all():
    """``tools: []`` fails on any attempt, also one that failed."""
    subject = expecting([])
    assert grade(subject).passed
    found = grade(subject, ToolCall("search", {"q": 1}, "error"))
    assert found.reason == "unexpected tool call: search {'q': 1}"


def test_empty_record_requires_nothing():
    """In the older shape an empty list of tools allows every call."""
    assert grade(record(expect_tools=[]), WEATHER).passed


def test_calls_that_nobody_observed_are_incomplete():
    """An agent that gave only text is not measured, unless nothing is said about tools."""
    for subject in (expecting(["book"]), scenario(forbid={"tools": ["book"]}), expecting([])):
        found = grade(subject, tools_observed=False)
        assert (found.status, found.reason_code) == ("incomplete", "tools_not_observed")
    silent = scenario(expect={"reply": {"contains": "Done"}})
    assert grade(silent, tools_observed=False).passed


def test_truth_applies_where_tools_are_named():
    """The grader is called for by expected or forbidden tools, of a turn too."""
    trace = Trace.from_calls()
    for subject in (
        expecting(["book"]),
        scenario(forbid={"tools": ["book"]}),
        scenario(turns=[{"user": "a", "expect": {"tools": []}}]),
    ):
        assert "truth" in graders_for(Trial(subject, trace))
    silent = scenario(expect={"reply": {"contains": "Done"}})
    assert "truth" not in graders_for(Trial(silent, trace))


@pytest.mark.parametrize(
    ("extra", "passes"), [("free", True), ("forbid", False), ({"allow": ["search"]}, True)]
)
def test_extra_calls(extra, passes):
    """Further calls are free unless the suite forbids them or allows only some."""
    subject = expecting({"extra_calls": extra, "calls": ["book"]})
    assert grade(subject, "book").passed
    assert grade(subject, "search", "book").passed is passes
    assert grade(subject, "book", "pay").passed is (extra == "free")


def test_strict_forbids_extra_calls_and_arguments_but_not_in_bans():
    """``strict: true`` tightens expectations; a ban still hits whatever the arguments."""
    tools = {"expect": {"tools": [{"book": {"flight_id": "AA123"}}]}}
    data = {
        "suite": "s",
        "defaults": {"strict": True},
        "scenarios": [
            {"id": "one", "input": "x", "forbid": {"tools": {"pay": {"sum": 1}}}, **tools}
        ],
    }
    subject = suite_from_data(data).scenarios[0]
    assert grade(subject, ("book", {"flight_id": "AA123"})).passed
    assert "date: expected nothing, got 'Friday'" in grade(subject, BOOK).reason
    found = grade(subject, ("book", {"flight_id": "AA123"}), ("pay", {"sum": 1, "x": 2}))
    assert "called forbidden tool: pay" in found.reason


def test_order_after_times_status_and_turn_come_from_the_suite():
    """Each key of the long form reaches the matcher."""
    ordered = expecting({"order": "in_order", "calls": ["a", "b"]})
    assert grade(ordered, "a", "x", "b").passed
    assert not grade(ordered, "b", "a").passed
    exact = expecting({"order": "exact", "calls": ["a", "b"]})
    assert grade(exact, "a", "b").passed
    assert not grade(exact, "a", "x", "b").passed
    waits = expecting([{"tool": "a", "id": "w"}, {"tool": "b", "after": "w"}])
    assert grade(waits, "a", "b").passed
    assert "order: expected a call after w" in grade(waits, "b", "a").reason
    twice = expecting([{"tool": "a", "times": 2}])
    assert grade(twice, "a", "a").passed
    assert grade(twice, "a").reason == ("missing/incorrect: a {} (1 of 2 calls)")
    assert grade(twice, "a", "a", "a").reason == "too many calls: a {} (at most 2, 1 more)"
    failing = expecting([{"tool": "a", "status": "error"}])
    assert grade(failing, ToolCall("a", status="error")).passed
    assert not grade(failing, "a").passed
    second = expecting([{"tool": "a", "turn": 1}])
    assert grade(second, ToolCall("a", turn=0)).passed
    assert not grade(second, ToolCall("a", turn=1)).passed


def test_failed_attempt_does_not_satisfy():
    """A call that is known to have failed is missing; one of unknown fate counts."""
    subject = expecting(["book"])
    assert (
        "status: expected ok, got error" in grade(subject, ToolCall("book", status="error")).reason
    )
    assert grade(subject, ToolCall("book", status="unknown")).passed
    assert grade(subject, ToolCall("book", status="error"), "book").passed


def test_each_turn_is_held_against_its_own_calls():
    """A turn's expectations see the calls of that turn only, and name the turn."""
    subject = scenario(
        turns=[
            {"user": "save", "expect": {"tools": ["save"]}},
            {"user": "what?", "expect": {"tools": []}, "forbid": {"tools": ["drop"]}},
        ]
    )
    turns = (Turn("save", ("ok",)), Turn("what?", ("one",)))
    good = grade(subject, ToolCall("save", turn=0), turns=turns)
    assert good.passed
    late = grade(subject, ToolCall("save", turn=1), turns=turns)
    assert late.reason == (
        "turn 1: missing/incorrect: save {}; turn 2: unexpected tool call: save {}"
    )
    assert grade(subject, ToolCall("save"), ToolCall("drop", turn=0), turns=turns).passed
    assert not grade(subject, ToolCall("save"), ToolCall("drop", turn=1), turns=turns).passed


def test_ref_follows_a_value_through_calls():
    """The argument must come from the earlier call's result."""
    subject = expecting(
        [{"tool": "search", "id": "s"}, {"book": {"flight_id": {"$ref": "s.result.id"}}}]
    )
    search = ToolCall("search", result={"id": "AA1"})
    assert grade(subject, search, ("book", {"flight_id": "AA1"})).passed
    assert "'AA1', got 'AA2'" in grade(subject, search, ("book", {"flight_id": "AA2"})).reason


def test_evidence_tells_wrong_tool_from_wrong_arguments():
    """Rates, misses, nearest call and whether the tool was called at all are reported."""
    subject = expecting([dict([WEATHER]), dict([BOOK])])
    wrong = grade(subject, WEATHER, WRONG_ID).evidence
    assert (wrong["precision"], wrong["recall"], wrong["f1"]) == (0.5, 0.5, 0.5)
    miss = wrong["misses"][0]
    assert (miss["tool"], miss["tool_called"], miss["nearest_call"]) == ("book", True, 1)
    assert miss["differences"] == [
        {"path": "flight_id", "expected": "'AA123'", "actual": "'AA999'"}
    ]
    absent = grade(subject, WEATHER).evidence["misses"][0]
    assert (absent["tool_called"], absent["nearest_call"]) == (False, None)


def test_trial_that_was_cut_short_is_not_blamed_for_what_was_still_to_come():
    """Missing calls of a partial trial are incomplete; a call that nobody asked for is a fault."""
    subject = expecting({"extra_calls": "forbid", "calls": ["book"]})
    truth = find_grader("truth")
    assert truth(Trial(subject, Trace.from_calls(["book"]), whole=False)).status == "incomplete"
    assert truth(Trial(subject, Trace.from_calls([]), whole=False)).status == "incomplete"
    assert truth(Trial(subject, Trace.from_calls(["pay"]), whole=False)).status == "failed"


def test_undecided_matching_is_incomplete():
    """A search that had to stop is named and never passes or fails."""
    calls = [{"tool": "s", "id": f"s{k}"} for k in range(9)]
    listed = [{"$ref": f"s{k}.result"} for k in range(9)]
    subject = expecting([*calls, {"b": {"v": listed}}])
    made = [ToolCall("s", result=k) for k in range(9)]
    found = grade(subject, *made, ("b", {"v": [0] * 9}))
    assert (found.status, found.value) == ("incomplete", None)
    assert "could not be matched" in found.reason


def test_hostile_arguments_give_a_grade():
    """Large numbers, lone surrogates, NUL and depth are graded like anything else."""
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    subject = expecting([{"book": {"n": 2**60 + 1, "s": "\ud800\0"}}])
    assert grade(subject, ("book", {"n": 2**60 + 1, "s": "\ud800\0", "deep": deep})).passed
    found = grade(subject, ("book", {"n": float(2**60), "s": deep}))
    assert found.passed is False
    assert found.reason.encode()
