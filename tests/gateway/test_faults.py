"""Every fault against every SDK: what the SDK makes of it, and how often it asks again."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from evalkit.gateway.faults import FAULTS

WIRES = ("anthropic", "openai-chat", "openai-responses")
HELLO = [{"role": "user", "content": "Hello."}]
BOOK = {"tool": "book", "args": {"flight_id": "AA123", "date": "Friday"}}
FINE = {"text": "fine"}


def _anthropic(client: Any, stream: bool) -> Any:
    asked = {"model": "m", "max_tokens": 9, "messages": HELLO}
    if not stream:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as events:
        for _ in events:
            pass
        return events.get_final_message()


def _chat(client: Any, stream: bool) -> Any:
    if not stream:
        return client.chat.completions.create(model="m", messages=HELLO)
    with client.chat.completions.stream(model="m", messages=HELLO) as events:
        for _ in events:
            pass
        return events.get_final_completion()


def _responses(client: Any, stream: bool) -> Any:
    if not stream:
        return client.responses.create(model="m", input="Hello.")
    with client.responses.stream(model="m", input="Hello.") as events:
        for _ in events:
            pass
        return events.get_final_response()


ASKING = dict(zip(WIRES, (_anthropic, _chat, _responses), strict=True))


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    """Name one wire format after the other."""
    return request.param


@pytest.fixture
def ask(wire: str, claude: Any, gpt: Any) -> Callable[..., Any]:
    """Ask a gateway once in the wire format of the test."""

    def once(gateway: Any, *, stream: bool = False, **options: Any) -> Any:
        client = (claude if wire == "anthropic" else gpt)(gateway, **options)
        return ASKING[wire](client, stream)

    return once


def _text(answer: Any) -> str:
    if hasattr(answer, "output_text"):
        return answer.output_text
    if hasattr(answer, "choices"):
        return answer.choices[0].message.content or ""
    return "".join(block.text for block in answer.content if block.type == "text")


def _tools(answer: Any) -> list[tuple[str, str, Any]]:
    """Id, name and arguments of the tool uses in an answer of any SDK."""
    if hasattr(answer, "output_text"):
        calls = [item for item in answer.output if item.type == "function_call"]
        return [(call.call_id, call.name, call.arguments) for call in calls]
    if hasattr(answer, "choices"):
        calls = answer.choices[0].message.tool_calls or []
        return [(call.id, call.function.name, call.function.arguments) for call in calls]
    uses = [block for block in answer.content if block.type == "tool_use"]
    return [(use.id, use.name, use.input) for use in uses]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["rate_limited", "overloaded", "server_error"])
def test_sdk_asks_again_at_once_after_a_status(
    serve, ask, caplog, fault: str, stream: bool
) -> None:
    """A fault by HTTP status costs one request each time, and no waiting."""
    gateway = serve([{"fault": fault, "times": 2}, FINE])
    with caplog.at_level(logging.INFO):
        assert _text(ask(gateway, stream=stream, max_retries=2)) == "fine"
    waits = re.findall(r"Retrying request .*in ([\d.]+) seconds", caplog.text)
    assert [float(wait) for wait in waits] == [0.001, 0.001]
    assert gateway.n_requests == 3
    assert gateway.finish() == ()
    assert [fault["call"] for fault in gateway.of_kind("fault")] == [0, 1]


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ("rate_limited", 429, "RateLimitError"),
        ("overloaded", None, "InternalServerError"),
        ("server_error", 500, "InternalServerError"),
    ],
)
def test_status_is_the_provider_s_own(
    serve, ask, wire: str, fault: str, status: int | None, error: str
) -> None:
    """Statuses and error bodies are those by which a provider's SDK knows the fault."""
    gateway = serve([{"fault": fault}])
    status = status or (529 if wire == "anthropic" else 503)
    with pytest.raises((anthropic.APIStatusError, openai.APIStatusError)) as caught:
        ask(gateway, max_retries=0)
    known = {error, "OverloadedError", "ServiceUnavailableError"}
    assert type(caught.value).__name__ in known
    assert caught.value.status_code == status
    assert "injected" in caught.value.message


