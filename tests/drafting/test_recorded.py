"""What the model answered, read back from ledgers: answer by answer, in its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.diffing import leaves_that_differ
from evalkit.drafting import Undraftable, draft_scenario
from evalkit.drafting.recorded import read_recorded, usable_turns
from evalkit.grade import Ending
from evalkit.ledger import Event
from evalkit.messages import anthropic, langchain, openai
from evalkit.reading import trace_of
from evalkit.recording import Recorder, events_of
from evalkit.results import Run
from evalkit.suite import suite_from_data
from evalkit.trace import ModelCall, ToolCall, Trace, Turn

WEATHER = ("get_weather", '{"city": "Denver"}')
BOOK = ("book", '{"flight_id": "AA123"}')


def _steps(trace: Trace) -> list[Any]:
    return [turn.steps for turn in read_recorded(events_of(trace)).turns]


def test_parallel_calls_of_one_message_are_one_step(chat: Any) -> None:
    """Calls of one message become one `tools` step, with the text beside them."""
    trace = openai.trace_of_messages(
        [
            chat.user("go"),
            chat.model("One moment.", WEATHER, BOOK),
            chat.tool(0),
            chat.tool(1),
            chat.model("Done."),
        ]
    )
    assert _steps(trace) == [
        (
            {
                "text": "One moment.",
                "tools": [{"get_weather": {"city": "Denver"}}, {"book": {"flight_id": "AA123"}}],
            },
            {"text": "Done."},
        )
    ]


def test_calls_one_after_the_other_are_steps_of_their_own(chat: Any) -> None:
    """A call that was made after a result, with text between, keeps its place."""
    trace = openai.trace_of_messages(
        [
            chat.user("go"),
            chat.model(None, WEATHER),
            chat.tool(),
            chat.model("It is clear.", BOOK),
            chat.tool(),
            chat.model("Ok"),
        ]
    )
    assert _steps(trace) == [
        (
            {"tool": "get_weather", "args": {"city": "Denver"}},
            {"text": "It is clear.", "tool": "book", "args": {"flight_id": "AA123"}},
            {"text": "Ok"},
        )
    ]


def test_two_messages_of_the_model_in_a_row_are_two_steps(chat: Any) -> None:
    """Each chat message of the model answers a request of its own."""
    trace = openai.trace_of_messages(
        [chat.user("go"), chat.model("Let me see."), chat.model(None, WEATHER)]
    )
    assert [len(steps) for steps in _steps(trace)] == [2]


def test_items_of_one_response_are_one_step(chat: Any) -> None:
    """The Responses API lists the parts of one answer one by one."""
    trace = openai.trace_of_messages(
        [
            chat.user("go"),
            {"type": "message", "role": "assistant", "content": "One moment."},
            {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "y", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "function_call_output", "call_id": "b", "output": "2"},
            {"type": "message", "role": "assistant", "content": "Done."},
        ]
    )
    assert _steps(trace) == [({"text": "One moment.", "tools": ["x", "y"]}, {"text": "Done."})]


def test_anthropic_blocks_of_one_message_are_one_step(chat: Any) -> None:
    """Text and tool uses of one message belong together, wherever the text stands."""
    use = {"type": "tool_use", "id": "t", "name": "x", "input": {"n": 1}}
    trace = anthropic.trace_of_messages(
        [
            chat.user("go"),
            {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, use]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
            {"role": "assistant", "content": "Done."},
        ]
    )
    assert _steps(trace) == [({"text": "Hm.", "tool": "x", "args": {"n": 1}}, {"text": "Done."})]


def test_langchain_messages_are_a_step_each() -> None:
    """Two AI messages in a row are two answers of a model."""
    call = {"name": "x", "args": {}, "id": "c"}
    trace = langchain.trace_of_messages(
        [
            {"type": "human", "content": "go"},
            {"type": "ai", "content": "", "tool_calls": [call]},
            {"type": "ai", "content": "Done."},
        ]
    )
    assert _steps(trace) == [({"tool": "x"}, {"text": "Done."})]


def test_ledger_tells_replies_between_calls_in_their_place(chat: Any) -> None:
    """What was said before a call stands before it in the ledger of an import."""
    trace = openai.trace_of_messages(
        [
            chat.user("go"),
            chat.model(None, WEATHER),
            chat.tool(),
            chat.model("Clear.", BOOK),
            chat.tool(),
            chat.model("Done."),
        ]
    )
    kinds = [event.kind for event in events_of(trace) if event.kind in ("tool_call", "reply")]
    assert kinds == ["tool_call", "reply", "tool_call", "reply"]


_turns = st.lists(
    st.builds(
        lambda user, said: Turn(user, tuple(text for text, _ in said), tuple(n for _, n in said)),
        st.text(max_size=3),
        st.lists(st.tuples(st.text(max_size=3), st.integers(0, 4)), max_size=3).map(
            lambda said: sorted(said, key=lambda one: one[1])
        ),
    ),
    min_size=1,
    max_size=3,
)
_calls = st.lists(st.builds(ToolCall, st.just("x"), asked_by=st.none() | st.integers(0, 4)))


@settings(deadline=None, max_examples=100)
@given(_turns, _calls)
def test_numbers_of_answers_survive_a_ledger(turns: list[Turn], calls: list[ToolCall]) -> None:
    """A trace with them is read back as it was written."""
    trace = Trace(tuple(turns), tuple(calls))
    assert trace_of(events_of(trace)) == trace


def test_what_an_agent_hands_back_keeps_the_numbers_of_its_answers(chat: Any) -> None:
    """A live agent that returns chat messages shows which calls were made together."""
    events: list[Event] = []
    recorder = Recorder(events.append)
    for text in ("one", "two"):
        recorder.turn(text)
        recorder.answer(
            openai.trace_of_messages([chat.model(None, WEATHER, BOOK), chat.model("Done.")])
        )
    steps = [turn.steps for turn in read_recorded(events).turns]
    assert [[sorted(step) for step in turn or ()] for turn in steps] == [[["tools"], ["text"]]] * 2


def test_calls_without_numbers_are_steps_of_their_own_for_review() -> None:
    """Where nobody recorded what was asked for together, the draft says so."""
    recorded = read_recorded(events_of(Trace.from_calls(["a", "b"], "Done.", user="go")))
    assert recorded.turns[0].steps == ({"tool": "a"}, {"tool": "b"}, {"text": "Done."})
    assert "does not tell which calls were made together" in recorded.notes[0].text


def test_a_call_that_no_model_asked_for_is_not_in_the_script() -> None:
    """A tool that ran by itself is the agent's own doing."""
    calls = (ToolCall("asked", asked_by=0), ToolCall("own"))
    recorded = read_recorded(events_of(Trace((Turn("go"),), calls)))
    assert recorded.turns[0].steps == ({"tool": "asked"},)
    assert "no model was seen to ask for own" in recorded.notes[0].text


