"""LangChain messages as traces, in three dumps and alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from evalkit.errors import TraceError
from evalkit.messages.langchain import trace_of_messages
from evalkit.trace import Usage


def _conversation() -> list[BaseMessage]:
    bad = {"name": "g", "args": '{"a', "id": "c2", "error": "cut", "type": "invalid_tool_call"}
    good = {"name": "f", "args": {"n": 2**70}, "id": "c1", "type": "tool_call"}
    return [
        SystemMessage("Be kind."),
        HumanMessage("hi"),
        AIMessage("", tool_calls=[good], invalid_tool_calls=[bad]),
        ToolMessage("broken", tool_call_id="c1", status="error"),
        ToolMessage("no json", tool_call_id="c2"),
        AIMessage([{"type": "text", "text": "Bye."}]),
    ]


def _as_dicts(messages: list[BaseMessage]) -> object:
    return messages_to_dict(messages)


def _as_constructors(messages: list[BaseMessage]) -> object:
    return [dumpd(message) for message in messages]


def _as_flat(messages: list[BaseMessage]) -> object:
    return [message.model_dump() for message in messages]


def _as_state(messages: list[BaseMessage]) -> object:
    return {"messages": messages}


def _alive(messages: list[BaseMessage]) -> object:
    return messages


@pytest.mark.parametrize("dump", [_as_dicts, _as_constructors, _as_flat, _as_state, _alive])
def test_langchain_dumps_all_read_the_same(dump: Callable[[list[BaseMessage]], Any]) -> None:
    """The three dumps, a graph's state and live objects give one trace."""
    trace = trace_of_messages(dump(_conversation()))
    assert [(c.name, c.args, c.raw_args, c.status, c.result) for c in trace.tool_calls] == [
        ("f", {"n": 2**70}, None, "error", "broken"),
        ("g", None, '{"a', "error", "no json"),
    ]
    assert (trace.reply, trace.metadata) == ("Bye.", {"system": "Be kind."})
    assert [turn.user for turn in trace.turns] == ["hi"]


def test_langchain_counts_a_call_once_that_stands_in_content_too() -> None:
    """Anthropic's tool_use block in the content is the call in ``tool_calls``."""
    block = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    message = AIMessage(
        [{"type": "text", "text": "Let me see."}, block],
        tool_calls=[{"name": "f", "args": {}, "id": "c1"}],
    )
    trace = trace_of_messages([message])
    assert len(trace.tool_calls) == 1
    assert trace.reply == "Let me see."


def test_langchain_reads_calls_that_only_the_vendor_noted() -> None:
    """Old dumps keep OpenAI's own calls under ``additional_kwargs``."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [call]}}
    assert trace_of_messages([message]).tool_calls[0].args == {"a": 1}


def test_langchain_chunks_are_messages() -> None:
    """The sum of a stream's chunks is read like a message."""
    chunk = AIMessageChunk(content="Hello")
    assert trace_of_messages([chunk.model_dump()]).reply == "Hello"


def test_langchain_usage_makes_model_calls_observed() -> None:
    """Where every message of the model tells its usage, the model's calls are observed."""
    usage = {
        "input_tokens": 5,
        "output_tokens": 2,
        "total_tokens": 7,
        "input_token_details": {"cache_read": 1},
    }
    said = {"type": "ai", "content": "x", "usage_metadata": usage,
            "response_metadata": {"model_name": "m-1", "finish_reason": "stop"}}  # fmt: skip
    trace = trace_of_messages([{"type": "human", "content": "hi"}, said])
    assert trace.models_observed
    assert trace.model_calls[0].usage == Usage(5, 2, 1)
    assert (trace.model_calls[0].model, trace.model_calls[0].finish_reason) == ("m-1", "stop")
    assert not trace_of_messages([said, {"type": "ai", "content": "y"}]).models_observed
    assert not trace_of_messages([{"type": "human", "content": "hi"}]).models_observed


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"type": "alien", "content": "x"}], r"messages\[0\]: type 'alien'.*human"),
        ([{"role": "user", "content": "x"}], r"messages\[0\]: type None"),
        ([{"type": "tool", "content": "x", "tool_call_id": "c"}], r"messages\[0\]: a tool result"),
        ([{"type": "ai", "data": 7}], r"messages\[0\].data"),
        (
            [
                {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}, "id": "c"}]},
                {"type": "tool", "content": "x", "tool_call_id": "c", "status": "odd"},
            ],
            r"messages\[1\]: status 'odd'",
        ),
    ],
)
def test_langchain_says_what_it_cannot_read_and_where(messages: Any, problem: str) -> None:
    """What cannot be read is an error with the message's index."""
    with pytest.raises(TraceError, match=problem):
        trace_of_messages(messages)
