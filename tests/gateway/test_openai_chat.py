"""OpenAI's Chat Completions API, spoken with the real SDK and checked against its types."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pydantic
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    for name in ("get_weather", "search")
]
ASK: dict[str, Any] = {
    "model": "gpt-test",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Is it raining in Denver? Grüße! ☔"},
    ],
    "tools": TOOLS,
}
PLAIN = {key: ASK[key] for key in ASK if key != "tools"}
WEATHER = {"tool": "get_weather", "args": {"city": "Denver"}}
SEARCH = {"tool": "search", "args": {"city": "Zürich ☃", "n": 10**25, "deep": [{"a": None}]}}
STEPS: dict[str, Any] = {
    "text": {"text": "It is dry ☀ in Denver."},
    "one_tool": {"tools": [WEATHER]},
    "tools_with_text": {"tools": [WEATHER, SEARCH, WEATHER], "text": "Let me look."},
    "json": {"json": {"fit": 4, "gaps": ["kubernetes", "é"]}},
    "refusal": {"refusal": "I cannot help with that."},
    "thinking": {"thinking": "Rain is wet.", "text": "Dry."},
    "empty": {"text": ""},
}


class Fit(pydantic.BaseModel):
    fit: int
    gaps: list[str]


def _create(client: openai.OpenAI, stream: bool, **extra: Any) -> ChatCompletionMessage:
    """Ask once, in one piece or as a stream that the SDK puts together."""
    return _completion(client, stream, **extra).choices[0].message


def _completion(client: openai.OpenAI, stream: bool, **extra: Any) -> Any:
    if not stream:
        return client.chat.completions.create(**{**ASK, **extra})
    options = {"include_usage": True}
    with client.chat.completions.stream(**{**ASK, **extra}, stream_options=options) as events:
        for _ in events:
            pass
        return events.get_final_completion()


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_body_is_a_completion_of_the_sdk(serve, strictly, step: Any) -> None:
    """A whole answer has every field that the SDK's type needs, and none that is unknown to it."""
    answer = serve([step]).post("/v1/chat/completions", ASK)
    assert answer.status == 200
    assert strictly(ChatCompletion, answer.json).id == "chatcmpl-0001"


@pytest.mark.parametrize("usage", [False, True])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_every_chunk_is_one_of_the_sdk(serve, strictly, step: Any, usage: bool) -> None:
    """Each chunk fits the SDK's type; usage comes in a last one, and only where it is asked for."""
    options = {"stream_options": {"include_usage": True}} if usage else {}
    answer = serve([step]).post("/v1/chat/completions", ASK | {"stream": True} | options)
    *chunks, (_, end) = answer.events
    assert end == "[DONE]"
    read = [strictly(ChatCompletionChunk, data) for _, data in chunks]
    assert [bool(chunk.usage) for chunk in read] == [False] * (len(read) - 1) + [usage]
    assert sum(bool(chunk.choices and chunk.choices[0].finish_reason) for chunk in read) == 1


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_stream_and_body_say_the_same(serve, gpt, step: Any) -> None:
    """What the SDK puts together from a stream is what it reads from a body."""
    whole = _completion(gpt(serve([step])), stream=False)
    streamed = _completion(gpt(serve([step])), stream=True)
    assert streamed.choices[0].finish_reason == whole.choices[0].finish_reason
    assert streamed.usage == whole.usage
    one, other = whole.choices[0].message, streamed.choices[0].message
    assert (other.content or "", other.refusal) == (one.content or "", one.refusal)
    assert _calls(other) == _calls(one)


def _calls(message: ChatCompletionMessage) -> list[tuple[str, str, str]]:
    calls = message.tool_calls or []
    return [(call.id, call.function.name, call.function.arguments) for call in calls]


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_tool_calls_arrive_whole(serve, gpt, stream: bool) -> None:
    """Several tool calls keep their order, ids and arguments, odd characters and all."""
    calls = _calls(_create(gpt(serve([STEPS["tools_with_text"]])), stream))
    assert [id_ for id_, _, _ in calls] == ["call_0001", "call_0001_2", "call_0001_3"]
    expected = [WEATHER["args"], SEARCH["args"], WEATHER["args"]]
    assert [json.loads(arguments) for _, _, arguments in calls] == expected