def test_an_agent_that_calls_no_model_has_an_empty_script() -> None:
    """Models observed, and none called: `model: []`."""
    trace = replace(Trace.from_calls(["a"], "Done.", user="go"), models_observed=True)
    assert _steps(trace) == [()]
    assert _steps(replace(trace, model_calls=(ModelCall("m"),))) != [()]


def test_malformed_arguments_become_a_fault_for_review(chat: Any) -> None:
    """What was no JSON object cannot be scripted; the nearest fault stands there."""
    trace = openai.trace_of_messages(
        [chat.user("go"), chat.model(None, ("book", '{"a": '), WEATHER)]
    )
    recorded = read_recorded(events_of(trace))
    assert recorded.turns[0].steps == (
        {"tool": "get_weather", "args": {"city": "Denver"}},
        {"fault": "truncated_tool_json", "tool": "book"},
    )
    assert '{"a": ' in recorded.notes[0].text


def test_user_messages_in_a_row_and_a_last_one_without_an_answer(chat: Any) -> None:
    """An import joins what reached the model together, and leaves out what nothing answered."""
    trace = openai.trace_of_messages(
        [chat.user("a"), chat.user("b"), chat.model("Ok."), chat.user("bye")]
    )
    recorded = usable_turns(read_recorded(events_of(trace)), is_import=True)
    assert [turn.user for turn in recorded.turns] == ["a\n\nb"]
    assert [note.needs_review for note in recorded.notes] == [True, False]
    alive = usable_turns(read_recorded(events_of(trace)), is_import=False)
    assert [(turn.user, turn.steps is None) for turn in alive.turns] == [
        ("a", True),
        ("b", False),
        ("bye", True),
    ]


def test_what_an_agent_says_first_is_left_out(chat: Any) -> None:
    """A greeting answers nobody, so no script can bring it about."""
    trace = openai.trace_of_messages([chat.model("Hello!"), chat.user("a"), chat.model("Ok.")])
    recorded = usable_turns(read_recorded(events_of(trace)), is_import=True)
    assert [turn.user for turn in recorded.turns] == ["a"]
    assert "the agent spoke first" in recorded.notes[0].text


STEPS: list[dict[str, Any]] = [
    {"fault": "overloaded", "times": 2},
    {"tools": [{"tool": "a", "args": {"x": 1}}, {"tool": "b", "args": {}}], "text": "one"},
    {"tools": [{"tool": "c", "args": {"deep": [{"n": None}]}}]},
    {"json": {"fit": 4}},
]


def _loaded(data: dict[str, Any]) -> Any:
    return suite_from_data({"suite": "s", "scenarios": [data]}).scenarios[0]


