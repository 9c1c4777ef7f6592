"""Anthropic's Messages API, spoken with the real SDK and checked against its types."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pydantic
import pytest
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent

TOOLS: list[Any] = [
    {
        "name": name,
        "description": "A tool.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    for name in ("get_weather", "search")
]
ASK: dict[str, Any] = {
    "model": "claude-test",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Is it raining in Denver? Grüße! ☔"}],
    "tools": TOOLS,
}
WEATHER = {"tool": "get_weather", "args": {"city": "Denver"}}
SEARCH = {"tool": "search", "args": {"city": "Zürich ☃", "n": 10**25, "deep": [{"a": None}]}}
STEPS: dict[str, Any] = {
    "text": {"text": "It is dry ☀ in Denver."},
    "one_tool": {"tools": [WEATHER]},
    "tools_with_text": {"tools": [WEATHER, SEARCH, WEATHER], "text": "Let me look."},
    "json": {"json": {"fit": 4, "gaps": ["kubernetes", "é"]}},
    "json_scalar": {"json": None},
    "refusal": {"refusal": "I cannot help with that."},
    "thinking": {"thinking": "Rain is wet.", "text": "Dry."},
    "thinking_and_tool": {"thinking": "Rain is wet.", "tools": [WEATHER]},
    "empty": {"text": ""},
}


class Fit(pydantic.BaseModel):
    fit: int
    gaps: list[str]


def _create(client: anthropic.Anthropic, stream: bool, **extra: Any) -> Message:
    """Ask once, in one piece or as a stream that the SDK puts together."""
    if not stream:
        return client.messages.create(**{**ASK, **extra})
    with client.messages.stream(**{**ASK, **extra}) as events:
        for _ in events:
            pass
        return events.get_final_message()


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_body_is_a_message_of_the_sdk(serve, strictly, step: Any) -> None:
    """A whole answer has every field that the SDK's type needs, and none that is unknown to it."""
    answer = serve([step]).post("/v1/messages", ASK)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert strictly(Message, answer.json).id == "msg_0001"


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_every_stream_event_is_one_of_the_sdk(serve, strictly, step: Any) -> None:
    """Each event of a stream fits the SDK's type, and its name is its type."""
    answer = serve([step]).post("/v1/messages", ASK | {"stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    for name, data in answer.events:
        assert name == data["type"]
        if name != "ping":
            strictly(RawMessageStreamEvent, data)
    assert [name for name, _ in answer.events][-2:] == ["message_delta", "message_stop"]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_stream_and_body_say_the_same(serve, claude, step: Any) -> None:
    """What the SDK puts together from a stream is what it reads from a body."""
    whole = _create(claude(serve([step])), stream=False)
    streamed = _create(claude(serve([step])), stream=True)
    kept = {"id", "content", "stop_reason", "stop_details", "model", "role"}
    expected = whole.model_dump(include=kept)
    got = streamed.model_dump(include=kept)
    for block in got["content"]:
        block.pop("parsed_output", None)
    assert got == expected
    assert streamed.usage.output_tokens == whole.usage.output_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_tool_calls_arrive_whole(serve, claude, stream: bool) -> None:
    """Several tool uses keep their order, ids and arguments, odd characters and all."""
    message = _create(claude(serve([STEPS["tools_with_text"]])), stream)
    uses = [block for block in message.content if block.type == "tool_use"]
    assert [use.id for use in uses] == ["toolu_0001", "toolu_0001_2", "toolu_0001_3"]
    assert [use.input for use in uses] == [WEATHER["args"], SEARCH["args"], WEATHER["args"]]
    assert message.stop_reason == "tool_use"
    assert message.content[0].text == "Let me look."


@pytest.mark.parametrize("stream", [False, True])
def test_refusal_has_its_own_stop_reason(serve, claude, stream: bool) -> None:
    """A refusal is told in the stop reason and its details."""
    message = _create(claude(serve([STEPS["refusal"]])), stream)
    assert message.stop_reason == "refusal"
    assert message.stop_details is not None
    assert message.stop_details.explanation == "I cannot help with that."


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_a_signed_block_before_the_text(serve, claude, stream: bool) -> None:
    """Thinking comes first and has a signature, as agents must send it back."""
    thinking, text = _create(claude(serve([STEPS["thinking"]])), stream).content
    assert (thinking.thinking, text.text) == ("Rain is wet.", "Dry.")
    assert thinking.signature


def test_json_goes_where_the_sdk_parses_it(serve, claude) -> None:
    """A `json` step answers `messages.parse` with an object of the asked type."""
    gateway = serve([STEPS["json"]])
    message = claude(gateway).messages.parse(**ASK, output_format=Fit)
    assert message.parsed_output == Fit(fit=4, gaps=["kubernetes", "é"])


@pytest.mark.parametrize(
    "choice", [{"type": "tool", "name": "get_weather"}, {"type": "any"}], ids=["named", "any"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_json_goes_into_a_forced_tool(serve, claude, choice: Any, stream: bool) -> None:
    """Where the request forces one tool, structured output is its input, and no tool call."""
    gateway = serve([STEPS["json"]])
    message = _create(claude(gateway), stream, tools=TOOLS[:1], tool_choice=choice)
    [use] = message.content
    assert (use.name, use.input) == ("get_weather", STEPS["json"]["json"])
    assert not gateway.of_kind("tool_call")
    assert gateway.of_kind("model_reply")[0]["reply"] == STEPS["json"]


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_reads_back_as_a_trace(serve, claude, stream: bool) -> None:
    """Two calls with two tools between them are a trace with results, usage and finish reasons."""
    gateway = serve([{"tools": [WEATHER, SEARCH]}, {"text": "It rains."}])
    client = claude(gateway)
    first = _create(client, stream)
    uses = [block for block in first.content if block.type == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": uses[1].id, "content": "boom", "is_error": True},
        {"type": "tool_result", "tool_use_id": uses[0].id,
         "content": [{"type": "text", "text": "rain"}]},
    ]  # fmt: skip
    history = [*ASK["messages"], {"role": "assistant", "content": first.content}]
    messages = [*history, {"role": "user", "content": results}]
    last = _create(client, stream, messages=messages)
    assert last.content[0].text == "It rains."
    assert gateway.finish() == ()
    trace = gateway.trace
    assert [(call.name, call.status, call.result) for call in trace.tool_calls] == [
        ("get_weather", "ok", "rain"),
        ("search", "error", "boom"),
    ]
    assert [call.finish_reason for call in trace.model_calls] == ["tool_use", "end_turn"]
    assert trace.model_calls[1].usage.input_tokens == last.usage.input_tokens


def test_prompt_is_recorded_as_it_was_sent(serve, claude) -> None:
    """System prompt, tools and parameters are part of the recorded prompt."""
    gateway = serve([{"text": "ok"}])
    system = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    claude(gateway).messages.create(**ASK, system=system, metadata={"user_id": "u1"})
    [call] = gateway.of_kind("model_call")
    assert call["model"] == "claude-test"
    assert call["prompt"] == {
        "max_tokens": 100,
        "messages": ASK["messages"],
        "system": system,
        "tools": TOOLS,
        "metadata": {"user_id": "u1"},
    }


def test_beta_path_and_count_tokens_are_answered(serve, claude, strictly) -> None:
    """The beta API's path is the same endpoint; counting tokens takes no step of the script."""
    gateway = serve([{"text": "ok"}])
    client = claude(gateway)
    count = client.messages.count_tokens(model="m", messages=ASK["messages"], tools=TOOLS)
    assert strictly(MessageTokensCount, count.model_dump()).input_tokens > 10
    message = client.beta.messages.create(**ASK)
    assert message.usage.input_tokens == count.input_tokens
    assert gateway.n_requests == 1
    [counted] = gateway.of_kind("http")
    assert counted["body"]["messages"] == ASK["messages"]


def test_async_client_is_served_in_parallel(serve) -> None:
    """Many requests of one asynchronous client at a time are all answered, each once."""
    gateway = serve([{"text": f"answer {number}"} for number in range(20)])

    async def ask_all() -> list[Any]:
        address = f"http://127.0.0.1:{gateway.port}"
        async with anthropic.AsyncAnthropic(api_key="dummy", base_url=address) as client:
            return await asyncio.gather(*(client.messages.create(**ASK) for _ in range(20)))

    texts = {message.content[0].text for message in asyncio.run(ask_all())}
    assert texts == {f"answer {number}" for number in range(20)}
    assert [call["call"] for call in gateway.of_kind("model_call")] == list(range(20))


def test_unscripted_error_is_in_the_sdk_s_shape(serve, claude) -> None:
    """A request that no step answers is one 400 that the SDK does not repeat."""
    gateway = serve([])
    with pytest.raises(anthropic.BadRequestError, match="UNSCRIPTED") as caught:
        claude(gateway, max_retries=5).messages.create(**ASK)
    assert gateway.n_requests == 1
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert caught.value.request_id == "req_0001"
