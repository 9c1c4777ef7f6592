"""Which tools the agent has, as far as a run tells: what it declared, and what it called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalkit.ledger import JSON
from evalkit.trace import Trace


@dataclass(frozen=True, slots=True)
class Toolset:
    """The tools of an agent.

    Parameters
    ----------
    schemas
        By tool, the JSON Schema of its arguments; empty where nobody told.
    examples
        By tool, arguments that it was called with somewhere in the run.
    """

    schemas: Mapping[str, Mapping[str, JSON]] = field(default_factory=dict)
    examples: Mapping[str, Mapping[str, JSON]] = field(default_factory=dict)

    @classmethod
    def seen_in(cls, traces: Iterable[Trace]) -> Toolset:
        """Collect the tools that agents declared to their models, and those they called.

        Examples
        --------
        >>> Toolset.seen_in([Trace.from_calls([("book", {"flight_id": "AA123"})])]).names
        ('book',)
        """
        schemas: dict[str, Mapping[str, JSON]] = {}
        examples: dict[str, Mapping[str, JSON]] = {}
        for trace in traces:
            for prompt in (call.prompt for call in trace.model_calls):
                schemas.update(declared_in(prompt))
            for call in trace.tool_calls:
                if call.args and call.status in ("ok", "unknown"):
                    examples.setdefault(call.name, call.args)
        return cls(schemas, examples)

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool that is known."""
        return tuple(dict.fromkeys((*self.schemas, *self.examples)))

    def properties(self, tool: str) -> Mapping[str, JSON]:
        """Give the schema of each argument of a tool."""
        found = self.schemas.get(tool, {}).get("properties")
        return found if isinstance(found, Mapping) else {}

    def arguments(self, tool: str) -> dict[str, JSON]:
        """Give arguments that a call of a tool could have."""
        if tool in self.examples:
            return dict(self.examples[tool])
        needed = self.schemas.get(tool, {}).get("required")
        known = self.properties(tool)
        return {name: stand_in(known.get(name)) for name in needed or () if isinstance(name, str)}


def stand_in(schema: JSON) -> JSON:
    """Give a value that fits the schema of one argument."""
    about: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    if about.get("enum"):
        return about["enum"][0]
    kind = about.get("type")
    return _STAND_INS.get(kind, "anything") if isinstance(kind, str) else "anything"


_STAND_INS: Mapping[str, JSON] = {
    "number": 1, "integer": 1, "boolean": True, "array": [], "object": {},
}  # fmt: skip


def declared_in(prompt: JSON) -> Iterator[tuple[str, Mapping[str, JSON]]]:
    """Read the tools that a request to a model declares, in any of the usual formats."""
    listed = prompt.get("tools") if isinstance(prompt, Mapping) else None
    waiting = list(listed) if isinstance(listed, list | tuple) else []
    for tool in waiting:
        if not isinstance(tool, Mapping):
            continue
        inner = tool.get("functionDeclarations") or tool.get("function_declarations")
        if isinstance(inner, list | tuple):
            waiting += inner
            continue
        about = tool["function"] if isinstance(tool.get("function"), Mapping) else tool
        name = about.get("name")
        if isinstance(name, str):
            yield name, _schema_of(about)


def _schema_of(about: Mapping[str, Any]) -> Mapping[str, JSON]:
    found = about.get("input_schema") or about.get("parameters")
    return found if isinstance(found, Mapping) else {}
