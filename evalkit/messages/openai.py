"""OpenAI chat messages, and the items of its Responses API, as a trace.

A user message begins a turn; system and developer messages are metadata; each
text of the assistant is a reply. Arguments come as a JSON string or an object;
what is no JSON object makes the call ``error``, with the raw text kept.

OpenAI's tool messages have no status. Where a recorder added ``status`` (one of
evalkit's words) or ``is_error: true``, it is used; otherwise a result is ``ok``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.messages.conversation import (
    Conversation,
    Result,
    as_mapping,
    as_messages,
    first_of,
    list_of,
    part_of,
    prompt_of,
    text_of_parts,
    tool_call,
    whole_number,
    word_of,
)
from evalkit.trace import CALL_STATUSES, ModelCall, ToolCall, Trace, Usage

_TEXT: Final = ("text", "refusal", "input_text", "output_text", "summary_text")


def trace_of_messages(
    messages: Iterable[object] | Mapping[str, Any], *, metadata: Mapping[str, JSON] | None = None
) -> Trace:
    """Read a conversation of OpenAI chat messages, or of Responses items.

    Parameters
    ----------
    messages
        Messages, as JSON or as objects of the SDK, or ``{"messages": [...]}``.
    metadata
        Kept in the trace, beside the text of system messages (``system``).

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
    ...     {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function",
    ...      "function": {"name": "get_weather", "arguments": '{"city": "Denver"}'}}]},
    ...     {"role": "tool", "tool_call_id": "c1", "content": "clear"},
    ...     {"role": "assistant", "content": "Clear in Denver."},
    ... ])
    >>> print(trace.tool_calls[0], trace.tool_calls[0].status, trace.reply, sep=" | ")
    get_weather {'city': 'Denver'} | ok | Clear in Denver.
    """
    return _read(as_messages(messages)).trace(metadata=metadata)


def trace_of_exchange(
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    *,
    metadata: Mapping[str, JSON] | None = None,
) -> Trace:
    """Read one recorded request to chat completions and its response.

    Parameters
    ----------
    request
        Body of the request, with ``messages``.
    response
        Body of the response, with ``choices``; the first one counts.
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
        If a message cannot be read, or the response has no choice.
    """
    response = as_mapping(response, where="response")
    choice = _first_choice(response)
    history = as_messages(request)
    conversation = _read(history)
    _assistant(conversation, as_mapping(choice["message"], where="response"), "response")
    conversation.model_call(
        ModelCall(
            model=str(first_of(response, "model") or first_of(request, "model") or ""),
            usage=usage_of(response.get("usage")),
            prompt=prompt_of(request, history),
            reply=choice["message"],
            finish_reason=word_of(choice, "finish_reason"),
        )
    )
    earlier = any(_is_assistant(message) for message in history)
    return conversation.trace(models_observed=not earlier, metadata=metadata)


def usage_of(usage: object) -> Usage | None:
    """Read OpenAI's ``usage``; its input tokens include the cached ones."""
    if usage is None:
        return None
    data = as_mapping(usage, where="usage")
    key = "input_tokens_details" if "input_tokens_details" in data else "prompt_tokens_details"
    details = part_of(data, key, where="usage")
    return Usage(
        input_tokens=whole_number(first_of(data, "prompt_tokens", "input_tokens")),
        output_tokens=whole_number(first_of(data, "completion_tokens", "output_tokens")),
        cache_read_tokens=whole_number(details.get("cached_tokens")),
    )


def calls_of(message: Mapping[str, Any], *, where: str) -> list[ToolCall]:
    """Read the tool calls of one assistant message, the legacy ``function_call`` too."""
    listed = list_of(message, "tool_calls", where=where)
    calls = [_call(call, f"{where}.tool_calls[{number}]") for number, call in enumerate(listed)]
    legacy = message.get("function_call")
    if legacy is None:
        return calls
    function = as_mapping(legacy, where=f"{where}.function_call")
    return [
        *calls,
        tool_call(function.get("name"), function.get("arguments"), where=f"{where}.function_call"),
    ]