@pytest.mark.parametrize("stream", [False, True])
def test_refusal_has_its_own_field(serve, gpt, stream: bool) -> None:
    """A refusal is no content."""
    message = _create(gpt(serve([STEPS["refusal"]])), stream)
    assert message.refusal == "I cannot help with that."
    assert not message.content


def test_json_goes_where_the_sdk_parses_it(serve, gpt) -> None:
    """A `json` step answers `parse` with an object of the asked type."""
    completion = gpt(serve([STEPS["json"]])).chat.completions.parse(**PLAIN, response_format=Fit)
    assert completion.choices[0].message.parsed == Fit(fit=4, gaps=["kubernetes", "é"])


def test_refusal_is_told_by_parse(serve, gpt) -> None:
    """A refusal in place of structured output parses to nothing, and is no error."""
    completion = gpt(serve([STEPS["refusal"]])).chat.completions.parse(**PLAIN, response_format=Fit)
    assert completion.choices[0].message.parsed is None
    assert completion.choices[0].message.refusal


@pytest.mark.parametrize(
    "choice", [{"type": "function", "function": {"name": "get_weather"}}, "required"]
)
def test_json_goes_into_a_forced_tool(serve, gpt, choice: Any) -> None:
    """Where the request forces one tool, structured output is its arguments, and no tool call."""
    gateway = serve([STEPS["json"]])
    message = _create(gpt(gateway), False, tools=TOOLS[:1], tool_choice=choice)
    [(_, name, arguments)] = _calls(message)
    assert (name, json.loads(arguments)) == ("get_weather", STEPS["json"]["json"])
    assert not gateway.of_kind("tool_call")


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_reads_back_as_a_trace(serve, gpt, stream: bool) -> None:
    """Two calls with two tools between them are a trace with results, usage and finish reasons."""
    gateway = serve([{"tools": [WEATHER, SEARCH]}, {"text": "It rains."}])
    client = gpt(gateway)
    message = _create(client, stream)
    asked = {
        "role": "assistant",
        "tool_calls": [call.model_dump(exclude={"index"}) for call in message.tool_calls or []],
    }
    results = [
        {"role": "tool", "tool_call_id": "call_0001", "content": "rain"},
        {"role": "tool", "tool_call_id": "call_0001_2",
         "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "parts"}]},
    ]  # fmt: skip
    last = _create(client, stream, messages=[*ASK["messages"], asked, *results])
    assert last.content == "It rains."
    assert gateway.finish() == ()
    trace = gateway.trace
    assert [(call.name, call.args, call.status, call.result) for call in trace.tool_calls] == [
        ("get_weather", WEATHER["args"], "ok", "rain"),
        ("search", SEARCH["args"], "ok", "two\nparts"),
    ]
    assert [call.finish_reason for call in trace.model_calls] == ["tool_calls", "stop"]


def test_azure_s_path_is_the_same_endpoint(serve) -> None:
    """The Azure client with its deployments in the path gets the same answers."""
    gateway = serve([{"text": "from Azure"}])
    with openai.AzureOpenAI(
        azure_endpoint=gateway.server.env["AZURE_OPENAI_ENDPOINT"],
        api_version="2025-01-01",
        api_key="dummy",
    ) as client:
        completion = client.chat.completions.create(**ASK)
    assert completion.choices[0].message.content == "from Azure"


def test_async_client_is_served_in_parallel(serve) -> None:
    """Many streams of one asynchronous client at a time are all answered, each once."""
    gateway = serve([{"text": f"answer {number}"} for number in range(20)])

    async def ask(client: openai.AsyncOpenAI) -> str:
        stream = await client.chat.completions.create(**ASK, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def ask_all() -> list[str]:
        url = f"http://127.0.0.1:{gateway.port}/v1"
        async with openai.AsyncOpenAI(api_key="dummy", base_url=url) as client:
            return await asyncio.gather(*(ask(client) for _ in range(20)))

    assert set(asyncio.run(ask_all())) == {f"answer {number}" for number in range(20)}


def test_unscripted_error_is_in_the_sdk_s_shape(serve, gpt) -> None:
    """A request that no step answers is one 400 that the SDK does not repeat."""
    gateway = serve([])
    with pytest.raises(openai.BadRequestError, match="UNSCRIPTED") as caught:
        gpt(gateway, max_retries=5).chat.completions.create(**ASK)
    assert gateway.n_requests == 1
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id == "req_0001"
