"""What one trial did, as frozen records: turns, tool calls, model calls, spans.

A **tool call** is one attempt to use a tool, also one that failed. It has a
``status``:

==========  ================================================================
``ok``      the tool ran and gave a result
``error``   the tool raised, or its arguments were no JSON object
``denied``  the call was refused (by a policy, a user, a guard)
``timeout`` the tool did not answer in time
``unknown`` no result was recorded
==========  ================================================================

``tools_observed`` and ``models_observed`` tell "there was none" from "nobody
looked": an agent that hands back plain text shows none of its tool calls, and a
grader of tool calls must then say ``incomplete``.

A trace is built by hand (:meth:`Trace.from_calls`), by an importer, or read
back from a ledger (:mod:`evalkit.reading`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Final, Literal, TypeAlias

from evalkit.errors import TraceError
from evalkit.ledger import JSON

CallStatus: TypeAlias = Literal["ok", "error", "denied", "timeout", "unknown"]
CALL_STATUSES: tuple[CallStatus, ...] = ("ok", "error", "denied", "timeout", "unknown")
SpanKind: TypeAlias = Literal["agent", "model", "tool", "retriever", "chain", "other"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One attempt to use a tool.

    Examples
    --------
    >>> ToolCall("book", {"flight_id": "AA123"}).status
    'ok'
    """

    name: str
    args: Mapping[str, JSON] | None = field(default_factory=dict)
    """Arguments by name; ``None`` if what the model wrote was no JSON object."""
    status: CallStatus = "ok"
    result: JSON = None
    raw_args: str | None = None
    """The arguments as the model wrote them, kept where they were malformed."""
    duration_s: float | None = None
    turn: int = 0
    """0-based index of the turn in which the call was made."""
    id: str = ""
    """Id that the model gave; not unique in real traces."""
    span_id: str = ""
    asked_by: int | None = None
    """Which of the model's answers asked for it: calls of one turn with the same number were
    asked for together. ``None`` where nobody recorded it."""
    untold: tuple[str, ...] = ()
    """What the tool's span did not hold, of ``args`` and ``result``; it is then that of the call
    that the model asked for, where there is one."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TraceError(f"tool call {self.name!r}: its name must be text")
        if self.args is not None and not isinstance(self.args, Mapping):
            raise TraceError(
                f"tool call {self.name!r}: args must map names to values, not be a "
                f"{type(self.args).__name__}; None (and raw_args) where they were malformed"
            )
        _check_call(self, f"tool call {self.name!r}")
        if self.args is None and self.status in ("ok", "unknown"):
            # Whatever came back: what could not be read was no use of the tool.
            object.__setattr__(self, "status", "error")

    def __str__(self) -> str:
        inside = self.raw_args if self.args is None else dict(self.args)
        return f"{self.name} {inside}"


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call cost; ``None`` where the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            _check_number(self, name, Integral)
        _check_number(self, "cost_usd", Real)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model and what came back."""

    model: str = ""
    usage: Usage | None = None
    prompt: JSON = None
    reply: JSON = None
    finish_reason: str = ""
    duration_s: float | None = None
    status: CallStatus = "ok"
    turn: int = 0
    span_id: str = ""

    def __post_init__(self) -> None:
        _check_call(self, f"call of model {self.model!r}")


def _check_call(call: ToolCall | ModelCall, what: str) -> None:
    """Refuse a call that no grader could make sense of."""
    if call.status not in CALL_STATUSES:
        known = ", ".join(CALL_STATUSES)
        raise TraceError(f"{what}: status {call.status!r} is none of {known}")
    if not isinstance(call.turn, int) or call.turn < 0:
        raise TraceError(f"{what}: turn {call.turn!r} must be a whole number, from 0")
    _check_number(call, "duration_s", Real)


