"""LangChain and LangGraph messages as a trace.

Three dumps are met in files, and live objects in memory; all are read:

- ``messages_to_dict``: ``{"type": "ai", "data": {...}}``
- ``dumpd``: ``{"lc": 1, "type": "constructor", "id": [..., "AIMessage"], "kwargs": {...}}``
- ``model_dump``: the flat object, ``{"type": "ai", "content": ...}``

``invalid_tool_calls`` are calls with malformed arguments: ``error``, raw text kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.messages import openai
from evalkit.messages.conversation import (
    Conversation,
    Result,
    as_mapping,
    as_messages,
    first_of,
    list_of,
    part_of,
    text_of_parts,
    tool_call,
    whole_number,
    word_of,
)
from evalkit.trace import CALL_STATUSES, CallStatus, ModelCall, ToolCall, Trace, Usage

_TEXT: Final = ("text", "refusal", "output_text", "input_text", "text-plain")
_SAID: Final = frozenset(_TEXT)


def trace_of_messages(
    messages: Iterable[object] | Mapping[str, Any], *, metadata: Mapping[str, JSON] | None = None
) -> Trace:
    """Read a conversation of LangChain messages, or the state of a LangGraph agent.

    Parameters
    ----------
    messages
        Messages in any of the three dumps or as live objects, or
        ``{"messages": [...]}``.
    metadata
        Kept in the trace, beside the text of system messages (``system``).

    Returns
    -------
    Trace
        Its tool calls are observed. A model call stands there for each message
        of the model that says which model or how many tokens; calls of the
        model are observed if all of them do.

    Raises
    ------
    TraceError
        If a message cannot be read; the text says which and why.

    Examples
    --------
    >>> trace = trace_of_messages([
    ...     {"type": "human", "content": "Weather in Denver?"},
    ...     {"type": "ai", "content": "", "tool_calls": [
    ...         {"name": "get_weather", "args": {"city": "Denver"}, "id": "c1"}]},
    ...     {"type": "tool", "content": "clear", "tool_call_id": "c1", "status": "success"},
    ... ])
    >>> print(trace.tool_calls[0], trace.tool_calls[0].status)
    get_weather {'city': 'Denver'} ok
    """
    conversation = Conversation()
    n_said = n_metered = 0
    for number, message in enumerate(as_messages(messages)):
        where = f"messages[{number}]"
        kind, data = _unwrapped(as_mapping(message, where=where), where)
        _read_message(conversation, kind, data, where=where)
        if kind == "ai":
            n_said += 1
            n_metered += _model_call(conversation, data, where)
    return conversation.trace(models_observed=n_said == n_metered > 0, metadata=metadata)


def _unwrapped(message: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any]]:
    """Give the kind of a message and its fields, whichever dump it is."""
    if "lc" in message:
        data = as_mapping(message.get("kwargs"), where=f"{where}.kwargs")
        names = list_of(message, "id", where=where) or ("",)
        return _kind(data.get("type") or _CLASSES.get(str(names[-1])), data, where), data
    data = message
    if "data" in message:
        data = as_mapping(message["data"], where=f"{where}.data")
    return _kind(message.get("type") or data.get("type"), data, where), data


def _kind(kind: object, data: Mapping[str, Any], where: str) -> str:
    """Name the kind of a message in one word; chunks of a stream count as messages."""
    word = _CLASSES.get(str(kind), str(kind))
    if word == "chat":
        word = _ROLES.get(str(data.get("role")), str(data.get("role")))
    if word not in _KINDS:
        raise TraceError(
            f"{where}: type {kind!r} is none that LangChain messages have; "
            f"known: {', '.join(_KINDS)}"
        )
    return word


def _read_message(
    conversation: Conversation, kind: str, data: Mapping[str, Any], *, where: str
) -> None:
    match kind:
        case "system":
            conversation.system(_text(data, where))
        case "human":
            conversation.user(_text(data, where))
        case "ai":
            conversation.answer()
            conversation.reply(_said(data, where))
            for call in _calls(data, where):
                conversation.call(call)
        case "tool" | "function":
            conversation.result(_result(data, where), where=where)


def _text(data: Mapping[str, Any], where: str) -> str:
    return text_of_parts(data.get("content"), text_types=_TEXT, where=where)


def _said(data: Mapping[str, Any], where: str) -> str:
    """Give the text that the model said, without its reasoning and its calls."""
    content = data.get("content")
    if isinstance(content, list | tuple):
        content = [
            part
            for part in content
            if isinstance(part, str)
            or word_of(as_mapping(part, where=f"{where}: content part"), "type") in _SAID
        ]
    return text_of_parts(content, text_types=_TEXT, where=where, separator="")


def _calls(data: Mapping[str, Any], where: str) -> list[ToolCall]:
    """Read the calls of a message; those of the vendor only where LangChain has none."""
    calls = [
        _call(call, "args", f"{where}.tool_calls[{number}]")
        for number, call in enumerate(list_of(data, "tool_calls", where=where))
    ]
    invalid = [
        _invalid_call(call, f"{where}.invalid_tool_calls[{number}]")
        for number, call in enumerate(list_of(data, "invalid_tool_calls", where=where))
    ]
    return calls + invalid or _calls_in_content(data, where) or _vendor_calls(data, where)


def _vendor_calls(data: Mapping[str, Any], where: str) -> list[ToolCall]:
    extra = part_of(data, "additional_kwargs", where=where)
    return openai.calls_of(extra, where=f"{where}.additional_kwargs")


def _calls_in_content(data: Mapping[str, Any], where: str) -> list[ToolCall]:
    content = data.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    return [
        _call(block, "input" if block["type"] == "tool_use" else "args", f"{where}.content")
        for block in blocks
        if isinstance(block, Mapping) and word_of(block, "type") in ("tool_use", "tool_call")
    ]


def _call(call: object, key: str, where: str) -> ToolCall:
    data = as_mapping(call, where=where)
    return tool_call(data.get("name"), data.get(key), id=data.get("id"), where=where)


def _invalid_call(call: object, where: str) -> ToolCall:
    """Read a call whose arguments LangChain could not parse; it may lack a name."""
    data = as_mapping(call, where=where)
    return ToolCall(
        name=word_of(data, "name"),
        args=None,
        raw_args=word_of(data, "args"),
        status="error",
        id=word_of(data, "id"),
    )


def _result(data: Mapping[str, Any], where: str) -> Result:
    return Result(
        content=_content_of_result(data.get("content"), where),
        id=word_of(data, "tool_call_id"),
        name=word_of(data, "name"),
        status=_status(data.get("status"), where),
    )


def _content_of_result(content: Any, where: str) -> JSON:
    """Join a list of nothing but text; keep everything else as it stands."""
    if isinstance(content, list | tuple) and all(_is_text(part) for part in content):
        return text_of_parts(content, text_types=_TEXT, where=where)
    return content


def _is_text(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and word_of(part, "type") in _SAID)


def _status(status: object, where: str) -> CallStatus:
    if status in (None, "success"):
        return "ok"
    for known in CALL_STATUSES:
        if status == known:
            return known
    raise TraceError(f"{where}: status {status!r} is none that LangChain has: success, error")


def _model_call(conversation: Conversation, data: Mapping[str, Any], where: str) -> bool:
    """Add the call that gave this message, if the message tells of it."""
    usage = data.get("usage_metadata")
    response = part_of(data, "response_metadata", where=where)
    model = first_of(response, "model_name", "model", "model_id")
    if usage is None and model is None:
        return False
    conversation.model_call(
        ModelCall(
            model=str(model or ""),
            usage=_usage(data, where),
            reply=data.get("content"),
            finish_reason=str(first_of(response, "finish_reason", "stop_reason") or ""),
        )
    )
    return True


def _usage(data: Mapping[str, Any], where: str) -> Usage | None:
    usage = part_of(data, "usage_metadata", where=where)
    details = part_of(usage, "input_token_details", where=f"{where}.usage_metadata")
    if not usage:
        return None
    return Usage(
        input_tokens=whole_number(usage.get("input_tokens")),
        output_tokens=whole_number(usage.get("output_tokens")),
        cache_read_tokens=whole_number(details.get("cache_read")),
        cache_write_tokens=whole_number(details.get("cache_creation")),
    )


_KINDS: Final = ("system", "human", "ai", "tool", "function", "remove")
_ROLES: Final[Mapping[str, str]] = {
    "user": "human",
    "assistant": "ai",
    "system": "system",
    "developer": "system",
    "tool": "tool",
}
_CLASSES: Final[Mapping[str, str]] = {
    f"{name}Message{chunk}": name.lower()
    for name in ("System", "Human", "AI", "Tool", "Function", "Chat")
    for chunk in ("", "Chunk")
}
