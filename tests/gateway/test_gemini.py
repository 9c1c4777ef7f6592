"""Google's Gemini API, spoken with the real SDK and checked against its types."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pydantic
import pytest
from google import genai
from google.genai import errors, types

from evalkit.gateway.faults import FAULTS

WHOLE = "/v1beta/models/gemini-test:generateContent"
STREAM = "/v1beta/models/gemini-test:streamGenerateContent?alt=sse"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTIONS = [
    {"name": "get_weather", "parametersJsonSchema": CITY},
    {"name": "search", "parameters": {"type": "OBJECT", "properties": {}}},
]
QUESTION: Any = [{"role": "user", "parts": [{"text": "Is it raining in Denver? Grüße! ☔"}]}]
ASK: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be kind."}]},
    "contents": QUESTION,
    "tools": [{"functionDeclarations": FUNCTIONS}],
}
CONFIG: dict[str, Any] = {
    "system_instruction": "Be kind.",
    "tools": [{"function_declarations": FUNCTIONS}],
}
WEATHER = {"tool": "get_weather", "args": {"city": "Denver"}}
SEARCH = {"tool": "search", "args": {"city": "Zürich ☃", "n": 10**25, "deep": [{"a": None}]}}
STEPS: dict[str, Any] = {
    "text": {"text": "It is dry ☀ in Denver."},
    "one_tool": {"tools": [WEATHER]},
    "tools_with_text": {"tools": [WEATHER, SEARCH, WEATHER], "text": "Let me look."},
    "json": {"json": {"fit": 4, "gaps": ["kubernetes", "é"]}},
    "refusal": {"refusal": "I cannot help with that."},
    "thinking": {"thinking": "Rain is wet.", "text": "Dry."},
    "thinking_tool": {"thinking": "Rain is wet.", "tools": [WEATHER, SEARCH]},
    "empty": {"text": ""},
}
BOOK = {"tool": "book", "args": {"flight_id": "AA123", "date": "Friday"}}
FINE = {"text": "fine"}


class Fit(pydantic.BaseModel):
    fit: int
    gaps: list[str]


@pytest.fixture
def gemini() -> Iterator[Callable[..., genai.Client]]:
    """Point the google-genai SDK at a gateway."""
    clients: list[genai.Client] = []

    def client(gateway: Any, **options: Any) -> genai.Client:
        told: Any = {"base_url": f"http://127.0.0.1:{gateway.port}", **options}
        clients.append(genai.Client(api_key="dummy", http_options=told))
        return clients[-1]

    yield client
    for one in clients:
        one.close()


def _ask(
    client: genai.Client, stream: bool, contents: Any = "Hello.", **config: Any
) -> list[types.GenerateContentResponse]:
    """Ask once; give the one answer, or the chunks of a stream."""
    asked: Any = {"model": "gemini-test", "contents": contents, "config": config}
    if stream:
        return list(client.models.generate_content_stream(**asked))
    return [client.models.generate_content(**asked)]


def _parts(responses: list[types.GenerateContentResponse]) -> list[types.Part]:
    contents = [one.candidates[0].content for one in responses if one.candidates]
    return [part for content in contents if content for part in content.parts or []]


def _text(responses: list[types.GenerateContentResponse]) -> str:
    return "".join(part.text or "" for part in _parts(responses) if not part.thought)


def _calls(responses: list[types.GenerateContentResponse]) -> list[tuple[Any, Any, Any]]:
    found = [part.function_call for part in _parts(responses) if part.function_call]
    return [(call.id, call.name, call.args) for call in found]


def _end(responses: list[types.GenerateContentResponse]) -> tuple[Any, Any]:
    """Reason and usage with which an answer ends."""
    [candidate] = responses[-1].candidates or []
    return candidate.finish_reason, responses[-1].usage_metadata


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_body_is_a_response_of_the_sdk(serve, step: Any) -> None:
    """A whole answer fits the SDK's type, which refuses every field that it does not know."""
    answer = serve([step]).post(WHOLE, ASK)
    assert answer.status == 200
    response = types.GenerateContentResponse.model_validate_json(answer.body)
    assert (response.response_id, response.model_version) == ("resp_0001", "gemini-test")


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_every_chunk_is_a_response_of_the_sdk(serve, step: Any) -> None:
    """Each chunk fits the SDK's type, and the last alone says why the model stopped."""
    answer = serve([step]).post(STREAM, ASK)
    assert answer.headers["content-type"].startswith("text/event-stream")
    read = [types.GenerateContentResponse.model_validate(data) for _, data in answer.events]
    reasons = [chunk.candidates[0].finish_reason for chunk in read if chunk.candidates]
    assert [bool(reason) for reason in reasons] == [False] * (len(read) - 1) + [True]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_stream_without_sse_is_a_json_array(serve, step: Any) -> None:
    """Where the path asks for no events, the same chunks come as one array."""
    events = serve([step]).post(STREAM, ASK).events
    answer = serve([step]).post(STREAM.partition("?")[0], ASK)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == [data for _, data in events]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_stream_and_body_say_the_same(serve, gemini, step: Any) -> None:
    """What the SDK reads from a stream is what it reads from a body."""
    whole, streamed = (_ask(gemini(serve([step])), s, QUESTION, **CONFIG) for s in (False, True))
    assert _end(streamed) == _end(whole)
    assert _text(streamed) == _text(whole)
    assert _calls(streamed) == _calls(whole)


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_function_calls_arrive_whole(serve, gemini, stream: bool) -> None:
    """Several calls keep their order, ids and arguments, odd characters and all."""
    calls = _calls(_ask(gemini(serve([STEPS["tools_with_text"]])), stream, **CONFIG))
    assert [id_ for id_, _, _ in calls] == ["call_0001", "call_0001_2", "call_0001_3"]
    expected = [WEATHER["args"], SEARCH["args"], WEATHER["args"]]
    assert [args for _, _, args in calls] == expected


