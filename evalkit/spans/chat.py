"""Messages inside spans, in one neutral form, out of every dialect's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from evalkit.ledger import JSON, encode
from evalkit.messages.conversation import Result, first_of, read_arguments
from evalkit.trace import ToolCall

Part: TypeAlias = str | ToolCall | Result


@dataclass(frozen=True, slots=True)
class Message:
    """One message: who, and what it holds in its order."""

    role: str
    parts: tuple[Part, ...] = ()
    finish_reason: str = ""

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(part for part in self.parts if isinstance(part, str))

    def key(self) -> bytes:
        """Tell messages apart, whichever way an instrumentation wrote them down."""
        calls = [(p.name, p.args, p.raw_args) for p in self.parts if isinstance(p, ToolCall)]
        results = [p.content for p in self.parts if isinstance(p, Result)]
        return encode([self.role, self.text.strip(), calls, results])


def loaded(value: JSON) -> JSON:
    """Give the JSON value inside a text; what is no text, or no JSON, stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value


def messages_from(value: JSON, *, role: str = "user") -> list[Message]:
    """Read a list of messages, one message, or a bare text of a role."""
    value = loaded(value)
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, Mapping):
        value = [value]
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return [message_from(item, role=role) for item in value]
    return [] if value in (None, "", []) else [Message(role, (_text(value),))]


def message_from(data: Mapping[str, Any], *, role: str = "user") -> Message:
    """Read one message in any of the dialects' words."""
    inner = data.get("message")
    if isinstance(inner, Mapping):
        data = {**data, **inner}
    role = _ROLES.get(str(data.get("role", role)), str(data.get("role", role)))
    parts = tuple(_parts(data, role))
    if any(isinstance(part, Result) for part in parts) and not any(
        isinstance(part, str) and part for part in parts
    ):
        role = "tool"
    return Message(role, parts, str(data.get("finish_reason") or ""))


_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}


def _parts(data: Mapping[str, Any], role: str) -> Iterator[Part]:
    content = data["parts"] if "parts" in data else data.get("content")
    call_id = data.get("tool_call_id")
    if call_id is not None or (role == "tool" and not isinstance(content, list)):
        name = str(data.get("name") or "")
        yield Result(_content(content, data), id=str(call_id or ""), name=name)
        return
    yield from _content_parts(content)
    listed = [_unwrapped(item) for item in data.get("contents") or ()]
    calls = [_unwrapped(item) for item in data.get("tool_calls") or ()]
    yield from (part["text"] for part in listed if isinstance(part.get("text"), str))
    # OpenInference writes a call of Anthropic's twice: among the contents, and here.
    yield from (_call(call) for call in calls or listed if "function" in call or "name" in call)


def _unwrapped(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take OpenInference's ``message_content.`` and ``tool_call.`` away."""
    for name in ("tool_call", "message_content"):
        inner = item.get(name)
        if isinstance(inner, Mapping):
            return inner
    return item


def _content(content: JSON, data: Mapping[str, Any]) -> JSON:
    """Give a tool's answer; a list of text parts is their text."""
    if content is None and data.get("contents"):
        content = [_unwrapped(item) for item in data["contents"]]
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and "text" in part for part in content
    ):
        return "\n".join(str(part["text"]) for part in content)
    return content


def _content_parts(content: JSON) -> Iterator[Part]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            yield from _content_part(part)


def _content_part(part: Mapping[str, Any]) -> Iterator[Part]:
    kind = str(part.get("type", "text")).replace("-", "_")
    if kind in ("text", "output_text", "input_text", "refusal"):
        yield str(first_of(part, "content", "text", "refusal") or "")
    elif kind in ("tool_call", "tool_use", "server_tool_call"):
        yield _call(part)
    elif kind in ("tool_call_response", "tool_result", "server_tool_call_response"):
        yield _result(part)
    elif kind not in _SILENT:
        yield f"[{part.get('type')}]"


_SILENT: Final = frozenset({"reasoning", "thinking", "redacted_thinking", "step_start"})


def _call(data: Mapping[str, Any]) -> ToolCall:
    function = data.get("function")
    inner = function if isinstance(function, Mapping) else data
    raw = first_of(inner, "arguments", "input", "args", "server_tool_call")
    args, raw_args = read_arguments({} if raw is None else raw)
    name = str(first_of(inner, "name", "toolName") or "")
    call_id = first_of(data, "id", "toolCallId", "tool_call_id")
    return ToolCall(name, args, raw_args=raw_args, id=str(call_id or ""))


def _result(part: Mapping[str, Any]) -> Result:
    content = first_of(part, "response", "result", "output", "content", "server_tool_call_response")
    failed = part.get("is_error") is True or part.get("isError") is True
    if isinstance(content, Mapping) and set(content) == {"type", "value"}:  # Vercel's output
        failed = failed or str(content["type"]).startswith("error")
        content = content["value"]
    call_id = first_of(part, "id", "toolCallId", "tool_use_id", "tool_call_id")
    name = str(first_of(part, "name", "toolName") or "")
    return Result(
        content=_content(content, {}),
        id=str(call_id or ""),
        name=name,
        status="error" if failed else "ok",
    )


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def has_calls(messages: Iterable[Message]) -> bool:
    """Say whether any message holds a tool call."""
    return any(isinstance(part, ToolCall) for message in messages for part in message.parts)