def _check_number(record: Usage | ToolCall | ModelCall, name: str, kind: type) -> None:
    """Refuse what is neither a number nor ``None``, which says unknown."""
    value = getattr(record, name)
    if value is not None and not isinstance(value, kind):
        raise TraceError(f"{type(record).__name__}.{name}: {value!r} must be a number, or None")


@dataclass(frozen=True, slots=True)
class Document:
    """One document that a retriever returned."""

    id: str
    score: float | None = None
    content: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """One timed part of a trial; spans form a tree by ``parent_id``."""

    id: str
    parent_id: str | None = None
    name: str = ""
    kind: SpanKind = "other"
    start_s: float | None = None
    end_s: float | None = None
    status: Literal["ok", "error", "unknown"] = "unknown"
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    documents: tuple[Document, ...] = ()
    turn: int | None = None
    """0-based index of the turn in which it began; ``None`` where nobody recorded it."""

    @property
    def duration_s(self) -> float | None:
        """Seconds from start to end, ``None`` where either is unknown."""
        if self.start_s is None or self.end_s is None:
            return None
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class SpanNode:
    """A span with the spans inside it."""

    span: Span
    children: tuple[SpanNode, ...] = ()

    def walk(self) -> Iterator[Span]:
        """Give this span and all below it, outermost first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node.span
            waiting.extend(reversed(node.children))


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing the user said, and the agent's replies to it (none, one or several)."""

    user: str = ""
    replies: tuple[str, ...] = ()
    said_by: tuple[int, ...] = ()
    """Which of the model's answers each reply is from, as ``ToolCall.asked_by`` counts them;
    empty where nobody recorded it."""

    def __post_init__(self) -> None:
        replies: object = self.replies
        if isinstance(replies, str):
            raise TraceError("turn: replies must be a tuple of texts, not one text")
        for text in (self.user, *self.replies):
            if not isinstance(text, str):
                raise TraceError(f"turn: {text!r} must be text, not {type(text).__name__}")

    @property
    def attributed(self) -> tuple[tuple[str, int | None], ...]:
        """Each reply with the number of the answer that it is from, if that is known."""
        known = len(self.said_by) == len(self.replies)
        said_by = self.said_by if known else (None,) * len(self.replies)
        return tuple(zip(self.replies, said_by, strict=True))


