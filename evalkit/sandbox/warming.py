"""One dry call on each SDK that the server finds loaded, so that no trial makes the first.

SDKs read resources and build their models lazily, on their first call; a fork made
before that would do it in every trial. The calls go to a socket on loopback that is
answered here, never through the user's agent, and leave no thread or socket behind.
Nothing depends on them: what fails is noted, and costs each trial some milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from evalkit.sandbox.environment import DUMMY_KEY
from evalkit.sandbox.untraced import untraced

_TIMEOUT_S: Final = 5.0
_CLIENT: Final = {"api_key": DUMMY_KEY, "max_retries": 0, "timeout": _TIMEOUT_S}
_SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
_ARGS: Final = json.dumps({"city": "Oslo"})
_TEXT: Final = "It is dry."


def warm_sdks() -> tuple[str, ...]:
    """Make the dry calls on what is imported.

    Returns
    -------
    tuple of str
        A sentence about each SDK whose calls failed; it never raises.
    """
    loaded = [name for name in _CALLS if name in sys.modules]
    if not loaded:
        return ()
    with warnings.catch_warnings(), untraced():
        warnings.simplefilter("ignore")
        try:
            with _answering() as url:
                return tuple(filter(None, (_warm(name, url) for name in loaded)))
        except OSError as error:
            return (f"{', '.join(loaded)} made no dry call: {error}",)


def _warm(name: str, url: str) -> str:
    """Make one SDK's calls; say why they failed."""
    try:
        _CALLS[name](sys.modules[name], url)
    except Exception as error:  # an SDK of another version, or one that the agent changed
        return f"{name} made no dry call: {type(error).__name__}: {error}"
    return ""


def _call_anthropic(sdk: Any, url: str) -> None:
    request = {
        "model": "warm",
        "max_tokens": 9,
        "system": "warm",
        "messages": [
            {"role": "user", "content": "warm"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "w", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "dry"}],
            },
        ],
        "tools": [{"name": "w", "description": "w", "input_schema": _SCHEMA}],
    }
    with sdk.Anthropic(base_url=url, **_CLIENT) as client:
        client.messages.create(**request).model_dump()
        _exhaust(client.messages.create(**request, stream=True))
        with client.messages.stream(**request) as stream:
            stream.get_final_message()

    async def call() -> None:
        async with sdk.AsyncAnthropic(base_url=url, **_CLIENT) as client:
            await client.messages.create(**request)
            async with client.messages.stream(**request) as stream:
                await stream.get_final_message()

    asyncio.run(call())


def _call_openai(sdk: Any, url: str) -> None:
    function = {"name": "w", "description": "w", "parameters": _SCHEMA}
    call = {"id": "t", "type": "function", "function": {"name": "w", "arguments": _ARGS}}
    chat = {
        "model": "warm",
        "messages": [
            {"role": "user", "content": "warm"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t", "content": "dry"},
        ],
        "tools": [{"type": "function", "function": function}],
    }
    response = {"model": "warm", "input": "warm", "tools": [{"type": "function", **function}]}
    with sdk.OpenAI(base_url=f"{url}/v1", **_CLIENT) as client:
        for create, request in (
            (client.chat.completions.create, chat),
            (client.responses.create, response),
        ):
            create(**request).model_dump()
            _exhaust(create(**request, stream=True))

    async def call_async() -> None:
        async with sdk.AsyncOpenAI(base_url=f"{url}/v1", **_CLIENT) as client:
            await client.chat.completions.create(**chat)
            await client.responses.create(**response)

    asyncio.run(call_async())


def _call_gemini(sdk: Any, url: str) -> None:
    options = {"base_url": url, "timeout": int(1000 * _TIMEOUT_S)}
    function = {"name": "w", "description": "w", "parameters_json_schema": _SCHEMA}
    called = {"function_call": {"name": "w", "args": {}}}
    result = {"function_response": {"name": "w", "response": {"result": "dry"}}}
    request = {
        "model": "warm",
        "contents": [
            {"role": "user", "parts": [{"text": "warm"}]},
            {"role": "model", "parts": [called]},
            {"role": "user", "parts": [result]},
        ],
        "config": {"system_instruction": "w", "tools": [{"function_declarations": [function]}]},
    }
    with sdk.Client(api_key=DUMMY_KEY, http_options=options) as client:
        client.models.generate_content(**request).model_dump()
        _exhaust(client.models.generate_content_stream(**request))

    async def call() -> None:
        async with sdk.Client(api_key=DUMMY_KEY, http_options=options).aio as client:
            await client.models.generate_content(**request)

    asyncio.run(call())


_CALLS: Final[Mapping[str, Callable[[Any, str], None]]] = {
    "anthropic": _call_anthropic,
    "openai": _call_openai,
    "google.genai": _call_gemini,
}


def _exhaust(stream: Iterable[object]) -> None:
    for _ in stream:
        pass


@contextmanager
def _answering() -> Iterator[str]:
    """Answer on loopback, from a thread that ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=partial(_serve, listener), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
            thread.join(_TIMEOUT_S)


def _serve(listener: socket.socket) -> None:
    """Answer one connection after another, until the listener is shut down."""
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.settimeout(_TIMEOUT_S)
            with connection, connection.makefile("rb") as reader, suppress(OSError):
                while line := reader.readline():
                    connection.sendall(_answer(line.split()[1].decode(), _body(reader)))


def _body(reader: Any) -> bytes:
    """Read headers and body of a request."""
    size = 0
    while (line := reader.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            size = int(value)
    return bytes(reader.read(size))


def _answer(path: str, body: bytes) -> bytes:
    """Return the reply to a request, as a stream where it asks for one."""
    is_stream = json.loads(body).get("stream") is True or path.endswith("alt=sse")
    whole, events = _REPLIES[path.replace("/v1beta/", "/v1/")]
    kind = "text/event-stream" if is_stream else "application/json"
    content = events if is_stream else json.dumps(whole).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def _named(*events: dict[str, Any]) -> bytes:
    """Return events of the kind that carry their type twice."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


_USAGE: Final = {"input_tokens": 1, "output_tokens": 1}
_BLOCK: Final = {"type": "text", "text": _TEXT}
_TOOL_USE: Final = {"type": "tool_use", "id": "t", "name": "w", "input": {"city": "Oslo"}}
_MESSAGE: Final = {
    "id": "m", "type": "message", "role": "assistant", "model": "warm", "usage": _USAGE,
    "content": [_BLOCK, _TOOL_USE], "stop_reason": "tool_use", "stop_sequence": None,
}  # fmt: skip
_MESSAGE_EVENTS: Final = _named(
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": _TEXT},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {**_TOOL_USE, "input": {}}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": _ARGS},
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": _USAGE},
    {"type": "message_stop"},
)

