"""Telling formats apart, so that the wrong file is refused with a sentence.

Nothing is guessed silently: an importer asks what a document looks like, and
refuses what is not its own by naming what it is and which importer reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from evalkit.errors import TraceError
from evalkit.ledger import JSON


class Kind(NamedTuple):
    """What a document looks like."""

    description: str
    """With its article: "an Inspect AI log"."""
    format: str = ""
    """Name of the importer that reads it; empty where evalkit has none."""


CHAT: Final = Kind("a list of chat messages")
"""Messages that OpenAI and Anthropic write alike."""


def refuse_other(value: JSON, *, format: str, where: str) -> None:  # noqa: A002
    """Refuse a document that is another importer's, or nobody's.

    Raises
    ------
    TraceError
        With a sentence that says what it looks like and what to do.

    Examples
    --------
    >>> refuse_other({"resourceSpans": []}, format="openai", where="a.json")
    Traceback (most recent call last):
    evalkit.errors.TraceError: a.json: looks like an OpenTelemetry export (OTLP JSON), not like
    openai; use: evalkit import otel
    """
    kind = recognise(value)
    if kind is None:
        raise TraceError(f"{where}: looks like no {format} file: {_shape(value)}")
    if kind.format == format or (kind is CHAT and format in ("openai", "anthropic")):
        return
    if kind is CHAT:
        advice = "use: evalkit import openai, or evalkit import anthropic"
    elif kind.format:
        advice = f"use: evalkit import {kind.format}"
    else:
        advice = "evalkit has no importer for that"
    raise TraceError(f"{where}: looks like {kind.description}, not like {format}; {advice}")


def recognise(value: JSON) -> Kind | None:
    """Say what a document looks like; ``None`` for what nobody knows."""
    for looks, kind in _KINDS:
        if looks(value):
            return kind
    return _chat(value)


def _shape(value: JSON) -> str:
    if isinstance(value, Mapping):
        return f"an object with the keys {', '.join(sorted(map(str, value))[:8])}"
    if isinstance(value, list):
        inside = f" of {_shape(value[0])}" if value else ", empty"
        return f"a list{inside}"
    return f"a single {type(value).__name__}"


def _has(*keys: str) -> Callable[[JSON], bool]:
    """Look for an object that has all of these keys."""
    return lambda value: isinstance(value, Mapping) and all(key in value for key in keys)


def _all_of(*keys: str) -> Callable[[JSON], bool]:
    """Look for such an object, or a list that begins with one."""
    has = _has(*keys)
    return lambda value: has(value[0] if isinstance(value, list) and value else value)


def _is_schema(value: JSON) -> bool:
    words = ("$schema", "$defs", "definitions", "properties", "$ref")
    return _has("type")(value) and any(word in value for word in words)


def _is_event_pair(value: JSON) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and _has("type")(value[1])
    )


_KINDS: Final[tuple[tuple[Callable[[JSON], bool], Kind], ...]] = (
    (_is_schema, Kind("a JSON Schema, which describes traces but holds none")),
    (_has("resourceSpans"), Kind("an OpenTelemetry export (OTLP JSON)", "otel")),
    (_has("resource_spans"), Kind("an OpenTelemetry export (OTLP JSON)", "otel")),
    (_has("resourceLogs"), Kind("an OpenTelemetry export of logs, not of spans")),
    (_has("resourceMetrics"), Kind("an OpenTelemetry export of metrics, not of spans")),
    (
        _all_of("spanContext", "attributes"),
        Kind("a dump of JavaScript OpenTelemetry spans", "otel"),
    ),
    (_all_of("context", "attributes"), Kind("a dump of OpenTelemetry spans", "otel")),
    (_all_of("traceId", "spanId"), Kind("bare OpenTelemetry spans", "otel")),
    (_all_of("task_id", "traj"), Kind("a tau-bench result file", "tau-bench")),
    (_has("simulations"), Kind("a tau2-bench result file")),
    (_has("eval", "status"), Kind("an Inspect AI log")),
    (_has("post", "patch"), Kind("a LangSmith batch of runs")),
    (_has("evalId", "results"), Kind("a promptfoo export")),
    (_has("eval_cases"), Kind("an ADK eval set")),
    (_all_of("query", "expected_tool_use"), Kind("an ADK eval file")),
    (_has("history", "trajectory"), Kind("a SWE-agent trajectory")),
    (_has("uuid", "sessionId"), Kind("a Claude Code session")),
    (_has("leafUuid", "summary"), Kind("a Claude Code session")),
    (_is_event_pair, Kind("an event log of Anthropic's managed agents")),
)


_LANGCHAIN: Final = Kind("LangChain messages", "langchain")
_OPENAI: Final = Kind("OpenAI chat messages", "openai")
_ANTHROPIC: Final = Kind("Anthropic messages", "anthropic")
_LANGCHAIN_TYPES: Final = frozenset({"human", "ai", "HumanMessage", "AIMessage", "constructor"})
_ITEM_TYPES: Final = frozenset({"function_call", "function_call_output", "reasoning"})
_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "server_tool_use"})


def _chat(value: JSON) -> Kind | None:
    """Say whose chat messages a document holds, going by its first conversation."""
    if isinstance(value, list) and value and _is_record(value[0]):
        return _chat(value[0])
    if _has("request")(value):
        return _of_response(value.get("response")) or _chat(value["request"])
    messages = value.get("messages") if isinstance(value, Mapping) else value
    if not isinstance(messages, list) or (not messages and value is messages):
        return None
    kinds = [kind for kind in map(_of_message, messages) if kind is not None]
    if messages and not kinds:
        return None
    return next((kind for kind in kinds if kind is not CHAT), CHAT)


def _is_record(value: JSON) -> bool:
    return isinstance(value, list) or _has("messages")(value) or _has("request")(value)


def _of_response(response: JSON) -> Kind | None:
    if _has("choices")(response):
        return _OPENAI
    return _ANTHROPIC if _has("stop_reason")(response) else None


def _of_message(message: JSON) -> Kind | None:
    if not isinstance(message, Mapping):
        return None
    if "role" not in message:
        return _without_role(message)
    openai_words = ("tool_calls", "function_call", "tool_call_id", "refusal")
    if any(word in message for word in openai_words) or message["role"] in _OPENAI_ROLES:
        return _OPENAI
    return _ANTHROPIC if _BLOCKS.intersection(_types(message.get("content"))) else CHAT


def _without_role(message: Mapping[str, Any]) -> Kind | None:
    if message.get("type") in _LANGCHAIN_TYPES or _has("type", "data")(message):
        return _LANGCHAIN
    if message.get("type") in _ITEM_TYPES:
        return _OPENAI
    return _LANGCHAIN if message.get("type") in ("system", "tool") else None


_OPENAI_ROLES: Final = frozenset({"tool", "function", "developer"})


def _types(content: JSON) -> Iterable[str]:
    parts = content if isinstance(content, list) else ()
    return (str(part.get("type")) for part in parts if isinstance(part, Mapping))
