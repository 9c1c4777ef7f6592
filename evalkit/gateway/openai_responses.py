"""OpenAI's Responses API: translation, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evalkit.gateway.canonical import (
    Asked,
    BadRequest,
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
    model_of,
    objects,
    paired,
    result_of,
    role_of,
    text_of,
    tool_choice_of,
)
from evalkit.ledger import JSON

__all__ = [
    "carries_cut_args", "error", "finish_reason", "frames", "name", "overloaded_status", "read",
    "request_header", "tool_prefix", "usage", "whole",
]  # fmt: skip

name: Final = "openai-responses"

_SYSTEM: Final = ("system", "developer")
_ROLES: Final = ("user", "assistant", *_SYSTEM)
_SETS: Final = ("mcp", "namespace", "tool_search")
"""Kinds of tools that stand for many, whose names the request does not tell."""
_ECHOED: Final[Mapping[str, JSON]] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""What a response repeats of its request, with what stands there if it says nothing."""


def read(body: Mapping[str, JSON]) -> ModelRequest:
    """Read the body of a request.

    Raises
    ------
    BadRequest
        If nothing could be answered to it.
    """
    _refuse_background(body)
    items = _items(body.get("input"))
    stored = (Tool(""),) if body.get("prompt") else ()
    tools = (*map(_tool, objects(body.get("tools"))), *stored)
    messages = [item for item in items if "role" in item]
    system = [as_text(body.get("instructions")), *_texts(messages, system=True)]
    wanted = as_object(as_object(body.get("text")).get("format"))
    prompt = (body.get("tools"), body.get("instructions"), *items)
    return ModelRequest(
        wire=name,
        model=model_of(body),
        system="\n\n".join(filter(None, system)),
        messages=tuple(_message(item) for item in messages if item["role"] not in _SYSTEM),
        history=paired(
            (part for item in items for part in _history(item)),
            is_kept=_is_kept(body, items),
        ),
        tools=tools,
        stream=body.get("stream") is True,
        max_tokens=as_count(body.get("max_output_tokens")),
        wants_json=wanted.get("type") in ("json_schema", "json_object"),
        schema=wanted.get("schema"),
        tool_choice=tool_choice_of(body.get("tool_choice")),
        parallel=is_parallel(body),
        forced_tool=_forced_tool(body.get("tool_choice"), tools),
        pieces=prompt,
        n_cached=len(prompt),
        raw=body,
    )


def _refuse_background(body: Mapping[str, JSON]) -> None:
    """Refuse what would be answered before there is an answer, and asked for again and again."""
    if body.get("background") is True:
        raise BadRequest(
            "`background: true` is not supported by the scripted model: there is nothing to wait "
            "for; let the agent ask in the foreground"
        )


def _items(given: JSON) -> list[Mapping[str, Any]]:
    """Give the input as a list of items; a string is one message."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list) or not all(isinstance(item, Mapping) for item in given):
        raise BadRequest("`input` must be text or a list of items")
    return given


def _is_kept(body: Mapping[str, JSON], items: list[Mapping[str, Any]]) -> bool:
    """Say whether part of the conversation lies with the provider."""
    refers = any(item.get("type") == "item_reference" for item in items)
    return refers or bool(body.get("previous_response_id") or body.get("conversation"))


def _texts(messages: list[Mapping[str, Any]], *, system: bool) -> list[str]:
    return [text_of(one.get("content")) for one in messages if (one["role"] in _SYSTEM) is system]


def _tool(tool: Mapping[str, Any]) -> Tool:
    kind = as_text(tool.get("type"))
    if kind in _SETS:
        return Tool("")
    return Tool(as_text(tool.get("name")) or kind, tool.get("parameters"))


def _forced_tool(choice: JSON, tools: tuple[Tool, ...]) -> str:
    chosen = as_object(choice).get("name")
    return forced(chosen, must=choice == "required", tools=tools)


def _message(item: Mapping[str, Any]) -> Message:
    return Message(role_of(item, _ROLES), text_of(item.get("content")))


def _history(item: Mapping[str, Any]) -> Iterator[Asked | Returned]:
    id_ = as_text(item.get("call_id"))
    if item.get("type") == "function_call":
        yield Asked(id_, as_text(item.get("name")), arguments_of(item.get("arguments")))
    elif item.get("type") == "function_call_output":
        yield Returned(id_, result_of(item.get("output")))


def whole(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> dict[str, JSON]:
    """Write an answer as one body."""
    is_cut = answer.finish == "length"
    return {
        **_begun(request, stamp),
        "status": "incomplete" if is_cut else "completed",
        "completed_at": None if is_cut else float(stamp.created),
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": list(_output(answer, stamp)),
        "usage": _usage(answer.tokens),
    }


def _begun(request: ModelRequest, stamp: Stamp) -> dict[str, JSON]:
    """Give a response as it stands before there is any output."""
    echoed = {key: request.raw.get(key, default) for key, default in _ECHOED.items()}
    return {
        "id": stamp.id("resp"),
        "object": "response",
        "created_at": float(stamp.created),
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": request.model,
        "output": [],
        "service_tier": "default",
        "usage": None,
        **echoed,
    }


def _output(answer: ModelAnswer, stamp: Stamp) -> Iterator[dict[str, JSON]]:
    if answer.thinking:
        summary = {"type": "summary_text", "text": answer.thinking}
        yield {"type": "reasoning", "id": stamp.id("rs"), "summary": [summary]}
    if answer.text or answer.refusal:
        yield {
            "type": "message",
            "id": stamp.id("msg"),
            "status": "completed",
            "role": "assistant",
            "content": [_part(answer)],
        }
    for index, use in enumerate(answer.tool_uses, start=1):
        yield _call(use, f"{stamp.id('fc')}_{index}")


def _part(answer: ModelAnswer) -> dict[str, JSON]:
    if answer.refusal:
        return {"type": "refusal", "refusal": answer.refusal}
    return {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}


def _call(use: ToolUse, id_: str) -> dict[str, JSON]:
    return {
        "type": "function_call",
        "id": id_,
        "call_id": use.id,
        "name": use.name,
        "arguments": use.raw,
        "status": "completed",
    }


def finish_reason(answer: ModelAnswer) -> str:
    """Say how the response ended, in this format's words."""
    return "incomplete" if answer.finish == "length" else "completed"


