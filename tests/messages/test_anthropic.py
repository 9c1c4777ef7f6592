"""Anthropic messages as traces."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.errors import TraceError
from evalkit.messages.anthropic import trace_of_exchange, trace_of_messages
from evalkit.trace import Usage


def _use(name: str = "f", call_id: str = "t1", **tool_input: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": tool_input}


def _result(content: object = "ok", call_id: str = "t1", **more: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def _user(*content: object) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def _assistant(*content: object) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_anthropic_user_message_of_results_is_no_turn() -> None:
    """A user message that only brings tool results belongs to the turn before."""
    trace = trace_of_messages(
        [_user(_text("hi")), _assistant(_use()), _user(_result()), _assistant(_text("Bye."))]
    )
    assert [(turn.user, turn.replies) for turn in trace.turns] == [("hi", ("Bye.",))]


def test_anthropic_result_with_text_beside_it_is_answer_and_turn() -> None:
    """A user message may bring a result and say something: the result belongs to the call."""
    trace = trace_of_messages(
        [_user(_text("hi")), _assistant(_use()), _user(_result(), _text("and hurry"))]
    )
    assert [turn.user for turn in trace.turns] == ["hi", "and hurry"]
    assert trace.tool_calls[0].result == "ok"


def test_anthropic_several_uses_in_one_turn() -> None:
    """Several tool uses of one message are several calls, answered in any order."""
    trace = trace_of_messages(
        [
            {"role": "user", "content": "hi"},
            _assistant(_text("Let me see."), _use("a", "1", x=1), _use("b", "2")),
            _user(_result("second", "2"), _result("first", "1", is_error=True)),
        ]
    )
    assert [(c.name, c.status, c.result) for c in trace.tool_calls] == [
        ("a", "error", "first"),
        ("b", "ok", "second"),
    ]
    assert trace.reply == "Let me see."


def test_anthropic_text_around_a_use_is_two_replies() -> None:
    """Fragments of text are one reply; a tool use between them makes two."""
    trace = trace_of_messages(
        [_assistant(_text("One "), _text("thing."), _use(), _text("Another."))]
    )
    assert trace.replies == ("One thing.", "Another.")


def test_anthropic_thinking_is_no_reply() -> None:
    """What the model thinks is neither said nor done."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert trace_of_messages([_assistant(thought, _text("Yes."))]).replies == ("Yes.",)


def test_anthropic_input_that_is_text_is_malformed() -> None:
    """A tool input that a cut stream left as text is a failed call."""
    call = trace_of_messages([_assistant({**_use(), "input": '{"a'})]).tool_calls[0]
    assert (call.args, call.raw_args, call.status) == (None, '{"a', "error")


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ([_text("a"), _text("b")], "a\nb"),
        ([], ""),
        (None, None),
        ([{"type": "image", "source": {}}], [{"type": "image", "source": {}}]),
    ],
)
def test_anthropic_result_content(content: object, kept: object) -> None:
    """A result of nothing but text is its text; anything else stays as it is."""
    trace = trace_of_messages([_assistant(_use()), _user(_result(content))])
    assert trace.tool_calls[0].result == kept


def test_anthropic_server_tool_answers_in_the_assistant_message() -> None:
    """A server tool's use and result stand in one assistant message."""
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    answer = {"type": "web_search_tool_result", "tool_use_id": "s", "content": error}
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    call = trace_of_messages([_assistant(use, answer)]).tool_calls[0]
    assert (call.name, call.status) == ("web_search", "error")


def test_anthropic_exchange_keeps_usage_and_stop_reason() -> None:
    """A request and its response are one model call; unknown cache tokens stay unknown."""
    response = {
        "model": "claude-x",
        "content": [_use()],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": None},
    }
    request = {"system": "Be kind.", "messages": [{"role": "user", "content": "hi"}]}
    trace = trace_of_exchange(request, response)
    assert trace.model_calls[0].usage == Usage(5, 2)
    assert trace.model_calls[0].finish_reason == "tool_use"
    assert trace.models_observed
    assert trace.metadata == {"system": "Be kind."}


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "tool", "content": "x"}], r"messages\[0\]: role 'tool'"),
        ([_assistant({"type": "hologram"})], r"messages\[0\].content\[0\].*'hologram'"),
        ([_user(_result())], r"messages\[0\].content\[0\]: a tool result"),
        ([_user("x", 7)], r"messages\[0\].content\[0\]"),
        ([{"role": "user", "content": 7}], r"messages\[0\]: content"),
    ],
)
def test_anthropic_says_what_it_cannot_read_and_where(messages: Any, problem: str) -> None:
    """What cannot be read is an error with the message's index."""
    with pytest.raises(TraceError, match=problem):
        trace_of_messages(messages)


def test_anthropic_exchange_needs_content() -> None:
    """A response without content is an error, not an empty trace."""
    with pytest.raises(TraceError, match="content"):
        trace_of_exchange({"messages": []}, {"type": "error"})


def test_anthropic_reads_objects_of_the_sdk() -> None:
    """Blocks that the real SDK made are read as they are."""
    types = pytest.importorskip("anthropic.types")
    message = types.Message(
        id="m", type="message", role="assistant", model="claude-x", stop_reason="tool_use",
        content=[types.ToolUseBlock(type="tool_use", id="t", name="f", input={"a": 1})],
        usage=types.Usage(input_tokens=3, output_tokens=4),
    )  # fmt: skip
    assert trace_of_messages([message]).tool_calls[0].args == {"a": 1}
    trace = trace_of_exchange({"messages": [{"role": "user", "content": "x"}]}, message)
    assert trace.model_calls[0].usage == Usage(3, 4)