@pytest.mark.parametrize("stream", [False, True])
def test_refusal_is_an_answer_that_is_blocked(serve, gemini, stream: bool) -> None:
    """The API stops for safety and gives no content; the message does not get past the SDK."""
    responses = _ask(gemini(serve([STEPS["refusal"]])), stream)
    assert _end(responses)[0] == types.FinishReason.SAFETY
    assert responses[-1].text is None
    [candidate] = serve([STEPS["refusal"]]).post(WHOLE, ASK).json["candidates"]
    assert candidate["finishMessage"] == "I cannot help with that."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["thinking", "thinking_tool"])
def test_thoughts_come_only_where_they_are_asked_for(
    serve, gemini, name: str, stream: bool
) -> None:
    """What was thought is counted and signed always, and shown if the request includes it."""
    gateway = serve([STEPS[name]] * 2)
    client = gemini(gateway)
    hidden = _ask(client, stream, QUESTION, **CONFIG)
    shown = _ask(client, stream, QUESTION, **CONFIG, thinking_config={"include_thoughts": True})
    assert not [part for part in _parts(hidden) if part.thought]
    assert "".join(part.text or "" for part in _parts(shown) if part.thought) == "Rain is wet."
    for responses in (hidden, shown):
        [signed] = [part for part in _parts(responses) if part.thought_signature]
        assert signed.thought_signature == b"scripted"
        assert _end(responses)[1].thoughts_token_count == 3


@pytest.mark.parametrize("kind", ["response_schema", "response_json_schema"])
def test_json_goes_where_the_sdk_parses_it(serve, gemini, kind: str) -> None:
    """A `json` step is text that the SDK parses into the asked type."""
    schema = {"response_schema": Fit, "response_json_schema": Fit.model_json_schema()}[kind]
    told = {"response_mime_type": "application/json", kind: schema}
    [response] = _ask(gemini(serve([STEPS["json"]])), False, **told)
    parsed = response.parsed
    assert (parsed.model_dump() if isinstance(parsed, Fit) else parsed) == STEPS["json"]["json"]