def test_a_draft_from_the_gateway_replays_to_the_same_ledger(
    recorded_run: Callable[..., Run],
    replayed: Any,
) -> None:
    """The same agent meets the same answers: faults, parallel calls, JSON and refusals."""
    turns = [
        {"": {"when": None, "steps": STEPS}},
        {"": {"when": None, "steps": [{"refusal": "I cannot."}]}},
    ]
    first = replayed(turns, ["hi", "again"])
    draft = draft_scenario(recorded_run(first), "talk")
    assert draft.data["turns"][0]["model"][0] == {"fault": "overloaded", "times": 2}
    second = replayed(_loaded(draft.data), ["hi", "again"])
    assert leaves_that_differ(first, second) == []


def test_a_request_that_nothing_answered_is_for_review(
    recorded_run: Callable[..., Run], replayed: Any
) -> None:
    """An unscripted call shows that the script needs a step more."""
    first = replayed(
        [{"": {"when": None, "steps": [{"tools": [{"tool": "a", "args": {}}]}]}}], ["hi"]
    )
    draft = draft_scenario(recorded_run(first), "talk")
    assert draft.data["model"] == [{"tool": "a"}]
    assert any("a request of the agent was not answered" in text for text in draft.review)


def test_named_scripts_keep_their_when_where_the_suite_tells_it(
    recorded_run: Callable[..., Run], replayed: Any, tmp_path: Any
) -> None:
    """Steps go back under their names; without the suite they are one list, for review."""
    scripts = {
        "chat": {"when": None, "steps": [{"text": "Ok."}]},
        "other": {"when": {"user": {"$contains": "never"}}, "steps": []},
    }
    events = replayed([scripts], ["hi"])
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "suite: s\nscenarios:\n  - id: talk\n    input: hi\n    expect: {replies: 1}\n"
        "    model: {chat: [{text: Ok.}], other: {when: {user: x}, steps: [{text: y}]}}\n"
    )
    run = recorded_run(events, suite_path=str(suite))
    assert draft_scenario(run, "talk").data["model"] == {"chat": [{"text": "Ok."}]}
    other = tmp_path / "other.yaml"
    other.write_text(suite.read_text().replace("id: talk", "id: elsewhere"))
    plain = draft_scenario(run, "talk", suite=other)
    assert plain.data["model"] == [{"text": "Ok."}]
    assert any("`when` is unknown" in text for text in plain.review)


def test_a_conversation_without_a_user_is_not_drafted(
    chat: Any, imported: Callable[..., Run]
) -> None:
    """Nobody says anything: there is no input, and the reason says so."""
    with pytest.raises(Undraftable, match="no user turn with an answer"):
        draft_scenario(imported([chat.model("Hello!")]), "talk-0")


def test_turns_in_which_the_clock_moves_are_kept(recorded_run: Callable[..., Run]) -> None:
    """`advance` and `restart` stand between what the user says, and are no empty user turns."""
    events: list[Event] = []
    recorder = Recorder(events.append)
    recorder.start(scenario="talk", trial=0, lane="contract")
    recorder.turn("one")
    recorder.answer(Trace.from_calls([], "1"))
    recorder.turn("", advance_s=3600.0)
    recorder.turn("", restart="kill")
    recorder.turn("two")
    recorder.answer(Trace.from_calls(["x"], "2"))
    recorder.end(Ending())
    draft = draft_scenario(recorded_run(events), "talk")
    turns = draft.data["turns"]
    assert [turn.get("user", turn.get("advance")) for turn in turns] == ["one", 3600.0, None, "two"]
    assert turns[2] == {"restart": "kill"}
    assert "model" not in turns[1]


def test_a_fault_cuts_off_the_same_where_the_scenario_is_known(
    recorded_run: Callable[..., Run], replayed: Any
) -> None:
    """Only the suite has the answer whole; without it the draft says that it does not."""
    fault = {"fault": "truncated_tool_json", "tool": "a", "args": {"x": "long enough"}}
    written = {"id": "talk", "input": "hi", "model": [fault, fault, {"text": "Ok."}]}
    gold = _loaded({**written, "expect": {"tools": []}})
    first = replayed(gold, ["hi"])
    run = recorded_run(first)
    blind = draft_scenario(run, "talk")
    assert blind.data["model"][0] == {"fault": "truncated_tool_json", "tool": "a", "times": 2}
    assert any("is not known whole" in text for text in blind.review)
    suite = suite_from_data({"suite": "s", "scenarios": [{**written, "expect": {"replies": 1}}]})
    draft = draft_scenario(run, "talk", suite=suite)
    assert draft.data["model"][0] == {**fault, "times": 2}
    assert leaves_that_differ(first, replayed(_loaded(draft.data), ["hi"])) == []
