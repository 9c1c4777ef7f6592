"""OpenAI's Chat Completions API, Azure's too: translation, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evalkit.gateway.canonical import (
    Asked,
    Message,
    ModelAnswer,
    ModelRequest,
    Returned,
    Stamp,
    Tokens,
    Tool,
    ToolUse,
)
from evalkit.gateway.frames import Frame, pieces
from evalkit.gateway.openai_errors import (
    cached_tokens,
    carries_cut_args,
    error,
    overloaded_status,
    request_header,
    tool_prefix,
    usage,
)
from evalkit.gateway.reading import (
    arguments_of,
    as_count,
    as_object,
    as_text,
    forced,
    is_parallel,
    listed,
    model_of,
    objects,
    paired,
    result_of,
    role_of,
    stops_of,
    text_of,
    tool_choice_of,
)
from evalkit.ledger import JSON

__all__ = [
    "carries_cut_args", "error", "finish_reason", "frames", "name", "overloaded_status", "read",
    "request_header", "tool_prefix", "usage", "whole",
]  # fmt: skip

name: Final = "openai-chat"

_SYSTEM: Final = ("system", "developer")
_ROLES: Final = ("user", "assistant", "tool", "function", *_SYSTEM)


def read(body: Mapping[str, JSON]) -> ModelRequest:
    """Read the body of a request.

    Raises
    ------
    BadRequest
        If nothing could be answered to it.
    """
    messages = listed(body, "messages")
    said = [message for message in messages if message.get("role") not in _SYSTEM]
    orders = [message for message in messages if message.get("role") in _SYSTEM]
    tools = (*map(_tool, objects(body.get("tools"))), *map(_function, _legacy(body)))
    wanted = as_object(body.get("response_format"))
    options = as_object(body.get("stream_options"))
    prompt = (body.get("tools"), *messages)
    return ModelRequest(
        wire=name,
        model=model_of(body),
        system="\n\n".join(text_of(message.get("content")) for message in orders),
        messages=tuple(_message(message) for message in said),
        history=paired(part for message in messages for part in _history(message)),
        tools=tools,
        stream=body.get("stream") is True,
        stream_usage=options.get("include_usage") is True,
        max_tokens=as_count(body.get("max_completion_tokens") or body.get("max_tokens")),
        wants_json=wanted.get("type") in ("json_schema", "json_object"),
        schema=as_object(wanted.get("json_schema")).get("schema"),
        tool_choice=tool_choice_of(body.get("tool_choice")),
        parallel=is_parallel(body),
        stops=stops_of(body.get("stop")),
        forced_tool=_forced_tool(body.get("tool_choice"), tools),
        pieces=prompt,
        n_cached=len(prompt),
        raw=body,
    )


def _tool(tool: Mapping[str, Any]) -> Tool:
    return _function(as_object(tool.get("function") or tool.get("custom")))


def _function(function: Mapping[str, Any]) -> Tool:
    return Tool(as_text(function.get("name")), function.get("parameters"))


def _legacy(body: Mapping[str, JSON]) -> Iterator[Mapping[str, Any]]:
    """Give the tools as they were offered before there were tools."""
    return objects(body.get("functions"))


def _forced_tool(choice: JSON, tools: tuple[Tool, ...]) -> str:
    chosen = as_object(as_object(choice).get("function")).get("name")
    return forced(chosen, must=choice == "required", tools=tools)


def _message(message: Mapping[str, Any]) -> Message:
    return Message(role_of(message, _ROLES), text_of(message.get("content")))


def _history(message: Mapping[str, Any]) -> Iterator[Asked | Returned | None]:
    if message.get("role") == "tool":
        id_ = as_text(message.get("tool_call_id"))
        yield Returned(id_, result_of(message.get("content")))
    else:
        yield None
    for call in objects(message.get("tool_calls")):
        function = as_object(call.get("function"))
        args = arguments_of(function.get("arguments"))
        yield Asked(as_text(call.get("id")), as_text(function.get("name")), args)


def whole(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> dict[str, JSON]:
    """Write an answer as one body."""
    message: dict[str, JSON] = {
        "role": "assistant",
        "content": answer.text or None,
        "refusal": answer.refusal or None,
        "annotations": [],
    }
    if answer.tool_uses:
        message["tool_calls"] = [_call(use) for use in answer.tool_uses]
    choice = {"index": 0, "message": message, "logprobs": None}
    return {
        **_head(request, stamp, kind="chat.completion"),
        "choices": [choice | {"finish_reason": finish_reason(answer)}],
        "usage": _usage(answer.tokens),
    }


def _head(request: ModelRequest, stamp: Stamp, *, kind: str) -> dict[str, JSON]:
    return {
        "id": stamp.id("chatcmpl", "-"),
        "object": kind,
        "created": stamp.created,
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _call(use: ToolUse) -> dict[str, JSON]:
    function = {"name": use.name, "arguments": use.raw}
    return {"id": use.id, "type": "function", "function": function}


def finish_reason(answer: ModelAnswer) -> str:
    """Say why the model stopped, in this format's words."""
    if answer.finish:
        return answer.finish
    return "tool_calls" if answer.tool_uses else "stop"


def _usage(tokens: Tokens) -> dict[str, JSON]:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": cached_tokens(tokens), "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def frames(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> Iterator[Frame]:
    """Write an answer as a stream."""
    head = _head(request, stamp, kind="chat.completion.chunk")
    if request.stream_usage:
        head["usage"] = None

    def chunk(delta: Mapping[str, JSON], finish: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Frame({**head, "choices": [choice]}, is_delta="role" not in delta and not finish)

    content = None if answer.tool_uses or answer.refusal else ""
    yield chunk({"role": "assistant", "content": content, "refusal": None})
    yield from map(chunk, _deltas(answer))
    yield chunk({}, finish_reason(answer))
    if request.stream_usage:
        yield Frame({**head, "choices": [], "usage": _usage(answer.tokens)})
    yield Frame("[DONE]")


def _deltas(answer: ModelAnswer) -> Iterator[dict[str, JSON]]:
    for piece in pieces(answer.text):
        yield {"content": piece}
    for piece in pieces(answer.refusal):
        yield {"refusal": piece}
    for index, use in enumerate(answer.tool_uses):
        yield {"tool_calls": [{"index": index, **_call(use) | _arguments("", name=use.name)}]}
        for piece in pieces(use.raw):
            yield {"tool_calls": [{"index": index, **_arguments(piece)}]}


def _arguments(text: str, **named: str) -> dict[str, JSON]:
    return {"function": {**named, "arguments": text}}
