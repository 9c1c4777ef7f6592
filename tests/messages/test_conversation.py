"""Pairing, arguments and content, which every vendor's messages share."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import TraceError
from evalkit.messages import anthropic, langchain, openai
from evalkit.messages.conversation import Conversation, Result, read_arguments, text_of_parts
from evalkit.trace import ToolCall


def _talk(*steps: object) -> list[tuple[str, str, Any]]:
    """Tell a conversation users (str), calls (name, id) and results (content, id)."""
    talk = Conversation()
    for number, step in enumerate(steps):
        match step:
            case str():
                talk.user(step)
            case ("call", str(name), str(call_id)):
                talk.call(ToolCall(name, {}, id=call_id))
            case ("result", content, str(call_id)):
                talk.result(Result(content, id=call_id), where=f"step {number}")
    return [(call.name, call.status, call.result) for call in talk.trace().tool_calls]


def test_conversation_pairs_one_id_used_twice_by_position() -> None:
    """Two calls with one id, each answered at once, get their own results."""
    assert _talk(
        "hi", ("call", "a", "x"), ("result", 1, "x"), ("call", "b", "x"), ("result", 2, "x")
    ) == [("a", "ok", 1), ("b", "ok", 2)]


def test_conversation_pairs_parallel_calls_of_one_id_in_order() -> None:
    """Two calls with one id in one message take the results in their order."""
    assert _talk(
        "hi", ("call", "a", "x"), ("call", "b", "x"), ("result", 1, "x"), ("result", 2, "x")
    ) == [("a", "ok", 1), ("b", "ok", 2)]


def test_conversation_prefers_the_call_of_the_same_turn() -> None:
    """A call that an earlier turn left open does not take the result of a later one."""
    assert _talk("hi", ("call", "a", "x"), "stop", ("call", "b", "x"), ("result", 2, "x")) == [
        ("a", "unknown", None),
        ("b", "ok", 2),
    ]


def test_conversation_call_without_result_is_unknown() -> None:
    """No result recorded is ``unknown``, never ``ok``."""
    assert _talk("hi", ("call", "a", "x")) == [("a", "unknown", None)]


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ((("result", 1, "x"),), r"step 0.*'x'.*does not come before"),
        ((("call", "a", "x"), ("result", 1, "x"), ("result", 2, "x")), r"has its result already"),
    ],
)
def test_conversation_refuses_a_result_without_its_call(
    steps: tuple[object, ...], problem: str
) -> None:
    """A result that belongs to no waiting call is an error that says which and why."""
    with pytest.raises(TraceError, match=problem):
        _talk(*steps)


def test_conversation_malformed_call_stays_an_error_with_its_result() -> None:
    """A call with malformed arguments is ``error`` whatever the tool answered."""
    talk = Conversation()
    talk.call(ToolCall("a", None, raw_args="{", id="x"))
    talk.result(Result("done", id="x"), where="here")
    call = talk.trace().tool_calls[0]
    assert (call.status, call.raw_args, call.result) == ("error", "{", "done")


@pytest.mark.parametrize(
    ("raw", "args", "kept"),
    [
        ('{"a": 1}', {"a": 1}, None),
        ({"a": 1}, {"a": 1}, None),
        ("{}", {}, None),
        ('{"n": 9007199254740993123456789}', {"n": 9007199254740993123456789}, None),
        ('{"s": "\\ud800\\u0000"}', {"s": "\ud800\x00"}, None),
        ("", None, ""),
        ('{"city": "Den', None, '{"city": "Den'),
        ("[1]", None, "[1]"),
        ("null", None, "null"),
        ('"text"', None, '"text"'),
        ('{"a": NaN}', None, '{"a": NaN}'),
        (None, None, "null"),
        ("[" * 100_000, None, "[" * 100_000),
    ],
)
def test_read_arguments_keeps_what_is_no_object(
    raw: object, args: object, kept: str | None
) -> None:
    """Arguments are an exact JSON object, or their raw text with no arguments at all."""
    assert read_arguments(raw) == (args, kept)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("plain", "plain"),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": None}], ""),
        ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}], "[image_url]\nb"),
        (["a", {"text": "b"}], "a\nb"),
    ],
)
def test_text_of_parts_reads_every_form_of_content(content: object, text: str) -> None:
    """Content is nothing, a text, or parts; what is no text leaves its type behind."""
    assert text_of_parts(content, text_types=("text",), where="here") == text


@pytest.mark.parametrize("content", [7, {"text": "x"}, [7]])
def test_text_of_parts_refuses_other_content(content: object) -> None:
    """Content of any other kind is an error that says where."""
    with pytest.raises(TraceError, match="here"):
        text_of_parts(content, text_types=("text",), where="here")


def test_read_arguments_survives_json_round_trip() -> None:
    """The arguments read are those that a JSON writer wrote."""
    args = {"nested": {"list": [1, 1.5, None, True, "ü"]}}
    assert read_arguments(json.dumps(args))[0] == args


_KEYS = st.sampled_from([
    "role", "type", "content", "tool_calls", "function", "name", "arguments", "id", "input",
    "tool_call_id", "tool_use_id", "text", "data", "kwargs", "lc", "args", "status", "refusal",
    "function_call", "invalid_tool_calls", "usage_metadata", "response_metadata", "usage",
    "additional_kwargs", "choices", "message", "messages", "model", "stop_reason", "is_error",
    "input_token_details", "prompt_tokens_details", "output", "call_id", "custom", "system",
])  # fmt: skip
_WORDS = st.sampled_from([
    "user", "assistant", "tool", "system", "ai", "human", "text", "tool_use", "tool_result",
    "function_call", "function_call_output", "error", "x", "{}", "chat", "constructor", "",
])  # fmt: skip
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=25,
)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.dictionaries(_KEYS, _ANYTHING, max_size=6), max_size=4), _ANYTHING)
def test_messages_of_any_shape_are_read_or_refused(messages: Any, other: Any) -> None:
    """Whatever JSON stands for messages, it is read or refused with a ``TraceError``."""
    for vendor in (openai, anthropic, langchain):
        for value in (messages, other, {"messages": messages}):
            with contextlib.suppress(TraceError):
                vendor.trace_of_messages(value)
    for exchange in (openai.trace_of_exchange, anthropic.trace_of_exchange):
        with contextlib.suppress(TraceError):
            exchange({"messages": messages}, {"choices": other, "content": other, "usage": other})


def test_exchange_keeps_all_that_the_model_was_shown() -> None:
    """A text that is forbidden in prompts is also looked for in system prompt and tools."""
    user = [{"role": "user", "content": "Hi"}]
    request = {"model": "m", "system": "Be kind.", "tools": [{"name": "book"}], "messages": user}
    answers = {
        anthropic: {"content": [{"type": "text", "text": "Hello"}]},
        openai: {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]},
    }
    for vendor, response in answers.items():
        (call,) = vendor.trace_of_exchange(request, response).model_calls
        shown = {"system": "Be kind.", "tools": [{"name": "book"}], "messages": user}
        assert call.prompt == shown