def _first_choice(response: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = response.get("choices")
    if isinstance(choices, list | tuple) and choices:
        choice = as_mapping(choices[0], where="response.choices[0]")
        if choice.get("message") is not None:
            return choice
    raise TraceError(
        "response: no choices[0].message; give the whole body of a chat completion "
        "(put the chunks of a stream together first)"
    )


def _is_assistant(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "assistant"


def _read(messages: Iterable[object]) -> Conversation:
    conversation = Conversation()
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        data = as_mapping(message, where=where)
        _reader_of(data, where)(conversation, data, where)
    return conversation


_Reader = Callable[[Conversation, Mapping[str, Any], str], None]


def _reader_of(message: Mapping[str, Any], where: str) -> _Reader:
    role, kind = message.get("role"), message.get("type")
    reader = _ROLES.get(str(role)) if role is not None else _ITEMS.get(str(kind))
    if reader is None:
        known = ", ".join(_ROLES) if role is not None or kind is None else ", ".join(_ITEMS)
        label = f"type {kind!r}" if role is None and kind is not None else f"role {role!r}"
        raise TraceError(f"{where}: {label} is none that OpenAI messages have; known: {known}")
    return reader


def _text(message: Mapping[str, Any], where: str, *, separator: str = "\n") -> str:
    return text_of_parts(message.get("content"), text_types=_TEXT, where=where, separator=separator)


def _system(conversation: Conversation, message: Mapping[str, Any], where: str) -> None:
    conversation.system(_text(message, where))


def _user(conversation: Conversation, message: Mapping[str, Any], where: str) -> None:
    conversation.user(_text(message, where))


def _assistant(conversation: Conversation, message: Mapping[str, Any], where: str) -> None:
    if "type" not in message:
        conversation.answer()  # an item of the Responses API is only a part of an answer
    conversation.reply(_text(message, where, separator=""))
    conversation.reply(word_of(message, "refusal"))
    for call in calls_of(message, where=where):
        conversation.call(call)


def _call(call: object, where: str) -> ToolCall:
    data = as_mapping(call, where=where)
    if "function" in data:
        function = as_mapping(data["function"], where=f"{where}.function")
        arguments = function.get("arguments")
        return tool_call(function.get("name"), arguments, id=data.get("id"), where=where)
    if "custom" in data:
        custom = as_mapping(data["custom"], where=f"{where}.custom")
        arguments = {"input": custom.get("input")}
        return tool_call(custom.get("name"), arguments, id=data.get("id"), where=where)
    raise TraceError(f"{where}: a tool call has `function` or `custom`, this one has {list(data)}")


def _tool(conversation: Conversation, message: Mapping[str, Any], where: str) -> None:
    result = Result(
        content=_content_of_result(message.get("content"), where),
        id=word_of(message, "tool_call_id"),
        name=word_of(message, "name"),
        status=_status(message, where),
    )
    conversation.result(result, where=where)


def _content_of_result(content: object, where: str) -> JSON:
    """Give text as text; what a vendor's API would not take (an object) as it stands."""
    if isinstance(content, list | tuple):
        return text_of_parts(content, text_types=_TEXT, where=where)
    return content


def _status(message: Mapping[str, Any], where: str) -> Any:
    if message.get("is_error") is True:
        return "error"
    status = word_of(message, "status") or "ok"
    if status in ("success", "completed"):
        return "ok"
    if status not in CALL_STATUSES:
        raise TraceError(f"{where}: status {status!r} is none of {', '.join(CALL_STATUSES)}")
    return status


def _item_call(conversation: Conversation, item: Mapping[str, Any], where: str) -> None:
    arguments = item["arguments"] if "arguments" in item else {"input": item.get("input")}
    call_id = first_of(item, "call_id", "id")
    conversation.call(tool_call(item.get("name"), arguments, id=call_id, where=where))


def _item_output(conversation: Conversation, item: Mapping[str, Any], where: str) -> None:
    content = _content_of_result(item.get("output"), where)
    status = _status(item, where)
    result = Result(content, id=word_of(item, "call_id"), status=status)
    conversation.result(result, where=where)


def _nothing(conversation: Conversation, item: Mapping[str, Any], where: str) -> None:
    """Pass over the model's reasoning: it is neither said nor done."""


_ROLES: Final[Mapping[str, _Reader]] = {
    "system": _system,
    "developer": _system,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
    "function": _tool,
}
_ITEMS: Final[Mapping[str, _Reader]] = {
    "function_call": _item_call,
    "function_call_output": _item_output,
    "custom_tool_call": _item_call,
    "custom_tool_call_output": _item_output,
    "reasoning": _nothing,
}