def test_prose_for_json_is_unscripted(serve, gemini) -> None:
    """A model that was told to write JSON would not answer with prose."""
    with pytest.raises(errors.ClientError, match="demands JSON"):
        _ask(gemini(serve([FINE])), False, response_mime_type="application/json")


def test_json_goes_into_a_forced_function(serve, gemini) -> None:
    """Where the request forces one function, structured output is its arguments."""
    gateway = serve([STEPS["json"]])
    calling = {"mode": "ANY", "allowed_function_names": ["search"]}
    config = {**CONFIG, "tool_config": {"function_calling_config": calling}}
    [(_, name, args)] = _calls(_ask(gemini(gateway), False, **config))
    assert (name, args) == ("search", STEPS["json"]["json"])
    assert not gateway.of_kind("tool_call")


@pytest.mark.parametrize(
    ("calling", "step", "why"),
    [
        ({"mode": "NONE"}, {"tools": [WEATHER]}, "forbids that"),
        ({"mode": "ANY"}, FINE, "demands a tool"),
        ({"mode": "ANY", "allowed_function_names": ["search"]}, {"tools": [WEATHER]},
         "allows only search"),
        ({"mode": "VALIDATED", "allowed_function_names": ["search"]}, {"tools": [WEATHER]},
         "allows only search"),
        ({"mode": "ANY", "allowed_function_names": ["search"]}, {"tools": [SEARCH]}, ""),
        ({"mode": "AUTO"}, FINE, ""),
    ],
)  # fmt: skip
def test_calling_mode_bounds_the_script(serve, gemini, calling: Any, step: Any, why: str) -> None:
    """A step that the request's mode rules out is no answer of a model."""
    gateway = serve([step])
    config = {**CONFIG, "tool_config": {"function_calling_config": calling}}
    if not why:
        assert _ask(gemini(gateway), False, **config)
        return
    with pytest.raises(errors.ClientError, match=why):
        _ask(gemini(gateway), False, **config)


@pytest.mark.parametrize(
    ("config", "why"),
    [({"max_output_tokens": 2}, "allows 2 token"), ({"stop_sequences": ["dry"]}, "stops the")],
)
def test_limits_of_a_request_bound_the_script(serve, gemini, config: Any, why: str) -> None:
    """A model would be cut off where the script goes on."""
    with pytest.raises(errors.ClientError, match=why):
        _ask(gemini(serve([STEPS["text"]])), False, **config)


def test_request_is_seen_by_when(serve, gemini) -> None:
    """A script can ask for the wire format, the system prompt, the user's words and the tools."""
    when = {"wire": "gemini", "system": "Be kind.", "user": "Hello.", "model": "gemini-test"}
    tools = {"tools": ["get_weather", "search"]}
    gateway = serve({"it": {"when": {**when, **tools}, "steps": [FINE]}})
    assert _text(_ask(gemini(gateway), False, **CONFIG)) == "fine"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("with_ids", [False, True])
def test_tool_loop_reads_back_as_a_trace(serve, gemini, stream: bool, with_ids: bool) -> None:
    """Two calls of one function and one that fails pair up, with ids or by name and order."""
    asked = [WEATHER, {**WEATHER, "args": {"city": "Oslo"}}, SEARCH]
    gateway = serve([{"tools": asked, "text": "Let me look."}, {"text": "It rains."}])
    client = gemini(gateway)
    parts = _parts(_ask(client, stream, QUESTION, **CONFIG))
    ids = [part.function_call.id for part in parts if part.function_call]
    results: list[Any] = [
        {"name": "search", "response": {"error": "no flights"}},
        {"name": "get_weather", "response": {"result": "rain"}},
        {"name": "get_weather", "response": {"sky": "clear", "wind": 3}},
    ]
    for result, id_ in zip(results, (ids[2], ids[0], ids[1]), strict=True):
        result |= {"id": id_} if with_ids else {}
    for part in parts:
        if part.function_call and not with_ids:
            part.function_call.id = None
    told = [{"function_response": result} for result in results]
    history = [*QUESTION, {"role": "model", "parts": parts}, {"role": "user", "parts": told}]
    assert _text(_ask(client, stream, history, **CONFIG)) == "It rains."
    assert gateway.finish() == ()
    trace = gateway.trace
    assert [(call.name, call.args, call.status, call.result) for call in trace.tool_calls] == [
        ("get_weather", {"city": "Denver"}, "ok", "rain"),
        ("get_weather", {"city": "Oslo"}, "ok", {"sky": "clear", "wind": 3}),
        ("search", SEARCH["args"], "error", "no flights"),
    ]
    assert [call.finish_reason for call in trace.model_calls] == ["STOP", "STOP"]


