"""Wire agreement: what ran is what the model asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, grade_trial, graders_for
from evalkit.suite import Scenario
from evalkit.trace import ModelCall, ToolCall, Trace, Turn

SCENARIO = Scenario.model_validate({"id": "s", "input": "Go."})
WATCHED = ("book", "search")


def call(name: str, turn: int = 0, /, **args: Any) -> ToolCall:
    """Make a call."""
    return ToolCall(name, args, turn=turn)


def trace_of(asked: list[ToolCall], ran: list[ToolCall], **more: Any) -> Trace:
    """Make a trace of both sides."""
    seen = {"models_observed": True, "model_calls": (ModelCall(reply={"text": "ok"}),)}
    return Trace(
        (Turn("", ("x",)),),
        **{"tool_calls": ran, "asked_calls": asked, "watched_tools": WATCHED, **seen, **more},
    )


def graded(
    asked: list[ToolCall], ran: list[ToolCall], *, whole: bool = True, **params: Any
) -> Grade:
    """Grade what was asked for and what ran."""
    trial = Trial(SCENARIO, trace_of(asked, ran), lane="contract", whole=whole)
    return find_grader("wire_agreement")(trial, **params)


A1, A2 = call("book", flight="A1"), call("book", flight="A2")


@pytest.mark.parametrize(
    ("asked", "ran"),
    [
        ([], []),
        ([A1], [A1]),
        ([A1, A2], [A1, A2]),
        ([A1, A2], [A2, A1]),
        ([A1, A1], [A1, A1]),
        ([A1], [call("book", flight="A1", seats=1)]),
        ([call("book", n=1)], [call("book", n=1.0)]),
        # The first that ran would serve both, so it must not take what only one can have.
        ([call("book"), A1], [A1, call("book")]),
        ([A1], [call("book", 1, flight="A1")]),
        # Asked for in words that are no JSON: nothing to run.
        ([ToolCall("book", None, raw_args='{"fli')], []),
        ([ToolCall("book", {"flight": "A1"}, "denied")], []),
        ([ToolCall("book", {"flight": "A1"}, "denied")], [A1]),
        # Nobody sees whether this one runs.
        ([call("unwatched")], []),
        ([], [call("unwatched")]),
    ],
)
def test_what_ran_as_it_was_asked_for_passes(asked: Any, ran: Any) -> None:
    """Each call that was asked for ran once, with its arguments, and no other did."""
    grade = graded(asked, ran)
    assert (grade.value, grade.status) == (1.0, "passed")


@pytest.mark.parametrize(
    ("asked", "ran", "reason"),
    [
        ([A1], [], "asked for but never run: book {'flight': 'A1'}"),
        ([], [A1], "run without being asked for: book {'flight': 'A1'}"),
        ([A1, A1], [A1], "asked for but never run: book {'flight': 'A1'}"),
        ([A1], [A1, A1], "run without being asked for: book {'flight': 'A1'}"),
        ([A1], [A2],
         "book ran with other arguments than asked for: flight was asked as 'A1' and ran as 'A2'"),
        ([A1], [call("book")],
         "book ran with other arguments than asked for: flight (asked as 'A1') is missing"),
        ([call("book", n=1)], [call("book", n=True)], "n was asked as 1 and ran as True"),
        ([call("book", n=1)], [call("book", n="1")], "n was asked as 1 and ran as '1'"),
        ([A1], [call("search", flight="A1")],
         "asked for but never run: book {'flight': 'A1'}; "
         "run without being asked for: search {'flight': 'A1'}"),
        ([ToolCall("book", None, raw_args="{")], [A1], "run without being asked for: book"),
        ([ToolCall("book", {"flight": "A1"}, "denied")], [A2], "run without being asked for"),
        ([call("book", 1, flight="A1")], [A1], "run before it was asked for: book"),
    ],
)  # fmt: skip
def test_disagreement_fails_and_is_named(asked: Any, ran: Any, reason: str) -> None:
    """A call that is on one side only, or differs, fails the trial."""
    grade = graded(asked, ran)
    assert (grade.value, grade.status) == (0.0, "failed")
    assert reason in grade.reason


def test_tool_that_failed_has_run() -> None:
    """What a tool raised does not matter here."""
    assert graded([A1], [ToolCall("book", {"flight": "A1"}, "error")]).passed


def test_disagreement_names_its_turn() -> None:
    """In a journey, the reason says in which turn it was."""
    scenario = Scenario.model_validate({"id": "s", "turns": [{"user": "a"}, {"user": "b"}]})
    trial = Trial(scenario, trace_of([A1, call("book", 1, flight="A2")], [A1]))
    grade = find_grader("wire_agreement")(trial)
    assert (grade.turn, grade.reason) == (
        1, "turn 2: asked for but never run: book {'flight': 'A2'}",
    )  # fmt: skip


def test_many_disagreements_are_counted() -> None:
    """A reason stays readable whatever the agent did."""
    grade = graded([], [call("book", n=n) for n in range(50)])
    assert grade.reason.endswith("; and 40 more")


@pytest.mark.parametrize(
    ("params", "asked", "ran", "passes"),
    [
        ({"allow_unrun": ["book"]}, [A1], [], True),
        ({"allow_unrun": "book"}, [A1], [], True),
        ({"allow_unrun": ["search"]}, [A1], [], False),
        ({"allow_unrun": ["book"]}, [], [A1], False),
        ({"allow_unrun": ["book"]}, [A1], [A2], False),
        ({"allow_unasked": ["book"]}, [], [A1], True),
        ({"allow_unasked": ["search"]}, [], [A1], False),
        ({"allow_unasked": ["book"]}, [A1], [], False),
        ({"allow_unasked": ["book"]}, [A1], [A1, A1], True),
        ({"allow_unrun": ["book"], "allow_unasked": ["book"]}, [A1], [A2], True),
    ],
)
def test_scenario_may_allow_a_tool_to_disagree(
    params: Any, asked: Any, ran: Any, passes: bool
) -> None:
    """An allowance is for the tools that it names, and in one direction."""
    assert graded(asked, ran, **params).passed is passes
    scenario = Scenario.model_validate(
        {"id": "s", "input": "Go.", "graders": [{"wire_agreement": params}]}
    )
    grades = grade_trial(Trial(scenario, trace_of(asked, ran)))
    assert [grade.passed for grade in grades if grade.grader == "wire_agreement"] == [passes]


@pytest.mark.parametrize("params", [{"allow_unrun": 3}, {"allow_unasked": [1]}, {"allow": []}])
def test_wrong_parameter_is_incomplete(params: Any) -> None:
    """A parameter that says nothing is the suite's fault, not the agent's."""
    assert graded([A1], [A1], **params).reason_code == "grader_raised"


@pytest.mark.parametrize(
    ("asked", "ran", "status"),
    [
        ([A1], [], "incomplete"),
        ([], [A1], "failed"),
        ([A1], [A2], "failed"),
        ([A1], [A1], "incomplete"),
    ],
)
def test_trial_cut_short_fails_for_what_ran_only(asked: Any, ran: Any, status: str) -> None:
    """What was asked for may have been about to run."""
    assert graded(asked, ran, whole=False).status == status


def test_trial_cut_short_with_an_allowance_is_open() -> None:
    """What may run unasked ran, and what was asked for may still come."""
    assert graded([A1], [A2], whole=False, allow_unasked=["book"]).status == "incomplete"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"watched_tools": ()}, "no tool tells when it runs"),
        ({"models_observed": False, "model_calls": ()}, "nobody saw what the agent's model asked"),
        ({"model_calls": ()}, "the model was never called"),
        ({"model_calls": (ModelCall(),)}, "nobody saw what the model answered"),
    ],
)
def test_side_that_nobody_saw_is_not_judged(more: Any, reason: str) -> None:
    """The grader does not apply by itself, and is incomplete where somebody names it."""
    trial = Trial(SCENARIO, trace_of([], [A1], **more))
    assert "wire_agreement" not in graders_for(trial)
    grade = find_grader("wire_agreement")(trial)
    assert grade.status == "incomplete"
    assert reason in grade.reason


def test_turn_in_which_nobody_saw_the_model_is_a_gap() -> None:
    """An agent that told what was asked for in one turn only has not told of the other."""
    elsewhere = call("book", 1, flight="A2")
    trace = trace_of([A1], [A1, elsewhere], models_observed=False)
    grade = find_grader("wire_agreement")(Trial(SCENARIO, trace))
    assert grade.status == "incomplete"
    assert "nobody saw what the model asked for in its turn" in grade.reason


def test_wire_agreement_applies_where_both_sides_were_seen() -> None:
    """It needs no word in the suite."""
    assert "wire_agreement" in graders_for(Trial(SCENARIO, trace_of([], [])))
    assert "wire_agreement" in graders_for(Trial(SCENARIO, trace_of([A1], [])))
    assert find_grader("wire_agreement").version == "2"


CALLS = st.lists(
    st.builds(
        ToolCall,
        st.sampled_from(WATCHED),
        st.dictionaries(st.sampled_from("ab"), st.integers(0, 1), max_size=2),
    ),
    max_size=6,
)


@settings(deadline=None, max_examples=100)
@given(CALLS, st.randoms(use_true_random=False))
def test_order_and_further_arguments_do_not_matter(asked: list[ToolCall], random: Any) -> None:
    """Calls that ran in any order, with defaults filled in, agree with what was asked for."""
    ran = [ToolCall(one.name, {**(one.args or {}), "extra": 1}) for one in asked]
    random.shuffle(ran)
    assert graded(asked, ran).passed


@settings(deadline=None, max_examples=100)
@given(CALLS.filter(bool), st.data())
def test_dropping_or_repeating_one_call_is_noticed(asked: list[ToolCall], data: Any) -> None:
    """However alike the calls are, one too few or too many is a fault."""
    index = data.draw(st.integers(0, len(asked) - 1))
    assert not graded(asked, asked[:index] + asked[index + 1 :]).passed
    assert not graded(asked, [*asked, asked[index]]).passed


SEARCHED = call("search", to="Oslo")


def traced(asked: list[ToolCall], ran: list[ToolCall], *tools: str, **more: Any) -> Trace:
    """Make a trace whose tools are seen by spans."""
    names = {"watched_tools": tools, "traced_tools": tools}
    return trace_of(asked, ran, **{**names, **more})


def test_tool_without_a_span_did_not_run_where_others_have_one() -> None:
    """Whoever traces one tool traces all, unless the suite says otherwise."""
    trial = Trial(SCENARIO, traced([A1, SEARCHED], [A1, SEARCHED], "book"))
    grade = find_grader("wire_agreement")(trial)
    assert grade.status == "failed"
    assert grade.reason.startswith("asked for but never run: search {'to': 'Oslo'} (no span of it")
    assert find_grader("wire_agreement")(trial, allow_unrun=["search"]).passed is True


def test_trial_without_any_span_of_a_tool_is_judged_only_if_all_are_traced() -> None:
    """Tools may not be traced at all; the suite knows."""
    trial = Trial(SCENARIO, trace_of([], [A1], watched_tools=()))
    assert "wire_agreement" not in graders_for(trial)
    assert find_grader("wire_agreement")(trial).status == "incomplete"
    grade = find_grader("wire_agreement")(trial, traced=True)
    assert grade.status == "failed"
    assert "never run: book" in grade.reason
    assert find_grader("wire_agreement")(trial, traced="yes").status == "incomplete"


@pytest.mark.parametrize(
    ("asked", "ran", "tools", "status"),
    [
        ([A1], [A1], ("book",), "incomplete"),
        ([A1, A2], [A1], ("book",), "incomplete"),
        ([A1], [A1], (), "incomplete"),
        ([], [A1], ("book",), "failed"),
    ],
)
def test_spans_that_may_be_missing_let_nothing_pass(
    asked: Any, ran: Any, tools: Any, status: str
) -> None:
    """What did not run cannot be told then; what ran unasked can."""
    trial = Trial(SCENARIO, traced(asked, ran, *tools, span_gaps=("the exporter failed",)))
    assert "wire_agreement" in graders_for(trial)
    assert find_grader("wire_agreement")(trial).status == status


def test_missing_spans_say_nothing_of_tools_that_tell_themselves() -> None:
    """`ek.tool` needs no span."""
    trace = trace_of([A1], [A1], span_gaps=("the exporter failed",))
    assert find_grader("wire_agreement")(Trial(SCENARIO, trace)).passed is True


def test_untold_arguments_are_said_to_be() -> None:
    """The evidence tells how many arguments nobody saw at the tool."""
    ran = ToolCall("book", {"flight": "A1"}, untold=("args",))
    grade = find_grader("wire_agreement")(Trial(SCENARIO, traced([A1], [ran], "book")))
    assert grade.passed is True
    assert grade.evidence["n_untold"] == 1
