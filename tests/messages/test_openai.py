"""OpenAI chat messages and Responses items as traces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import TraceError
from evalkit.messages.openai import trace_of_exchange, trace_of_messages
from evalkit.trace import Trace, Usage


def _asks(name: str = "f", arguments: object = "{}", call_id: str = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _tool(content: object = "ok", call_id: str = "c1", **more: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def test_openai_turns_begin_with_user_messages() -> None:
    """Each user message is a turn, and calls carry the turn in which they were made."""
    trace = trace_of_messages(
        [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": [{"type": "text", "text": "two"}]},
            _asks(),
            _tool(),
        ]
    )
    assert [(turn.user, turn.replies) for turn in trace.turns] == [
        ("one", ("a", "b")),
        ("two", ()),
    ]
    assert trace.tool_calls[0].turn == 1
    assert trace.metadata == {"system": "Be kind."}
    assert trace.tools_observed
    assert not trace.models_observed


@pytest.mark.parametrize("missing", [{}, {"content": None}, {"content": []}, {"content": ""}])
def test_openai_assistant_may_lack_content(missing: dict[str, Any]) -> None:
    """Content that is null, missing or empty beside tool calls is no reply."""
    message = {**_asks(), **missing}
    if not missing:
        del message["content"]
    trace = trace_of_messages([{"role": "user", "content": "x"}, message, _tool()])
    assert trace.replies == ()
    assert trace.tool_calls[0].status == "ok"


@pytest.mark.parametrize("arguments", ['{"city": "Denver"}', {"city": "Denver"}])
def test_openai_arguments_are_text_or_object(arguments: object) -> None:
    """Arguments may be a JSON string or an object."""
    trace = trace_of_messages([_asks(arguments=arguments)])
    assert trace.tool_calls[0].args == {"city": "Denver"}


@pytest.mark.parametrize("arguments", ['{"city": "Den', "[]", '"x"', "", None, 7])
def test_openai_malformed_arguments_are_a_failed_call(arguments: object) -> None:
    """Arguments that are no JSON object make the call an error, with the raw text."""
    call = trace_of_messages([_asks(arguments=arguments), _tool()]).tool_calls[0]
    assert (call.args, call.status) == (None, "error")
    assert call.raw_args is not None


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "ok"),
        ({"is_error": True}, "error"),
        ({"status": "error"}, "error"),
        ({"status": "denied"}, "denied"),
        ({"status": "success"}, "ok"),
    ],
)
def test_openai_status_comes_from_the_recorder(more: dict[str, Any], status: str) -> None:
    """A result is ok unless the recorder says otherwise."""
    trace = trace_of_messages([_asks(), _tool(**more)])
    assert trace.tool_calls[0].status == status


def test_openai_refusal_is_a_reply() -> None:
    """What the model says when it refuses is what the user reads."""
    message = {"role": "assistant", "content": None, "refusal": "I cannot do that."}
    assert trace_of_messages([message]).reply == "I cannot do that."


def test_openai_legacy_function_call_pairs_by_name() -> None:
    """The old ``function_call`` has no id; its result names the function."""
    trace = trace_of_messages(
        [
            {"role": "assistant", "function_call": {"name": "f", "arguments": '{"a": 1}'}},
            {"role": "function", "name": "f", "content": "done"},
        ]
    )
    assert (trace.tool_calls[0].args, trace.tool_calls[0].result) == ({"a": 1}, "done")


def test_openai_responses_items_are_read() -> None:
    """Items of the Responses API give the same calls and replies."""
    trace = trace_of_messages(
        [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": "fc"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
            {"type": "message", "role": "assistant",
             "content": [{"type": "output_text", "text": "Bye."}]},
        ]
    )  # fmt: skip
    assert (trace.tool_calls[0].result, trace.reply) == ("done", "Bye.")


def test_openai_exchange_keeps_model_usage_and_reason() -> None:
    """A request and its response are one model call."""
    usage = {
        "prompt_tokens": 68,
        "completion_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    response = {
        "model": "gpt-x-2",
        "choices": [{"finish_reason": "tool_calls", "message": _asks()}],
        "usage": usage,
    }
    request = {"model": "gpt-x", "messages": [{"role": "user", "content": "hi"}]}
    trace = trace_of_exchange(request, response)
    call = trace.model_calls[0]
    assert (call.model, call.finish_reason) == ("gpt-x-2", "tool_calls")
    assert call.usage == Usage(68, 16, 8)
    assert trace.models_observed
    assert trace.tool_calls[0].status == "unknown"


def test_openai_exchange_with_history_does_not_claim_to_see_every_model_call() -> None:
    """Earlier answers in the history were given in requests that nobody recorded."""
    request = {"messages": [{"role": "user", "content": "hi"}, _asks(), _tool()]}
    response = {"choices": [{"message": {"role": "assistant", "content": "Bye."}}]}
    trace = trace_of_exchange(request, response)
    assert not trace.models_observed
    assert trace.model_calls[0].usage is None


class _Live:
    """Stands for an object of the SDK."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def model_dump(self) -> dict[str, Any]:
        return self.data