_TOOL_CALL: Final = {
    "id": "t",
    "type": "function",
    "function": {"name": "w", "arguments": _ARGS},
}
_CHAT_USAGE: Final = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_CHAT: Final = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "warm", "usage": _CHAT_USAGE,
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": _TEXT, "tool_calls": [_TOOL_CALL]},
        }
    ],
}  # fmt: skip
_CHUNK: Final = {
    "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "warm",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "delta": {"role": "assistant", "tool_calls": [{"index": 0, **_TOOL_CALL}]},
        }
    ],
}  # fmt: skip
_CHAT_EVENTS: Final = f"data: {json.dumps(_CHUNK)}\n\ndata: [DONE]\n\n".encode()

_OUTPUT: Final = {
    "type": "message", "id": "o", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": _TEXT, "annotations": []}],
}  # fmt: skip
_RESPONSE: Final = {
    "id": "r", "object": "response", "created_at": 1, "model": "warm", "status": "completed",
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    "output": [
        _OUTPUT,
        {"type": "function_call", "id": "f", "call_id": "t", "name": "w", "arguments": _ARGS},
    ],
    "usage": {
        **_USAGE, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}  # fmt: skip
_RESPONSE_EVENTS: Final = _named(
    {
        "type": "response.created",
        "sequence_number": 0,
        "response": {**_RESPONSE, "status": "in_progress", "output": []},
    },
    {
        "type": "response.output_text.delta", "sequence_number": 1, "item_id": "o",
        "output_index": 0, "content_index": 0, "delta": _TEXT, "logprobs": [],
    },
    {"type": "response.completed", "sequence_number": 2, "response": _RESPONSE},
)  # fmt: skip

_CONTENT: Final = {
    "candidates": [
        {
            "index": 0,
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": _TEXT},
                    {"functionCall": {"id": "t", "name": "w", "args": {"city": "Oslo"}}},
                ],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    "modelVersion": "warm", "responseId": "r",
}  # fmt: skip
_CONTENT_EVENTS: Final = f"data: {json.dumps(_CONTENT)}\n\n".encode()
_MODEL: Final = "/v1/models/warm"

_REPLIES: Final[Mapping[str, tuple[dict[str, Any], bytes]]] = {
    "/v1/messages": (_MESSAGE, _MESSAGE_EVENTS),
    "/v1/chat/completions": (_CHAT, _CHAT_EVENTS),
    "/v1/responses": (_RESPONSE, _RESPONSE_EVENTS),
    f"{_MODEL}:generateContent": (_CONTENT, b""),
    f"{_MODEL}:streamGenerateContent?alt=sse": ({}, _CONTENT_EVENTS),
}
