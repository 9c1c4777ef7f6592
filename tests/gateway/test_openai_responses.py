"""OpenAI's Responses API, spoken with the real SDK and checked against its types."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pydantic
import pytest
from openai.types.responses import Response, ResponseStreamEvent

TOOLS: list[Any] = [
    {
        "type": "function",
        "name": name,
        "strict": False,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    for name in ("get_weather", "search")
]
ASK: dict[str, Any] = {
    "model": "gpt-test",
    "instructions": "Be kind.",
    "input": "Is it raining in Denver? Grüße! ☔",
    "tools": TOOLS,
}
WEATHER = {"tool": "get_weather", "args": {"city": "Denver"}}
SEARCH = {"tool": "search", "args": {"city": "Zürich ☃", "n": 10**25, "deep": [{"a": None}]}}
STEPS: dict[str, Any] = {
    "text": {"text": "It is dry ☀ in Denver."},
    "one_tool": {"tools": [WEATHER]},
    "tools_with_text": {"tools": [WEATHER, SEARCH, WEATHER], "text": "Let me look."},
    "json": {"json": {"fit": 4, "gaps": ["kubernetes", "é"]}},
    "refusal": {"refusal": "I cannot help with that."},
    "thinking_and_tool": {"thinking": "Rain is wet.", "tools": [WEATHER]},
    "empty": {"text": ""},
}


class Fit(pydantic.BaseModel):
    fit: int
    gaps: list[str]


def _create(client: openai.OpenAI, stream: bool, **extra: Any) -> Any:
    """Ask once, in one piece or as a stream that the SDK puts together."""
    if not stream:
        return client.responses.create(**{**ASK, **extra})
    with client.responses.stream(**{**ASK, **extra}) as events:
        for _ in events:
            pass
        return events.get_final_response()


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_body_is_a_response_of_the_sdk(serve, strictly, step: Any) -> None:
    """A whole answer has every field that the SDK's type needs, and none that is unknown to it."""
    body = ASK | {"text": {"format": {"type": "text"}}, "temperature": 0.5}
    answer = serve([step]).post("/v1/responses", body)
    assert answer.status == 200
    response = strictly(Response, answer.json)
    assert (response.id, response.temperature, len(response.tools)) == ("resp_0001", 0.5, 2)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_every_stream_event_is_one_of_the_sdk(serve, strictly, step: Any) -> None:
    """Each event fits the SDK's type and is numbered; the last one is the whole response."""
    answer = serve([step, step])
    events = answer.post("/v1/responses", ASK | {"stream": True}).events
    for number, (name, data) in enumerate(events):
        event = strictly(ResponseStreamEvent, data)
        assert (event.type, event.sequence_number) == (name, number)
    assert events[-1][0] == "response.completed"
    whole = json.dumps(answer.post("/v1/responses", ASK).json["output"])
    assert json.dumps(events[-1][1]["response"]["output"]) == whole.replace("_0002", "_0001")


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_stream_and_body_say_the_same(serve, gpt, step: Any) -> None:
    """What the SDK puts together from a stream is what it reads from a body."""
    whole = _create(gpt(serve([step])), stream=False)
    streamed = _create(gpt(serve([step])), stream=True)
    assert streamed.output_text == whole.output_text
    assert streamed.usage == whole.usage
    assert _calls(streamed) == _calls(whole)


def _calls(response: Any) -> list[tuple[str, str, str]]:
    items = [item for item in response.output if item.type == "function_call"]
    return [(item.call_id, item.name, item.arguments) for item in items]


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_tool_calls_arrive_whole(serve, gpt, stream: bool) -> None:
    """Several tool calls keep their order, ids and arguments, odd characters and all."""
    response = _create(gpt(serve([STEPS["tools_with_text"]])), stream)
    calls = _calls(response)
    assert [id_ for id_, _, _ in calls] == ["call_0001", "call_0001_2", "call_0001_3"]
    expected = [WEATHER["args"], SEARCH["args"], WEATHER["args"]]
    assert [json.loads(arguments) for _, _, arguments in calls] == expected
    assert response.output_text == "Let me look."


