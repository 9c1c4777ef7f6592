"""Which tools an agent says that it has: its attribute ``tools``, if that can be read whole.

``tools`` may be a list of functions, of names, of the schemas that are sent to a model
(Anthropic's and OpenAI's shapes), or of tool objects that have a ``name``. An agent that
says nothing, or of which one entry cannot be read, has said nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

DeclaredTools: TypeAlias = dict[str, list[str] | None]
"""Names of the arguments by tool; ``None`` for a tool that takes any, or does not say."""


def declared_tools(agent: object) -> DeclaredTools | None:
    """Read which tools an agent says that it has; ``None`` if it does not say.

    Examples
    --------
    >>> def book(flight_id: str, date: str) -> str: ...
    >>> def agent(text: str) -> str: ...
    >>> agent.tools = [book, {"name": "search", "input_schema": {"properties": {"to": {}}}}]
    >>> declared_tools(agent)
    {'book': ['flight_id', 'date'], 'search': ['to']}
    """
    said = getattr(agent, "tools", None)
    if isinstance(said, str) or not isinstance(said, Collection) or not said:
        return None
    found: DeclaredTools = {}
    for entry in said.values() if isinstance(said, Mapping) else said:
        read = _read(entry)
        if read is None:
            return None
        found[read[0]] = read[1]
    return found


def _read(entry: Any) -> tuple[str, list[str] | None] | None:
    """Read one tool: its name, and its arguments; ``None`` if it has no name."""
    if isinstance(entry, str):
        return entry, None
    if isinstance(entry, Mapping):
        return _read_schema(entry.get("function", entry))
    name = getattr(entry, "name", None)
    if isinstance(name, str):
        schema = getattr(entry, "params_json_schema", None) or getattr(entry, "input_schema", None)
        return name, _properties(schema)
    if callable(entry):
        name = getattr(entry, "tool_name", None) or getattr(entry, "__name__", None)
        return (name, _parameters(entry)) if isinstance(name, str) else None
    return None


def _read_schema(schema: Any) -> tuple[str, list[str] | None] | None:
    name = schema.get("name") if isinstance(schema, Mapping) else None
    if not isinstance(name, str):
        return None
    return name, _properties(schema.get("input_schema") or schema.get("parameters"))


def _properties(schema: object) -> list[str] | None:
    """Give the arguments that a JSON Schema allows; ``None`` if it allows others."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return None
    if {"anyOf", "allOf", "oneOf", "patternProperties", "$ref"} & schema.keys():
        return None
    return None if schema.get("additionalProperties") else list(schema["properties"])


def _parameters(function: Callable[..., Any]) -> list[str] | None:
    """Give the parameters of a function; ``None`` if it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        return None
    return [each.name for each in parameters if each.kind is not inspect.Parameter.VAR_POSITIONAL]