def _content(role: str, *parts: Any) -> Any:
    return {"role": role, "parts": list(parts)}


CALL = {"functionCall": {"name": "search", "args": {}}}
RESULT = {"functionResponse": {"name": "search", "response": {"result": 1}}}
SAID = {"text": "And?"}


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        ([_content("model", CALL), _content("user", SAID)], "without its result"),
        ([_content("model", CALL, CALL), _content("user", RESULT)], "without its result"),
        ([_content("user", RESULT)], "does not hold before"),
        ([_content("model", CALL), _content("user", RESULT, RESULT)], "does not hold before"),
        ([_content("user")], "no `parts`"),
        ([{"role": "user"}], "no `parts`"),
        ([_content("user", {"thought": True})], "holds nothing"),
        ([_content("assistant", SAID)], "role 'assistant'"),
        ([], "at least one item"),
        ([_content("model", CALL), _content("user", RESULT, SAID)], ""),
        ([_content("model", CALL), _content("model", CALL), _content("user", RESULT, RESULT)], ""),
        ([{"parts": [SAID, {"inlineData": {"mimeType": "image/png", "data": ""}}]}], ""),
        ([_content("model", CALL), _content("function", RESULT)], ""),
    ],
)
def test_history_is_one_that_the_provider_takes(serve, contents: Any, why: str) -> None:
    """Calls and responses stand together, and no content is empty; a role may be left out."""
    gateway = serve([FINE])
    answer = gateway.post(WHOLE, {"contents": contents})
    if not why:
        assert answer.status == 200
        return
    assert (answer.status, answer.json["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert why in answer.json["error"]["message"]
    assert gateway.finish()[0].code == "bad_request"


def test_parts_that_are_no_text_appear_by_their_kind(serve) -> None:
    """An image is seen by `when` as what it is, and names with underscores read the same."""
    when = {"user": "Look:\n[inlineData]", "system": "Be kind."}
    gateway = serve({"it": {"when": when, "steps": [FINE]}})
    image = {"inline_data": {"mime_type": "image/png", "data": ""}}
    body = {
        "system_instruction": {"parts": [{"text": "Be kind."}]},
        "contents": [{"parts": [{"text": "Look:"}, image]}],
        "generation_config": {"max_output_tokens": 9},
    }
    assert gateway.post("/v1/models/gemini-test:generateContent", body).status == 200
    [call] = gateway.of_kind("model_call")
    assert call["prompt"] == body
    assert (call["model"], call["stream"]) == ("gemini-test", False)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_of_the_sdk_calls_functions_by_itself(serve, gemini, stream: bool) -> None:
    """Automatic function calling runs both functions of one answer, and sends both results."""
    seen = []

    def get_weather(city: str) -> str:
        """Look up the weather."""
        seen.append(city)
        return f"rain in {city}"

    asked = [WEATHER, {**WEATHER, "args": {"city": "Oslo"}}]
    gateway = serve([{"tools": asked}, {"text": "It rains."}])
    chat = gemini(gateway).chats.create(model="gemini-test", config={"tools": [get_weather]})
    if stream:
        said = "".join(chunk.text or "" for chunk in chat.send_message_stream("Hi"))
    else:
        said = chat.send_message("Hi").text or ""
    assert (said, seen) == ("It rains.", ["Denver", "Oslo"])
    assert [call.result for call in gateway.trace.tool_calls] == ["rain in Denver", "rain in Oslo"]
    assert gateway.finish() == ()


# The SDK's own class, where aiohttp is installed.
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
def test_async_client_is_served_in_parallel(serve) -> None:
    """Many streams of one asynchronous client at a time are all answered, each once."""
    gateway = serve([{"text": f"answer {number}"} for number in range(20)])

    async def ask(client: Any) -> str:
        stream = await client.models.generate_content_stream(model="m", contents="Hi")
        return "".join([chunk.text or "" async for chunk in stream])

    async def ask_all() -> list[str]:
        told: Any = {"base_url": f"http://127.0.0.1:{gateway.port}"}
        async with genai.Client(api_key="dummy", http_options=told).aio as client:
            return await asyncio.gather(*(ask(client) for _ in range(20)))

    assert set(asyncio.run(ask_all())) == {f"answer {number}" for number in range(20)}


def test_usage_is_that_of_the_provider(serve, gemini) -> None:
    """A long prompt is read from the cache when it comes again, and stays part of the prompt."""
    client = gemini(serve([FINE, FINE]))
    usages = [
        _end(_ask(client, False, system_instruction="All about flights. " * 400))[1]
        for _ in range(2)
    ]
    assert [usage.cached_content_token_count for usage in usages] == [
        None,
        usages[0].prompt_token_count,
    ]
    for usage in usages:
        assert usage.candidates_token_count == 1
        assert usage.total_token_count == usage.prompt_token_count + 1


def test_counting_tokens_takes_no_step(serve, gemini) -> None:
    """Tokens are counted as they are for an answer, and the script stays where it is."""
    gateway = serve([FINE])
    client = gemini(gateway)
    counted = client.models.count_tokens(model="gemini-test", contents="Hello.")
    usage = _end(_ask(client, False))[1]
    assert counted.total_tokens == usage.prompt_token_count
    [event] = gateway.of_kind("http")
    assert event["path"].endswith(":countTokens")


@pytest.mark.parametrize("retry", [False, True])
def test_unscripted_call_is_one_error(serve, gemini, retry: bool) -> None:
    """A request that no step answers is one 400, even for a client that is told to try again."""
    gateway = serve([])
    options: Any = {"retry_options": {"attempts": 5, "initial_delay": 0.001}} if retry else {}
    with pytest.raises(errors.ClientError, match="UNSCRIPTED") as caught:
        _ask(gemini(gateway, **options), False)
    assert gateway.n_requests == 1
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("method", ["embedContent", "batchGenerateContent"])
def test_other_methods_are_unscripted_in_google_s_shape(serve, method: str) -> None:
    """What is no call of the model is refused as Google refuses."""
    answer = serve([FINE]).post(f"/v1beta/models/gemini-test:{method}", {"content": {}})
    assert (answer.status, answer.json["error"]["code"]) == (400, 400)
    assert answer.json["error"]["message"].startswith("UNSCRIPTED: nothing answers")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "code", "status", "error"),
    [
        ("rate_limited", 429, "RESOURCE_EXHAUSTED", errors.ClientError),
        ("overloaded", 503, "UNAVAILABLE", errors.ServerError),
        ("server_error", 500, "INTERNAL", errors.ServerError),
    ],
)
def test_status_is_the_provider_s_own(
    serve, gemini, fault: str, code: int, status: str, error: Any, stream: bool
) -> None:
    """The SDK tries nothing again by itself; it does when it is told to."""
    gateway = serve([{"fault": fault, "times": 2}, FINE])
    with pytest.raises(error, match="injected") as caught:
        _ask(gemini(gateway), stream)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert gateway.n_requests == 1
    told: Any = {"attempts": 2, "initial_delay": 0.001, "jitter": 0.001}
    assert _text(_ask(gemini(gateway, retry_options=told), stream)) == "fine"
    assert gateway.n_requests == 3


