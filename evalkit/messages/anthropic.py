"""Anthropic messages as a trace.

A user message begins a turn, unless it only brings tool results. Text of the
assistant is a reply; text on both sides of a tool use is two. ``input`` is an
object here; text in its place (a stream cut short) makes the call ``error``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.messages.conversation import (
    Conversation,
    Result,
    as_mapping,
    as_messages,
    first_of,
    prompt_of,
    text_of_parts,
    tool_call,
    whole_number,
    word_of,
)
from evalkit.trace import ModelCall, Trace, Usage

_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_SILENT: Final = frozenset({"thinking", "redacted_thinking", "compaction", "fallback"})
_SHOWN: Final = frozenset({"image", "document", "search_result", "container_upload"})


def trace_of_messages(
    messages: Iterable[object] | Mapping[str, Any],
    *,
    system: object = None,
    metadata: Mapping[str, JSON] | None = None,
) -> Trace:
    """Read a conversation of Anthropic messages.

    Parameters
    ----------
    messages
        Messages, as JSON or as objects of the SDK, or ``{"messages": [...]}``.
    system
        The system prompt (text or text blocks), which Anthropic keeps apart.
    metadata
        Kept in the trace, beside the text of the system prompt (``system``).

    Returns
    -------
    Trace
        Its tool calls are observed; calls of the model are not.

    Raises
    ------
    TraceError
        If a message cannot be read; the text says which and why.

    Examples
    --------
    >>> trace = trace_of_messages([
    ...     {"role": "user", "content": "Weather in Denver?"},
    ...     {"role": "assistant", "content": [{"type": "tool_use", "id": "t1",
    ...      "name": "get_weather", "input": {"city": "Denver"}}]},
    ...     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
    ...      "content": "no such city", "is_error": True}]},
    ... ])
    >>> print(trace.tool_calls[0], trace.tool_calls[0].status, len(trace.turns), sep=" | ")
    get_weather {'city': 'Denver'} | error | 1
    """
    outer = messages.get("system") if isinstance(messages, Mapping) else None
    conversation = _read(as_messages(messages), system if system is not None else outer)
    return conversation.trace(metadata=metadata)


def trace_of_exchange(
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    *,
    metadata: Mapping[str, JSON] | None = None,
) -> Trace:
    """Read one recorded request to the Messages API and its response.

    Parameters
    ----------
    request
        Body of the request, with ``messages``.
    response
        Body of the response, with ``content``.
    metadata
        Kept in the trace.

    Returns
    -------
    Trace
        With one model call. ``models_observed`` only if the history holds no
        earlier answer of the model, whose request nobody recorded.

    Raises
    ------
    TraceError
        If a message cannot be read, or the response has no content.
    """
    response = as_mapping(response, where="response")
    if not isinstance(response.get("content"), list | tuple):
        raise TraceError(
            "response: no list under `content`; give the whole body of a message "
            "(put the events of a stream together first)"
        )
    history = as_messages(request)
    conversation = _read(history, request.get("system"))
    _assistant(conversation, response["content"], "response")
    conversation.model_call(
        ModelCall(
            model=str(first_of(response, "model") or first_of(request, "model") or ""),
            usage=usage_of(response.get("usage")),
            prompt=prompt_of(request, history),
            reply=response["content"],
            finish_reason=word_of(response, "stop_reason"),
        )
    )
    earlier = any(isinstance(m, Mapping) and m.get("role") == "assistant" for m in history)
    return conversation.trace(models_observed=not earlier, metadata=metadata)


def usage_of(usage: object) -> Usage | None:
    """Read Anthropic's ``usage``; its input tokens do not include the cached ones."""
    if usage is None:
        return None
    data = as_mapping(usage, where="usage")
    return Usage(
        input_tokens=whole_number(data.get("input_tokens")),
        output_tokens=whole_number(data.get("output_tokens")),
        cache_read_tokens=whole_number(data.get("cache_read_input_tokens")),
        cache_write_tokens=whole_number(data.get("cache_creation_input_tokens")),
    )


def _read(messages: Iterable[object], system: object) -> Conversation:
    conversation = Conversation()
    if system is not None:
        conversation.system(text_of_parts(system, text_types=("text",), where="system"))
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        data = as_mapping(message, where=where)
        _read_message(conversation, data, where)
    return conversation


def _read_message(conversation: Conversation, message: Mapping[str, Any], where: str) -> None:
    content = message.get("content")
    match message.get("role"):
        case "user":
            _user(conversation, content, where)
        case "assistant":
            _assistant(conversation, content, where)
        case "system":
            conversation.system(text_of_parts(content, text_types=("text",), where=where))
        case role:
            raise TraceError(
                f"{where}: role {role!r} is none that Anthropic messages have; "
                "known: user, assistant, system"
            )


def _blocks(content: object, where: str) -> list[Mapping[str, Any]]:
    """Give the content as blocks; a string is one block of text."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, Sequence):
        raise TraceError(f"{where}: content must be text or a list of blocks")
    return [
        as_mapping(block, where=f"{where}.content[{number}]")
        for number, block in enumerate(content)
    ]


def _user(conversation: Conversation, content: object, where: str) -> None:
    """Read tool results first, then what the user says beside them."""
    said: list[Mapping[str, Any]] = []
    blocks = _blocks(content, where)
    for number, block in enumerate(blocks):
        if _is_result(block):
            conversation.result(_result(block, where), where=f"{where}.content[{number}]")
        else:
            said.append(block)
    if said or not blocks:
        conversation.user(text_of_parts(said, text_types=("text",), where=where))


def _assistant(conversation: Conversation, content: object, where: str) -> None:
    """Read blocks in their order; text up to the next call is one reply."""
    text: list[str] = []
    for number, block in enumerate(_blocks(content, where)):
        place = f"{where}.content[{number}]"
        kind = word_of(block, "type")
        if kind == "text":
            text.append(word_of(block, "text"))
            continue
        if kind in _SILENT:
            continue
        conversation.reply("".join(text))
        text.clear()
        _assistant_block(conversation, block, place)
    conversation.reply("".join(text))


def _assistant_block(conversation: Conversation, block: Mapping[str, Any], where: str) -> None:
    if word_of(block, "type") in _CALLS:
        call = tool_call(block.get("name"), block.get("input"), id=block.get("id"), where=where)
        conversation.call(call)
    elif _is_result(block):
        conversation.result(_result(block, where), where=where)
    elif word_of(block, "type") not in _SHOWN:
        raise TraceError(
            f"{where}: block of type {block.get('type')!r} is none that evalkit knows; "
            f"known: text, {', '.join(sorted(_CALLS | _SILENT | _SHOWN))}, *tool_result"
        )


def _is_result(block: Mapping[str, Any]) -> bool:
    return word_of(block, "type").endswith("tool_result")


def _result(block: Mapping[str, Any], where: str) -> Result:
    content = block.get("content")
    failed = block.get("is_error") is True or _is_error_block(content)
    return Result(
        content=_content_of_result(content, where),
        id=word_of(block, "tool_use_id"),
        status="error" if failed else "ok",
    )


def _is_error_block(content: object) -> bool:
    """Say whether a server tool gave an error, which is a block of its own type."""
    return isinstance(content, Mapping) and word_of(content, "type").endswith("_error")


def _content_of_result(content: Any, where: str) -> JSON:
    """Join a list of nothing but text; keep everything else as it stands."""
    if isinstance(content, list | tuple) and all(
        isinstance(part, Mapping) and part.get("type") == "text" for part in content
    ):
        return text_of_parts(content, text_types=("text",), where=where)
    return content