def _usage(tokens: Tokens) -> dict[str, JSON]:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": cached_tokens(tokens), "cache_write_tokens": 0},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.output,
    }


def frames(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> Iterator[Frame]:
    """Write an answer as a stream."""
    for number, data in enumerate(_events(answer, request, stamp)):
        kind = data["type"]
        yield Frame({**data, "sequence_number": number}, kind, is_delta=kind.endswith(".delta"))


def _events(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> Iterator[dict[str, JSON]]:
    begun = _begun(request, stamp)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_output(answer, stamp)):
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": _empty(item)}
        yield from _ITEM_EVENTS[item["type"]](item, {"item_id": item["id"], **at})
        yield {"type": "response.output_item.done", **at, "item": item}
    done = whole(answer, request, stamp)
    yield {"type": f"response.{done['status']}", "response": done}


def _empty(item: Mapping[str, JSON]) -> dict[str, JSON]:
    """Give an item as it stands when it begins."""
    bare = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
    return {key: bare.get(key, value) for key, value in item.items()}


def _message_events(item: Mapping[str, JSON], at: Mapping[str, JSON]) -> Iterator[dict[str, JSON]]:
    [part] = item["content"]
    kind, key = ("output_text", "text") if "text" in part else ("refusal", "refusal")
    place = {**at, "content_index": 0}
    extra: dict[str, JSON] = {"logprobs": []} if key == "text" else {}
    yield {"type": "response.content_part.added", **place, "part": {**part, key: ""}}
    for piece in pieces(part[key]):
        yield {"type": f"response.{kind}.delta", **place, "delta": piece, **extra}
    yield {"type": f"response.{kind}.done", **place, key: part[key], **extra}
    yield {"type": "response.content_part.done", **place, "part": part}


def _call_events(item: Mapping[str, JSON], at: Mapping[str, JSON]) -> Iterator[dict[str, JSON]]:
    kind = "response.function_call_arguments"
    for piece in pieces(item["arguments"]):
        yield {"type": f"{kind}.delta", **at, "delta": piece}
    yield {"type": f"{kind}.done", **at, "arguments": item["arguments"]}


def _reasoning_events(
    item: Mapping[str, JSON], at: Mapping[str, JSON]
) -> Iterator[dict[str, JSON]]:
    [part] = item["summary"]
    kind = "response.reasoning_summary"
    place = {**at, "summary_index": 0}
    yield {"type": f"{kind}_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": f"{kind}_text.delta", **place, "delta": piece}
    yield {"type": f"{kind}_text.done", **place, "text": part["text"]}
    yield {"type": f"{kind}_part.done", **place, "part": part}


_ITEM_EVENTS: Final = {
    "message": _message_events,
    "function_call": _call_events,
    "reasoning": _reasoning_events,
}