@pytest.mark.parametrize("stream", [False, True])
def test_refusal_is_a_content_part(serve, gpt, stream: bool) -> None:
    """A refusal is a part of its own, and no output text."""
    response = _create(gpt(serve([STEPS["refusal"]])), stream)
    [part] = response.output[0].content
    assert (part.type, part.refusal) == ("refusal", "I cannot help with that.")
    assert response.output_text == ""


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_a_reasoning_item(serve, gpt, stream: bool) -> None:
    """Thinking comes first, as a summary, and its tokens are counted apart."""
    response = _create(gpt(serve([STEPS["thinking_and_tool"]])), stream)
    reasoning, _ = response.output
    assert reasoning.summary[0].text == "Rain is wet."
    assert response.usage.output_tokens_details.reasoning_tokens == 3


def test_json_goes_where_the_sdk_parses_it(serve, gpt) -> None:
    """A `json` step answers `parse` with an object of the asked type."""
    response = gpt(serve([STEPS["json"]])).responses.parse(**ASK, text_format=Fit)
    assert response.output_parsed == Fit(fit=4, gaps=["kubernetes", "é"])


@pytest.mark.parametrize("choice", [{"type": "function", "name": "get_weather"}, "required"])
def test_json_goes_into_a_forced_tool(serve, gpt, choice: Any) -> None:
    """Where the request forces one tool, structured output is its arguments, and no tool call."""
    gateway = serve([STEPS["json"]])
    response = _create(gpt(gateway), False, tools=TOOLS[:1], tool_choice=choice)
    [(_, name, arguments)] = _calls(response)
    assert (name, json.loads(arguments)) == ("get_weather", STEPS["json"]["json"])
    assert not gateway.of_kind("tool_call")


@pytest.mark.parametrize("stored", [False, True], ids=["whole history", "previous_response_id"])
@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_reads_back_as_a_trace(serve, gpt, stream: bool, stored: bool) -> None:
    """Results are found whether the agent sends the history again or leaves it to the provider."""
    gateway = serve([{"tools": [WEATHER, SEARCH]}, {"text": "It rains."}])
    client = gpt(gateway)
    first = _create(client, stream)
    results = [
        {"type": "function_call_output", "call_id": "call_0001_2", "output": "found"},
        {"type": "function_call_output", "call_id": "call_0001",
         "output": [{"type": "input_text", "text": "rain"}]},
    ]  # fmt: skip
    question = {"role": "user", "content": ASK["input"]}
    asked = [
        item.model_dump(include={"type", "call_id", "name", "arguments"}) for item in first.output
    ]
    again = {"input": results, "previous_response_id": first.id}
    whole = {"input": [question, *asked, *results]}
    last = _create(client, stream, **(again if stored else whole))
    assert last.output_text == "It rains."
    assert gateway.finish() == ()
    assert [(call.name, call.status, call.result) for call in gateway.trace.tool_calls] == [
        ("get_weather", "ok", "rain"),
        ("search", "ok", "found"),
    ]


def test_async_client_is_served_in_parallel(serve) -> None:
    """Many requests of one asynchronous client at a time are all answered, each once."""
    gateway = serve([{"text": f"answer {number}"} for number in range(20)])

    async def ask_all() -> list[Any]:
        url = f"http://127.0.0.1:{gateway.port}/v1"
        async with openai.AsyncOpenAI(api_key="dummy", base_url=url) as client:
            return await asyncio.gather(*(client.responses.create(**ASK) for _ in range(20)))

    texts = {response.output_text for response in asyncio.run(ask_all())}
    assert texts == {f"answer {number}" for number in range(20)}


def test_unscripted_error_is_in_the_sdk_s_shape(serve, gpt) -> None:
    """A request that no step answers is one 400 that the SDK does not repeat."""
    gateway = serve([])
    with pytest.raises(openai.BadRequestError, match="UNSCRIPTED"):
        gpt(gateway, max_retries=5).responses.create(**ASK)
    assert gateway.n_requests == 1


def test_a_response_in_the_background_is_refused(serve, gpt) -> None:
    """What would be answered later is refused with what to do instead; no step is taken."""
    gateway = serve([{"text": "It rains."}])
    with pytest.raises(openai.BadRequestError, match="in the foreground"):
        gpt(gateway).responses.create(**ASK, background=True)
    assert gpt(gateway).responses.create(**ASK).output_text == "It rains."