def test_openai_reads_live_objects() -> None:
    """Objects with ``model_dump`` are messages too, mixed with plain ones."""
    trace = trace_of_messages([{"role": "user", "content": "x"}, _Live(_asks()), _tool()])
    assert trace.tool_calls[0].status == "ok"


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (
            [{"role": "assistant"}, {"role": "robot", "content": "x"}],
            r"messages\[1\]: role 'robot'",
        ),
        ([{"type": "computer_call"}], r"messages\[0\]: type 'computer_call'.*function_call"),
        (["text"], r"messages\[0\]: 'text' is no message"),
        ("text", "no list of messages"),
        ({"role": "user"}, "no list of messages"),
        ([{"role": "user", "content": 7}], r"messages\[0\]: content 7"),
        ([_asks(name="")], r"messages\[0\].tool_calls\[0\]: a tool call without a name"),
        ([{"role": "assistant", "tool_calls": "x"}], "tool_calls must be a list"),
        ([{"role": "assistant", "tool_calls": [{"id": "x"}]}], "`function` or `custom`"),
        ([_tool()], r"messages\[0\]: a tool result"),
        ([_asks(), _tool(status="fine")], r"messages\[1\]: status 'fine'"),
    ],
)
def test_openai_says_what_it_cannot_read_and_where(messages: Any, problem: str) -> None:
    """What cannot be read is an error with the message's index."""
    with pytest.raises(TraceError, match=problem):
        trace_of_messages(messages)


@pytest.mark.parametrize("response", [{}, {"choices": []}, {"choices": [{"delta": {}}]}])
def test_openai_exchange_needs_a_whole_response(response: dict[str, Any]) -> None:
    """A response without a message is an error, not an empty trace."""
    with pytest.raises(TraceError, match="chat completion"):
        trace_of_exchange({"messages": []}, response)


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())
)
_JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)
)
_CALL = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.dictionaries(st.text(st.characters()), _JSON, max_size=3),
    st.sampled_from(["ok", "error", "unknown"]),
    st.sampled_from(["c1", "c2"]),
)


def _written(turns: list[list[tuple[str, dict[str, Any], str, str]]]) -> list[dict[str, Any]]:
    """Write turns of calls as OpenAI messages, one call a message, ids reused."""
    messages: list[dict[str, Any]] = []
    for calls in turns:
        messages.append({"role": "user", "content": "go on"})
        for name, args, status, call_id in calls:
            # A call that stays open has an id of its own; else its result would be taken.
            own = f"open{len(messages)}" if status == "unknown" else call_id
            messages.append(_asks(name, json.dumps(args), own))
            if status != "unknown":
                messages.append(_tool(f"answer {len(messages)}", own, status=status))
    return messages


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(_CALL, max_size=4), max_size=3))
def test_openai_reads_back_the_calls_that_were_written(
    turns: list[list[tuple[str, dict[str, Any], str, str]]],
) -> None:
    """Any calls written as OpenAI messages read back: name, arguments, status, turn, order."""
    trace: Trace = trace_of_messages(_written(turns))
    expected = [
        (name, args, status, number)
        for number, calls in enumerate(turns)
        for name, args, status, _ in calls
    ]
    assert [(c.name, c.args, c.status, c.turn) for c in trace.tool_calls] == expected