@pytest.mark.parametrize("stream", [False, True])
def test_disconnect_is_an_error_of_the_http_library(serve, gemini, stream: bool) -> None:
    """A connection that breaks before any answer is told as it is, and not tried again."""
    gateway = serve([{"fault": "disconnect"}])
    with pytest.raises(httpx2.RemoteProtocolError):
        _ask(gemini(gateway), stream)
    assert gateway.n_requests == 1


@pytest.mark.parametrize("stream", [False, True])
def test_timeout_hangs_until_the_client_gives_up(serve, gemini, stream: bool) -> None:
    """Nothing comes until the client's own timeout, in milliseconds, ends the wait."""
    gateway = serve([{"fault": "timeout"}])
    with pytest.raises(httpx2.TimeoutException):
        _ask(gemini(gateway, timeout=150), stream)
    assert gateway.trace.model_calls[0].status == "timeout"


@pytest.mark.parametrize("content", [{}, BOOK], ids=["text", "tool"])
def test_malformed_json_is_an_error(serve, gemini, content: Any) -> None:
    """Half a body raises what the SDK makes of it, and nothing is tried again."""
    for stream in (False, True):
        gateway = serve([{"fault": "malformed_json", **content}, FINE])
        with pytest.raises((json.JSONDecodeError, errors.UnknownApiResponseError)):
            _ask(gemini(gateway), stream)
        assert gateway.n_requests == 1
        assert not gateway.of_kind("tool_call")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("content", [{}, BOOK], ids=["text", "tool"])
