"""Requests to a model and its answers, free of any wire format.

The modules ``anthropic``, ``openai_chat``, ``openai_responses`` and ``gemini`` translate
to and from these records; scripts, faults, counting and recording know nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from evalkit.ledger import JSON

ToolChoice = Literal["auto", "none", "required"]


class BadRequest(ValueError):
    """A request that no provider would take; the text says why."""


class Message(NamedTuple):
    """One message as text; parts that are no text appear as ``[type]``."""

    role: str
    text: str


class Tool(NamedTuple):
    """A tool that the model may ask for."""

    name: str
    """Empty for a set of tools whose names only the provider knows."""
    schema: JSON = None


class Asked(NamedTuple):
    """A tool use that stands in the history of a request."""

    id: str
    name: str
    args: JSON


class Returned(NamedTuple):
    """A tool's result that a request brings."""

    id: str
    content: JSON
    status: Literal["ok", "error"] = "ok"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What an agent asks of a model."""

    wire: str
    """Name of the wire format."""
    model: str
    system: str = ""
    messages: tuple[Message, ...] = ()
    """Without the system prompt."""
    history: tuple[Asked | Returned, ...] = ()
    """Tool uses and results, in order."""
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    framing: Literal["sse", "array"] = "sse"
    """How a stream is written."""
    stream_usage: bool = True
    """Whether a stream tells the usage."""
    max_tokens: int | None = None
    wants_json: bool = False
    schema: JSON = None
    """JSON Schema of the answer, where one is asked for."""
    tool_choice: ToolChoice = "auto"
    """Whether the model may, must or must not use a tool."""
    parallel: bool = True
    """Whether the model may ask for several tools at once."""
    stops: tuple[str, ...] = ()
    """Texts at which the model ends its answer, without them."""
    forced_tool: str = ""
    """The one tool that the model has to use: a way to ask for structured output."""
    allowed_tools: tuple[str, ...] = ()
    """The only tools that may be asked for, where not all that are offered may."""
    pieces: tuple[JSON, ...] = ()
    """The prompt piece by piece, as it is counted and cached."""
    n_cached: int = 0
    """How many of those pieces, from the first, the provider caches."""
    raw: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def user(self) -> str:
        """The last thing that the user said."""
        said = (one.text for one in reversed(self.messages) if one.role == "user" and one.text)
        return next(said, "")

    @property
    def prompt(self) -> Mapping[str, JSON]:
        """Everything that reaches the model, as the agent sent it."""
        return {key: self.raw[key] for key in self.raw if key not in ("model", "stream")}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that the model asks for."""

    name: str
    args: Mapping[str, JSON]
    raw: str
    """The arguments as JSON text; cut off, it is no JSON any more."""
    id: str = ""
    is_cut: bool = False


class Tokens(NamedTuple):
    """What a request and its answer count."""

    prompt: int = 0
    """The whole prompt, what is cached included."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    """The part of the output that is thinking."""


NO_TOKENS: Final = Tokens()


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answers."""

    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    json: JSON = None
    is_json: bool = False
    """Whether the text, or the one tool use, carries ``json`` as structured output."""
    refusal: str = ""
    thinking: str = ""
    finish: Literal["", "length"] = ""
    """Why the model stopped, where its content does not tell."""
    tokens: Tokens = NO_TOKENS

    def as_step(self) -> dict[str, JSON]:
        """Write the answer as a step of a script."""
        if self.is_json:
            return {"json": self.json}
        if self.refusal:
            return {"refusal": self.refusal}
        said: dict[str, JSON] = {"thinking": self.thinking} if self.thinking else {}
        if self.tool_uses:
            said["tools"] = [_use_as_step(use) for use in self.tool_uses]
        if self.text or not self.tool_uses:
            said["text"] = self.text
        return said


def _use_as_step(use: ToolUse) -> dict[str, JSON]:
    if use.is_cut:
        return {"tool": use.name, "raw_args": use.raw}
    return {"tool": use.name, "args": dict(use.args)}


class Stamp(NamedTuple):
    """What makes one answer differ from the next: its number from 1, and its time."""

    number: int
    created: int

    def id(self, prefix: str, separator: str = "_") -> str:
        """Give an id.

        Examples
        --------
        >>> Stamp(1, 0).id("msg")
        'msg_0001'
        """
        return f"{prefix}{separator}{self.number:04d}"
