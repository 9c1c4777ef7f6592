"""What a span says, whoever instrumented it: its kind, messages, usage, tool, documents.

Read are OpenTelemetry's ``gen_ai.*`` (current names, old names, message events),
Traceloop's indexed ``gen_ai.prompt.0.role`` and ``traceloop.*``, OpenInference's
``llm.*``, ``tool.*``, ``retrieval.*``, and the Vercel AI SDK's ``ai.*``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Final

from evalkit.ledger import JSON
from evalkit.messages.conversation import first_of, read_arguments, whole_number
from evalkit.spans.chat import Message, loaded, message_from, messages_from
from evalkit.spans.exported import RawSpan, nested
from evalkit.trace import CallStatus, Document, SpanKind, ToolCall, Usage

_KINDS: Final[Mapping[str, SpanKind]] = {
    # OpenInference
    "LLM": "model",
    "AGENT": "agent",
    "TOOL": "tool",
    "CHAIN": "chain",
    "RETRIEVER": "retriever",
    # gen_ai.operation.name
    "chat": "model",
    "completion": "model",
    "text_completion": "model",
    "generate_content": "model",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "execute_tool": "tool",
    "retrieval": "retriever",
    "invoke_workflow": "chain",
    # traceloop.span.kind
    "agent": "agent",
    "tool": "tool",
    "workflow": "chain",
    "task": "chain",
}


def kind_of(span: RawSpan) -> SpanKind:
    """Say what part of the agent a span is."""
    a = span.attributes
    word = first_of(a, "openinference.span.kind", "gen_ai.operation.name", "llm.request.type")
    word = first_of({"": word, "t": a.get("traceloop.span.kind")}, "", "t")
    if word is not None:
        return _KINDS.get(str(word), "other")
    operation = str(a.get("ai.operationId", ""))
    if operation:
        return _vercel_kind(operation)
    if "gen_ai.tool.name" in a:
        return "tool"
    return "model" if "gen_ai.request.model" in a or "gen_ai.response.model" in a else "other"


def _vercel_kind(operation: str) -> SpanKind:
    if operation == "ai.toolCall":
        return "tool"
    if operation.endswith((".doGenerate", ".doStream")):
        return "model"
    return "other" if "embed" in operation else "chain"


def prompt_of(span: RawSpan) -> list[Message]:
    """Read the messages that went into a span; empty where no content was captured."""
    a = _with_events(span)
    if "gen_ai.input.messages" in a:
        return [*_system(a), *messages_from(a["gen_ai.input.messages"])]
    for listed in (nested(a, "llm.input_messages"), nested(a, "gen_ai.prompt")):
        if listed:
            return [message_from(item) for item in listed]
    if "ai.prompt.messages" in a:
        return messages_from(a["ai.prompt.messages"])
    if "ai.prompt" in a:
        return _vercel_prompt(loaded(a["ai.prompt"]))
    if "gen_ai.prompt" in a:
        return messages_from(a["gen_ai.prompt"])
    return [
        message_from(_event_message(event.attributes), role=event.name.split(".")[1])
        for event in span.events
        if event.name in _MESSAGE_EVENTS
    ]


_MESSAGE_EVENTS: Final = frozenset(
    f"gen_ai.{role}.message" for role in ("system", "user", "assistant", "tool")
)


def answer_of(span: RawSpan) -> list[Message]:
    """Read the messages that came out of a span; empty where no content was captured."""
    a = _with_events(span)
    if "gen_ai.output.messages" in a:
        return messages_from(a["gen_ai.output.messages"], role="assistant")
    for listed in (nested(a, "llm.output_messages"), nested(a, "gen_ai.completion")):
        if listed:
            return [message_from(item, role="assistant") for item in listed]
    if any(name in a for name in ("ai.response.text", "ai.response.toolCalls")):
        calls = loaded(a.get("ai.response.toolCalls"))
        parts = [*(calls if isinstance(calls, list) else [])]
        typed = [{"type": "text", "text": a.get("ai.response.text") or ""}]
        return [message_from({"content": [*typed, *map(_tool_call_part, parts)]}, role="assistant")]
    if "ai.response.object" in a:
        return [Message("assistant", (str(a["ai.response.object"]),))]
    if "gen_ai.completion" in a:
        return messages_from(a["gen_ai.completion"], role="assistant")
    return [
        message_from(_event_message(event.attributes), role="assistant")
        for event in span.events
        if event.name == "gen_ai.choice"
    ]


def _tool_call_part(call: Mapping[str, Any]) -> dict[str, Any]:
    return {**call, "type": "tool-call"}


def _with_events(span: RawSpan) -> Mapping[str, JSON]:
    """Add what some instrumentations keep in events: the content."""
    found = dict(span.attributes)
    for event in span.events:
        if event.name in _CONTENT_EVENTS:
            found.update(event.attributes)
    return found


_CONTENT_EVENTS: Final = frozenset({
    "gen_ai.content.prompt",
    "gen_ai.content.completion",
    "gen_ai.client.inference.operation.details",
})  # fmt: skip


def _event_message(attributes: Mapping[str, JSON]) -> dict[str, Any]:
    """Read an event that is one message; its parts may be JSON texts."""
    data = {name.removeprefix("gen_ai.event."): value for name, value in attributes.items()}
    for name in ("message", "tool_calls"):
        if name in data:
            data[name] = loaded(data[name])
    if "id" in data and "tool_call_id" not in data and data.get("role") == "tool":
        data["tool_call_id"] = data["id"]
    return data


def _system(attributes: Mapping[str, JSON]) -> list[Message]:
    value = loaded(attributes.get("gen_ai.system_instructions"))
    if isinstance(value, list):
        return [message_from({"role": "system", "parts": value})]
    return [Message("system", (str(value),))] if value else []


def _vercel_prompt(value: JSON) -> list[Message]:
    if not isinstance(value, Mapping):
        return messages_from(value)
    system = [Message("system", (str(value["system"]),))] if value.get("system") else []
    inner = value.get("messages")
    said = messages_from(inner if inner is not None else value.get("prompt"))
    return [*system, *said]


def model_of(span: RawSpan) -> str:
    """Name the model: the one that answered rather than the one that was asked for."""
    names = (
        "gen_ai.response.model",
        "llm.response.model_name",
        "ai.response.model",
        "llm.model_name",
        "gen_ai.request.model",
        "ai.model.id",
    )
    return str(first_of(span.attributes, *names) or "")


def usage_of(span: RawSpan) -> Usage | None:
    """Read the tokens and the cost of a model call; ``None`` if nothing is said."""
    a = span.attributes
    cost = first_of(a, "llm.cost.total", "gen_ai.usage.cost")
    usage = Usage(
        **{field: whole_number(first_of(a, *names)) for field, names in _TOKENS.items()},
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )
    return None if usage == Usage() else usage


_TOKENS: Final[Mapping[str, Sequence[str]]] = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
    ),
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
}


def finish_reason_of(span: RawSpan, answer: Sequence[Message]) -> str:
    """Say why the model stopped, in the provider's own word."""
    names = ("gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason")
    value = loaded(first_of(span.attributes, *names))
    if isinstance(value, list):
        value = value[0] if value else None
    return str(value or next((m.finish_reason for m in answer if m.finish_reason), ""))