def test_truncated_stream_breaks_the_connection(serve, gemini, content: Any, stream: bool) -> None:
    """An answer that breaks off is an error of the HTTP library."""
    gateway = serve([{"fault": "truncated_stream", **content}, FINE])
    with pytest.raises(httpx2.RemoteProtocolError):
        _ask(gemini(gateway), stream)
    assert gateway.n_requests == 1
    assert not gateway.of_kind("tool_call")


def test_clean_early_end_gives_half_an_answer_without_error(serve, gemini) -> None:
    """The fault that raises nothing: half the text, and no reason why it ends."""
    gateway = serve([{"fault": "clean_early_end", "text": "Booked: you leave on Friday."}])
    responses = _ask(gemini(gateway), True)
    assert (_text(responses), _end(responses)[0]) == ("Booked: you le", None)


@pytest.mark.parametrize("stream", [False, True])
def test_truncated_tool_json_is_a_malformed_call(serve, gemini, stream: bool) -> None:
    """Arguments are an object on this wire: the API withholds a broken call, and says so."""
    gateway = serve([{"fault": "truncated_tool_json", **BOOK}])
    responses = _ask(gemini(gateway), stream)
    assert _end(responses)[0] == types.FinishReason.MALFORMED_FUNCTION_CALL
    assert (_calls(responses), _text(responses)) == ([], "")
    assert not gateway.of_kind("tool_call")
    assert gateway.finish() == ()


@pytest.mark.parametrize("stream", [False, True])
def test_wrong_tool_is_asked_for_like_any_other(serve, gemini, stream: bool) -> None:
    """Without a name the fault makes one up."""
    gateway = serve([{"fault": "wrong_tool"}])
    [(_, name, _)] = _calls(_ask(gemini(gateway), stream, **CONFIG))
    assert name == "no_such_tool"
    assert len(gateway.of_kind("tool_call")) == 1


@pytest.mark.parametrize("path", [WHOLE, STREAM, STREAM.partition("?")[0]])
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_recorded_before_it_happens(serve, fault: str, path: str) -> None:
    """Call, fault and reply stand in the ledger in this order, in each way of answering."""
    gateway = serve([{"fault": fault}])
    body = json.dumps({"contents": QUESTION}).encode()
    head = f"POST {path} HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with contextlib.suppress(ConnectionError):
        gateway.raw(head + body)
    assert gateway.kinds[:3] == ["model_call", "fault", "model_reply"]
    assert gateway.finish() == ()