@pytest.mark.parametrize("stream", [False, True])
def test_disconnect_is_a_connection_error(serve, ask, stream: bool) -> None:
    """A connection that breaks before any answer is a connection error of the SDK."""
    gateway = serve([{"fault": "disconnect"}])
    with pytest.raises((anthropic.APIConnectionError, openai.APIConnectionError)):
        ask(gateway, stream=stream, max_retries=0)
    assert gateway.n_requests == 1


def test_disconnect_is_tried_again(serve, claude, gpt) -> None:
    """Both SDKs ask again after a broken connection, with a new step of the script."""
    gateway = serve([{"fault": "disconnect"}, FINE, {"fault": "disconnect"}, FINE])
    assert _text(_anthropic(claude(gateway, max_retries=1), False)) == "fine"
    assert _text(_chat(gpt(gateway, max_retries=1), False)) == "fine"
    assert gateway.n_requests == 4


@pytest.mark.parametrize("stream", [False, True])
def test_timeout_hangs_until_the_client_gives_up(serve, ask, stream: bool) -> None:
    """Nothing comes until the client's own timeout ends the wait."""
    gateway = serve([{"fault": "timeout"}])
    with pytest.raises((anthropic.APITimeoutError, openai.APITimeoutError)):
        ask(gateway, stream=stream, max_retries=0, timeout=0.15)
    assert gateway.trace.model_calls[0].status == "timeout"


def test_a_hanging_client_is_let_go_when_the_gateway_stops(serve, ask) -> None:
    """Stopping the gateway ends every wait, although the client has not given up."""
    gateway = serve([{"fault": "timeout"}])
    stopper = threading.Timer(0.1, gateway.server.stop)
    stopper.start()
    with pytest.raises((anthropic.APIConnectionError, openai.APIConnectionError)):
        ask(gateway, max_retries=0, timeout=10)
    stopper.join()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("content", [{}, BOOK], ids=["text", "tool"])
def test_malformed_json_is_a_decoding_error(serve, ask, content: Any, stream: bool) -> None:
    """No SDK asks again, and each lets the decoder's error out."""
    gateway = serve([{"fault": "malformed_json", **content}, FINE])
    with pytest.raises(json.JSONDecodeError):
        ask(gateway, stream=stream, max_retries=2)
    assert gateway.n_requests == 1
    assert not gateway.of_kind("tool_call")


@pytest.mark.parametrize("content", [{}, BOOK], ids=["text", "tool"])
def test_truncated_stream_breaks_the_connection(serve, ask, content: Any) -> None:
    """A stream that breaks off is an error, of the SDK or of its HTTP library, and final."""
    gateway = serve([{"fault": "truncated_stream", **content}, FINE])
    with pytest.raises((httpx2.RemoteProtocolError, openai.APIConnectionError)):
        ask(gateway, stream=True, max_retries=2)
    assert gateway.n_requests == 1
    assert not gateway.of_kind("tool_call")


def test_truncated_body_breaks_the_connection(serve, ask) -> None:
    """A body that breaks off is a connection error."""
    gateway = serve([{"fault": "truncated_stream"}])
    with pytest.raises((anthropic.APIConnectionError, openai.APIConnectionError)):
        ask(gateway, max_retries=0)


def test_clean_early_end_gives_half_an_answer_without_error(serve, ask, wire: str) -> None:
    """The fault that raises nothing: half the text, no finish; only Responses notices."""
    gateway = serve([{"fault": "clean_early_end", "text": "Booked: you leave on Friday."}])
    if wire == "openai-responses":
        with pytest.raises(RuntimeError, match=r"response\.completed"):
            ask(gateway, stream=True)
        return
    answer = ask(gateway, stream=True)
    assert _text(answer) == "Booked: you le"
    finish = answer.stop_reason if wire == "anthropic" else answer.choices[0].finish_reason
    assert finish is None


