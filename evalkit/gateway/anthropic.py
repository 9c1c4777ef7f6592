"""Anthropic's Messages API: translation, nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
from evalkit.gateway.reading import (
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

name: Final = "anthropic"
tool_prefix: Final = "toolu"
request_header: Final = "request-id"
overloaded_status: Final = 529
carries_cut_args: Final = True

_ROLES: Final = ("user", "assistant", "system")
_TOOLS: Final = ("tool_use", "tool_result")
_ERRORS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: Mapping[str, JSON]) -> ModelRequest:
    """Read the body of a request.

    Raises
    ------
    BadRequest
        If nothing could be answered to it.
    """
    messages = listed(body, "messages")
    history = paired(part for message in messages for part in _history(message))
    _refuse_repeated(part.id for part in history if isinstance(part, Asked))
    tools = tuple(_tool(tool) for tool in objects(body.get("tools")))
    choice = as_object(body.get("tool_choice"))
    wanted = as_object(as_object(body.get("output_config")).get("format"))
    wanted = wanted or as_object(body.get("output_format"))
    prompt = (body.get("tools"), body.get("system"), *messages)
    return ModelRequest(
        wire=name,
        model=model_of(body),
        system=text_of(body.get("system")),
        messages=tuple(_message(message) for message in messages),
        history=history,
        tools=tools,
        stream=body.get("stream") is True,
        max_tokens=as_count(body.get("max_tokens")),
        wants_json=bool(wanted),
        schema=wanted.get("schema"),
        tool_choice=tool_choice_of(choice),
        parallel=is_parallel(body),
        stops=stops_of(body.get("stop_sequences")),
        forced_tool=forced(choice.get("name"), must=choice.get("type") == "any", tools=tools),
        pieces=prompt,
        n_cached=_n_cached(body, prompt),
        raw=body,
    )


def _refuse_repeated(ids: Iterable[str]) -> None:
    """Refuse a call's id that comes again; other providers take that."""
    twice = [id_ for id_, n in Counter(ids).items() if n > 1]
    if twice:
        raise BadRequest(
            f"the request holds several tool calls with the id {twice[0]!r}; the provider refuses "
            "that: keep the ids as they came"
        )


def _tool(tool: Mapping[str, Any]) -> Tool:
    return Tool(as_text(tool.get("name")), tool.get("input_schema"))


