"""Which step answers which request: order, names, `when`, turns, what is left over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import UsageError
from evalkit.gateway.canonical import Message, ModelRequest, Tool
from evalkit.gateway.script import Script, Unscripted, describe
from evalkit.ledger import Event

ONE, TWO = {"text": "one"}, {"text": "two"}
ANALYSIS = {"when": {"system": {"$contains": "job-fit analyst"}}, "steps": [{"json": {"fit": 4}}]}


def _request(**given: Any) -> ModelRequest:
    return ModelRequest("anthropic", given.pop("model", "m"), **given)


def _plain(*steps: Any) -> dict[str, Any]:
    return {"": {"when": None, "steps": list(steps)}}


def test_steps_answer_one_request_each_in_order() -> None:
    """A step is used once, in the order of the script."""
    script = Script([_plain(ONE, TWO)])
    assert [script.take(_request()).step for _ in range(2)] == [ONE, TWO]
    with pytest.raises(Unscripted, match=r"all 2 step\(s\) of the script of turn 1 were used"):
        script.take(_request())


def test_times_counts_requests() -> None:
    """`times: n` answers n requests, and each has a position of its own."""
    script = Script([_plain({"fault": "overloaded", "times": 2}, ONE)])
    taken = [script.take(_request()) for _ in range(3)]
    assert [one.position for one in taken] == [0, 1, 2]
    assert [one.step.get("fault") for one in taken] == ["overloaded", "overloaded", None]


def test_named_scripts_are_read_apart() -> None:
    """`when` sends a request to its script; the one without takes the rest."""
    script = Script([{"chat": {"when": None, "steps": [ONE, TWO]}, "analysis": ANALYSIS}])
    analyst = _request(system="You are a job-fit analyst.")
    names = [script.take(one).script for one in (_request(), analyst, _request())]
    assert names == ["chat", "analysis", "chat"]
    with pytest.raises(Unscripted, match="script `analysis` of turn 1 were used"):
        script.take(analyst)


def test_two_scripts_that_match_are_an_error() -> None:
    """A request that two `when` claim is answered by neither."""
    both = {"when": {"model": {"$any": True}}, "steps": [ONE]}
    script = Script([{"a": both, "b": both}])
    with pytest.raises(Unscripted, match="`a` and `b` of turn 1 both match") as caught:
        script.take(_request())
    assert caught.value.code == "ambiguous_script"
    assert len(script.left_over()) == 2


def test_message_says_what_was_expected() -> None:
    """Where no script fits, the reason names each script and what keeps it from fitting."""
    script = Script([{"analysis": ANALYSIS}])
    with pytest.raises(Unscripted) as caught:
        script.take(_request(system="You chat.", messages=(Message("user", "Hi there"),)))
    message = str(caught.value)
    for part in ("turn 1", "`analysis`", "job-fit analyst", "'You chat.'", "'Hi there'"):
        assert part in message


def test_silent_turn_answers_nothing() -> None:
    """A turn without scripts, or beyond the last one, expects no model call."""
    script = Script([{}])
    for turn in (0, 1):
        script.advance(turn)
        with pytest.raises(Unscripted, match=f"turn {turn + 1} has no script: no model call"):
            script.take(_request())


@pytest.mark.parametrize(
    ("offered", "hint"),
    [
        (("book_flight", "search"), "did you mean `book_flight`"),
        (("search",), "it offers: search"),
        ((), "it offers none"),
    ],
)
def test_no_model_asks_for_a_tool_that_is_not_offered(offered: Any, hint: str) -> None:
    """An agent that forgets to offer a tool gets no call of it, and the step is left over."""
    script = Script([_plain({"tools": [{"tool": "search"}, {"tool": "book_fligt"}]})])
    request = _request(tools=tuple(map(Tool, offered)))
    with pytest.raises(Unscripted, match="asks for the tool") as caught:
        script.take(request)
    assert caught.value.code == "unscripted_call"
    assert hint in str(caught.value)
    assert len(script.left_over()) == 1


def test_tools_that_only_the_provider_knows_are_not_checked() -> None:
    """Where a request offers a set of tools without their names, any of them may be asked for."""
    script = Script([_plain({"tools": [{"tool": "from_mcp"}]})])
    assert script.take(_request(tools=(Tool("search"), Tool("")))).position == 0


def test_left_over_steps_are_told_with_their_turn() -> None:
    """Going on to the next turn lists what the turn before has not used, once."""
    script = Script([_plain(ONE, {"fault": "timeout", "times": 2}), _plain(TWO)])
    script.take(_request())
    [left] = script.advance(1)
    assert str(left) == "turn 1: 2 step(s) were never asked for: fault timeout, fault timeout"
    assert script.take(_request()).step == TWO
    assert script.left_over() == ()
    assert script.advance(1) == ()


REQUEST = _request(
    model="claude-x",
    system="Be kind.",
    messages=(Message("user", "Hello"), Message("assistant", "Hi"), Message("user", "Bye")),
    tools=(Tool("book"), Tool("search")),
    stream=True,
    max_tokens=7,
    wants_json=True,
)


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({"model": "claude-x"}, True),
        ({"model": {"$regex": "^gpt"}}, False),
        ({"system": {"$contains": "kind"}, "user": "Bye"}, True),
        ({"system": {"$contains": "kind"}, "user": "Hello"}, False),
        ({"messages": {"$contains": [{"role": "assistant", "content": "Hi"}]}}, True),
        ({"tools": {"$contains": ["book"]}}, True),
        ({"tools": []}, False),
        ({"wire": "anthropic", "stream": True, "wants_json": True}, True),
        ({"max_tokens": {"$gt": 7}}, False),
    ],
)
def test_when_looks_at_every_part_of_a_request(when: Any, fits: bool) -> None:
    """Patterns see model, system, last user text, messages, tools and parameters."""
    script = Script([{"s": {"when": when, "steps": [{"json": 1}]}}])
    if fits:
        assert script.take(REQUEST).script == "s"
    else:
        with pytest.raises(Unscripted):
            script.take(REQUEST)


@pytest.mark.parametrize(
    ("scripts", "message"),
    [
        ({"s": {"when": {"sistem": "x"}, "steps": []}}, "did you mean `system`"),
        ({"s": {"when": {"weather": "x"}, "steps": []}}, "known: system, user"),
        ({"s": {"when": {"user": {"$contain": "x"}}, "steps": []}}, r"\$contains"),
        ({"s": {"steps": [{"fault": "overload"}]}}, "did you mean `overloaded`"),
    ],
)
def test_wrong_script_is_refused_before_any_request(scripts: Any, message: str) -> None:
    """What a script cannot mean is an error when it is built, with a hint."""
    with pytest.raises(UsageError, match=message):
        Script([scripts])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["chat", "analysis"]), max_size=6))
def test_a_restored_script_goes_on_where_the_ledger_ends(order: list[str]) -> None:
    """After any requests, a script restored from the ledger has the same steps left."""
    steps = [{"text": str(number)} for number in range(6)]
    when = {"system": "analyst"}
    turns = [{"chat": {"steps": steps}, "analysis": {"when": when, "steps": steps}}]
    script, events = Script(turns), []
    for name in order:
        taken = script.take(_request(system="analyst" if name == "analysis" else ""))
        data = {"turn": 0, "script": taken.script, "step": taken.position}
        events.append(Event(len(events) + 1, "model_call", data))
    again = Script(turns)
    again.restore([*events, Event(99, "model_call", {"turn": 0, "script": None})])
    assert again.left_over() == script.left_over()


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"text": "Hello."}, "text 'Hello.'"),
        ({"tools": [{"tool": "a"}, {"tool": "b", "args": {"x": 1}}]}, "tool a {} and b {'x': 1}"),
        ({"json": {"fit": 4}}, "json {'fit': 4}"),
        ({"refusal": "No."}, "refusal 'No.'"),
        ({"fault": "timeout"}, "fault timeout"),
    ],
)
def test_steps_are_told_in_a_few_words(step: Any, text: str) -> None:
    """A message about a step says what kind it is and what it holds."""
    assert describe(step) == text