@dataclass(frozen=True, slots=True)
class Trace:
    """What one trial did."""

    turns: tuple[Turn, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    spans: tuple[Span, ...] = ()
    logs: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    """Those of the logs that were written as errors."""
    asked_calls: tuple[ToolCall, ...] = ()
    """What the model asked for, where tools tell apart from it what ran."""
    watched_tools: tuple[str, ...] = ()
    """Tools that tell themselves when they run."""
    traced_tools: tuple[str, ...] = ()
    """Those of them that tell it by a span alone."""
    span_gaps: tuple[str, ...] = ()
    """Why spans that the agent made may be missing here."""
    tools_observed: bool = True
    models_observed: bool = False
    metadata: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind in _PARTS.items():
            parts = tuple(getattr(self, name))
            object.__setattr__(self, name, parts)
            _check_parts(parts, kind, name)
        if not isinstance(self.metadata, Mapping):
            raise TraceError(f"trace: metadata must be a mapping, not {self.metadata!r}")

    @classmethod
    def from_calls(
        cls,
        calls: Iterable[ToolCall | tuple[str, Mapping[str, JSON]] | str] = (),
        reply: str = "",
        *,
        user: str = "",
    ) -> Trace:
        """Build the trace of a single turn from its tool calls and its reply.

        Parameters
        ----------
        calls
            In the order made: ``("name", {arguments})``, a bare name, or a
            whole :class:`ToolCall`.
        reply
            The agent's final answer.
        user
            What the user said, if it matters.

        Raises
        ------
        TraceError
            If a call has none of the three forms.

        Examples
        --------
        >>> trace = Trace.from_calls([("book", {"flight_id": "AA123"})], reply="Booked.")
        >>> trace.reply, trace.tool_calls[0].name
        ('Booked.', 'book')
        """
        made = tuple(_tool_call(call, number) for number, call in enumerate(calls))
        return cls(turns=(Turn(user, (reply,)),), tool_calls=made)

    @property
    def reply(self) -> str:
        """The last reply of the trial; empty if there was none."""
        return next((turn.replies[-1] for turn in reversed(self.turns) if turn.replies), "")

    @property
    def replies(self) -> tuple[str, ...]:
        """Every reply, in order."""
        return tuple(reply for turn in self.turns for reply in turn.replies)

    def span_tree(self) -> tuple[SpanNode, ...]:
        """Arrange the spans as a tree.

        Returns
        -------
        tuple of SpanNode
            The roots. A span whose parent is unknown, or that is its own
            ancestor, is a root too, so that each stands there once. Where ids
            are not unique, the first span with an id is the parent.

        Examples
        --------
        >>> trace = Trace(spans=(Span("a"), Span("b", parent_id="a")))
        >>> [span.id for span in trace.span_tree()[0].walk()]
        ['a', 'b']
        """
        return _span_tree(self.spans)


_PARTS: Final[Mapping[str, type]] = {
    "turns": Turn,
    "tool_calls": ToolCall,
    "model_calls": ModelCall,
    "spans": Span,
    "logs": str,
    "errors": str,
    "asked_calls": ToolCall,
    "watched_tools": str,
    "traced_tools": str,
    "span_gaps": str,
}


def _check_parts(parts: Iterable[object], kind: type, name: str) -> None:
    for number, part in enumerate(parts):
        if not isinstance(part, kind):
            hint = "; or use Trace.from_calls" if kind is ToolCall else ""
            raise TraceError(f"trace: {name}[{number}]: {part!r} is no {kind.__name__}{hint}")


def _tool_call(call: object, number: int) -> ToolCall:
    """Bring one of the accepted forms of a call into a record."""
    match call:
        case ToolCall():
            return call
        case str(name):
            return ToolCall(name)
        case (str(name), Mapping() as args):
            return ToolCall(name, dict(args))
    raise TraceError(
        f"calls[{number}]: {call!r} is no tool call; give ('name', {{arguments}}), "
        "a name, or a ToolCall"
    )


def _span_tree(spans: Sequence[Span]) -> tuple[SpanNode, ...]:
    """Build the tree from its leaves, without recursion: real spans may lie very deep."""
    parents = _parents(spans)
    children: dict[int | None, list[int]] = {}
    for index, parent in enumerate(parents):
        children.setdefault(parent, []).append(index)
    outermost_first = list(children.get(None, ()))
    for index in outermost_first:
        outermost_first.extend(children.get(index, ()))
    nodes: dict[int, SpanNode] = {}
    for index in reversed(outermost_first):
        inside = tuple(nodes[child] for child in children.get(index, ()))
        nodes[index] = SpanNode(spans[index], inside)
    return tuple(nodes[root] for root in children.get(None, ()))


def _parents(spans: Sequence[Span]) -> list[int | None]:
    """Give the index of each span's parent; ``None`` if there is none, or only in a circle."""
    first_of: dict[str | None, int] = {}
    for index, span in enumerate(spans):
        first_of.setdefault(span.id, index)
    parents = [first_of.get(span.parent_id) for span in spans]
    for index in _in_circles(parents):
        parents[index] = None
    return parents


def _in_circles(parents: Sequence[int | None]) -> list[int]:
    """Find the spans that are their own ancestors; each is looked at once."""
    found: list[int] = []
    seen: set[int] = set()
    for start in range(len(parents)):
        way: dict[int, int] = {}
        at: int | None = start
        while at is not None and at not in seen:
            seen.add(at)
            way[at] = len(way)
            at = parents[at]
        if at in way:
            found.extend(list(way)[way[at] :])
    return found