def tool_of(span: RawSpan) -> ToolCall:
    """Read what a tool's own span says: name, arguments, result, status, duration."""
    a = span.attributes
    args, raw = _tool_arguments(a)
    call_id = first_of(a, "gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id")
    result = first_of(a, "gen_ai.tool.call.result", "ai.toolCall.result")
    result = first_of({"r": result, "o": a.get("output.value")}, "r", "o")
    if result is None:
        result = first_of(a, "traceloop.entity.output")
    return ToolCall(
        name=tool_name_of(span),
        args=args,
        raw_args=raw,
        status="error" if args is None else _tool_status(span),
        result=_exception(span) if result is None else result,
        duration_s=span.duration_s,
        id=str(call_id or ""),
        span_id=span.id,
    )


def tool_name_of(span: RawSpan) -> str:
    """Name the tool whose span it is."""
    names = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
    return str(first_of(span.attributes, *names) or span.name.removeprefix("execute_tool "))


def untold_of(span: RawSpan) -> tuple[str, ...]:
    """Say what a tool's span does not tell, of ``args`` and ``result``.

    Most instrumentations keep content to themselves unless they are told otherwise.
    """
    missing = []
    if not _tells_arguments(span.attributes):
        missing.append("args")
    if tool_of(span).result is None:
        missing.append("result")
    return tuple(missing)


def _tells_arguments(a: Mapping[str, JSON]) -> bool:
    if first_of(a, *_ARGUMENTS) is not None:
        return True
    if isinstance(loaded(a.get("traceloop.entity.input")), Mapping):
        return True
    # A bare text says what went in, but not under which name.
    args, _ = _tool_arguments(a)
    return "input.value" in a and args != {"input": a["input.value"]}


_ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "ai.toolCall.args", "ai.toolCall.input")


def _tool_status(span: RawSpan) -> CallStatus:
    if "timeout" in str(span.attributes.get("error.type", "")).lower():
        return "timeout"
    return span.status


def _exception(span: RawSpan) -> JSON:
    """Give the message of the exception that ended a span."""
    return next(
        (e.attributes.get("exception.message") for e in span.events if e.name == "exception"), None
    )


def _tool_arguments(a: Mapping[str, JSON]) -> tuple[Mapping[str, JSON] | None, str | None]:
    """Read a tool's arguments; no content captured is no argument."""
    raw = first_of(a, *_ARGUMENTS)
    if raw is not None:
        return read_arguments(raw)
    entity = loaded(a.get("traceloop.entity.input"))
    if isinstance(entity, Mapping):
        inner = first_of(entity, "kwargs", "inputs")
        return dict(inner if isinstance(inner, Mapping) else entity), None
    raw = a.get("input.value")
    if raw is None:
        return {}, None
    args, malformed = read_arguments(raw)
    if args is None and a.get("input.mime_type") != "application/json":
        return _python_mapping(raw) or {"input": raw}, None
    return args, malformed


def _python_mapping(text: JSON) -> dict[str, JSON] | None:
    """Read arguments that an instrumentation wrote down as Python would show them."""
    if not isinstance(text, str) or not text.startswith("{") or len(text) > _MAX_LITERAL:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) and all(isinstance(k, str) for k in value) else None


_MAX_LITERAL: Final = 100_000


def documents_of(span: RawSpan) -> tuple[Document, ...]:
    """Read the documents that a retriever returned."""
    a = span.attributes
    listed: list[Any] = nested(a, "retrieval.documents")
    if not listed:
        current = loaded(a.get("gen_ai.retrieval.documents"))
        listed = current if isinstance(current, list) else []
    return tuple(
        _document(item.get("document", item)) for item in listed if isinstance(item, Mapping)
    )


def _document(data: Mapping[str, Any]) -> Document:
    score = data.get("score")
    return Document(
        id=str(first_of(data, "id", "document_id") or ""),
        score=float(score) if isinstance(score, int | float) else None,
        content=str(first_of(data, "content", "text") or ""),
    )