def _message(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    said = [part for part in objects(content) if part.get("type") not in _TOOLS]
    text = content if isinstance(content, str) else text_of(said)
    return Message(role_of(message, _ROLES), text)


def _history(message: Mapping[str, Any]) -> Iterator[Asked | Returned | None]:
    """Give calls and results; in between, of what the user says, nothing but that it is there."""
    content = message.get("content")
    is_user = message.get("role") == "user"
    if not is_user or isinstance(content, str):
        yield None
    for part in objects(content):
        if part.get("type") == "tool_use":
            yield Asked(as_text(part.get("id")), as_text(part.get("name")), part.get("input"))
        elif part.get("type") == "tool_result":
            yield Returned(
                as_text(part.get("tool_use_id")),
                result_of(part.get("content")),
                "error" if part.get("is_error") is True else "ok",
            )
        elif is_user:
            yield None


def _n_cached(body: Mapping[str, JSON], prompt: tuple[JSON, ...]) -> int:
    """Count the pieces up to the last mark; a mark on the request itself means all of it."""
    if body.get("cache_control"):
        return len(prompt)
    marked = (number for number, piece in enumerate(prompt, start=1) if _is_marked(piece))
    return max(marked, default=0)


def _is_marked(piece: JSON) -> bool:
    parts = piece.get("content") if isinstance(piece, Mapping) else piece
    return any(part.get("cache_control") for part in objects(parts))


def whole(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> dict[str, JSON]:
    """Write an answer as one body."""
    return {
        "id": stamp.id("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": list(_blocks(answer)),
        "stop_reason": finish_reason(answer),
        "stop_sequence": None,
        "stop_details": _stop_details(answer),
        "usage": _usage(answer.tokens),
    }


def _blocks(answer: ModelAnswer) -> Iterator[dict[str, JSON]]:
    if answer.thinking:
        yield {"type": "thinking", "thinking": answer.thinking, "signature": "c2NyaXB0ZWQ="}
    if text := answer.refusal or answer.text:
        yield {"type": "text", "text": text}
    for use in answer.tool_uses:
        yield _tool_block(use)


def _tool_block(use: ToolUse) -> dict[str, JSON]:
    # An object cannot be cut off; what a client makes of broken pieces is an empty one.
    args = {} if use.is_cut else dict(use.args)
    return {"type": "tool_use", "id": use.id, "name": use.name, "input": args}


def finish_reason(answer: ModelAnswer) -> str:
    """Say why the model stopped, in this format's words."""
    if answer.refusal:
        return "refusal"
    if answer.finish == "length":
        return "max_tokens"
    return "tool_use" if answer.tool_uses else "end_turn"


def _stop_details(answer: ModelAnswer) -> JSON:
    if not answer.refusal:
        return None
    return {"type": "refusal", "category": None, "explanation": answer.refusal}


def usage(tokens: Tokens) -> dict[str, int]:
    """Count what a call used; input tokens leave out what is cached."""
    fresh = tokens.prompt - tokens.cache_read - tokens.cache_write
    return {
        "input_tokens": fresh,
        "output_tokens": tokens.output,
        "cache_read_tokens": tokens.cache_read,
        "cache_write_tokens": tokens.cache_write,
    }


def _usage(tokens: Tokens) -> dict[str, JSON]:
    return {
        "input_tokens": tokens.prompt - tokens.cache_read - tokens.cache_write,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": tokens.output,
        "service_tier": "standard",
    }


def frames(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> Iterator[Frame]:
    """Write an answer as a stream."""
    message = whole(answer, request, stamp)
    usage_ = message["usage"]
    begun = {"content": [], "usage": usage_ | {"output_tokens": 1}}
    nothing = {"stop_reason": None, "stop_details": None}
    yield _frame("message_start", message=message | begun | nothing)
    yield _frame("ping")
    uses = iter(answer.tool_uses)
    for index, block in enumerate(message["content"]):
        use = next(uses) if block["type"] == "tool_use" else None
        yield from _block_frames(block, index, use)
    stop = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    counted = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    totals = {key: usage_[key] for key in (*counted, "output_tokens")}
    yield _frame("message_delta", delta=stop, usage=totals)
    yield _frame("message_stop")


def _block_frames(block: Mapping[str, JSON], index: int, use: ToolUse | None) -> Iterator[Frame]:
    yield _frame("content_block_start", index=index, content_block=_empty(block))
    for delta in _deltas(block, use):
        yield _frame("content_block_delta", index=index, delta=delta)
    yield _frame("content_block_stop", index=index)


def _empty(block: Mapping[str, JSON]) -> dict[str, JSON]:
    """Give a block as it stands when it begins."""
    bare = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: bare.get(key, value) for key, value in block.items()}


def _deltas(block: Mapping[str, JSON], use: ToolUse | None) -> Iterator[dict[str, JSON]]:
    if use is not None:
        for piece in pieces(use.raw):
            yield {"type": "input_json_delta", "partial_json": piece}
    elif block["type"] == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    else:
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}


def _frame(kind: str, **data: JSON) -> Frame:
    return Frame({"type": kind, **data}, kind, is_delta=kind == "content_block_delta")


def error(status: int, message: str, stamp: Stamp) -> dict[str, JSON]:
    """Write an error as a body."""
    kind = _ERRORS.get(status, "api_error")
    told = {"type": kind, "message": message}
    return {"type": "error", "error": told, "request_id": stamp.id("req")}