def test_clean_early_end_of_a_body_is_a_decoding_error(serve, ask) -> None:
    """Half a body with the length of half a body is no JSON."""
    with pytest.raises(json.JSONDecodeError):
        ask(serve([{"fault": "clean_early_end"}]), max_retries=2)


@pytest.mark.parametrize("stream", [False, True])
def test_truncated_tool_json_reaches_the_agent(serve, ask, wire: str, stream: bool) -> None:
    """A whole answer asks for a tool with half its arguments; anthropic's SDK makes {} of them."""
    gateway = serve([{"fault": "truncated_tool_json", **BOOK}])
    [(_, name, args)] = _tools(ask(gateway, stream=stream))
    half = '{"flight_id":"AA12'
    assert (name, args) == ("book", {} if wire == "anthropic" else half)
    [call] = gateway.of_kind("tool_call")
    assert (call["args"], call["raw_args"]) == (None, half)


@pytest.mark.parametrize("stream", [False, True])
def test_wrong_tool_is_one_that_the_agent_does_not_have(serve, ask, stream: bool) -> None:
    """Without a name the fault makes one up; it is asked for like any other tool."""
    gateway = serve([{"fault": "wrong_tool"}, {"fault": "wrong_tool", **BOOK}])
    [(_, name, _)] = _tools(ask(gateway, stream=stream))
    assert name == "no_such_tool"
    [(_, name, args)] = _tools(ask(gateway, stream=stream))
    assert name == "book"
    assert (args if isinstance(args, dict) else json.loads(args)) == BOOK["args"]
    assert len(gateway.of_kind("tool_call")) == 2


def test_wrong_tool_is_none_of_the_request_s(serve) -> None:
    """The made-up name is not that of a tool that the request offers."""
    gateway = serve([{"fault": "wrong_tool"}])
    tools = [{"name": "book", "input_schema": {"type": "object"}}]
    gateway.post("/v1/messages", {"model": "m", "messages": HELLO, "tools": tools})
    assert gateway.trace.tool_calls[0].name != "book"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_recorded_before_it_happens(serve, fault: str, stream: bool) -> None:
    """Call, fault and reply stand in the ledger in this order, and the fault fails no trial."""
    gateway = serve([{"fault": fault}])
    body = {"model": "m", "messages": HELLO, "stream": stream}
    with contextlib.suppress(ConnectionError):
        gateway.raw(_http(json.dumps(body).encode()))
    assert gateway.kinds[:3] == ["model_call", "fault", "model_reply"]
    assert gateway.of_kind("fault")[0]["fault"] == fault
    assert gateway.of_kind("fault")[0]["injected"] is True
    assert gateway.finish() == ()
    assert len(gateway.trace.model_calls) == 1


def _http(body: bytes) -> bytes:
    return b"POST /v1/messages HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def test_half_a_tool_use_counts_once_somebody_acts_on_it(serve, claude) -> None:
    """An agent that runs a tool of an answer that ended early has made a broken call."""
    gateway = serve([{"fault": "clean_early_end", **BOOK}, FINE])
    client = claude(gateway)
    [(id_, _, args)] = _tools(_anthropic(client, True))
    assert (args, gateway.of_kind("tool_call")) == ({}, [])
    history = [
        *HELLO,
        {"role": "assistant",
         "content": [{"type": "tool_use", "id": id_, "name": "book", "input": args}]},
        {"role": "user",
         "content": [{"type": "tool_result", "tool_use_id": id_, "content": "booked"}]},
    ]  # fmt: skip
    client.messages.create(model="m", max_tokens=9, messages=history)
    [call] = gateway.trace.tool_calls
    assert (call.args, call.status, call.result) == (None, "error", "booked")
