"""A ledger read back: as a trace, and how the trial ended.

The other way is :mod:`evalkit.recording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from evalkit.errors import TraceError
from evalkit.grade import Ending
from evalkit.joining import joined
from evalkit.ledger import JSON, Event
from evalkit.trace import Document, ModelCall, Span, ToolCall, Trace, Turn, Usage

_Seen: TypeAlias = tuple[str, int]
_WIRE: Final = "wire"
_TOOL: Final = "tool"
_SPAN: Final = "span"
_ERROR_LEVELS: Final = frozenset({"ERROR", "CRITICAL"})


def ending_of(events: Iterable[Event]) -> Ending:
    """Read how a trial ended; without a ``trial_end`` event it never did."""
    for event in events:
        if event.kind == "trial_end":
            data = event.data
            duration_s = event.real.get("duration_s")
            return Ending(data["status"], data["reason_code"], data["reason"], duration_s)
    return Ending("incomplete", "ledger_broken", "the trial's ledger has no end")


def trace_of(events: Iterable[Event]) -> Trace:
    """Read a trace back from the events of one trial.

    Raises
    ------
    TraceError
        If an event lacks what its kind needs.
    """
    reader = _TraceReader()
    for event in events:
        try:
            reader.read(event)
        except (KeyError, TypeError, ValueError, AttributeError, TraceError) as error:
            raise TraceError(f"event {event.seq} ({event.kind}): {error!r}") from error
    return reader.trace()


class _TraceReader:
    """Collects what the events of one trial say."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        # In the order of the ledger, by where they were seen and their number there.
        self.tool_calls: dict[tuple[str, int], ToolCall] = {}
        self.watched: tuple[str, ...] = ()
        self.traced: dict[str, None] = {}
        self.span_gaps: dict[str, None] = {}
        self.model_calls: dict[int, ModelCall] = {}
        self.spans: list[Span] = []
        self.logs: list[str] = []
        self.errors: list[str] = []
        self.tools_observed: list[bool] = []
        self.models_observed: list[bool] = []
        self.metadata: dict[str, JSON] = {}

    def read(self, event: Event) -> None:
        """Take in one event; kinds that say nothing about the trace are passed over."""
        reader = getattr(self, f"_read_{event.kind}", None)
        if reader is not None:
            reader(event.data, event)

    def _read_state(self, data: Mapping[str, JSON], _: Event) -> None:
        if "trace" in data:
            self.tools_observed.append(data["trace"]["tools_observed"])
            self.models_observed.append(data["trace"]["models_observed"])
            self.metadata.update(data["trace"]["metadata"])
        if "watched_tools" in data:
            self.watched = tuple(dict.fromkeys((*self.watched, *data["watched_tools"])))
        self.span_gaps.update(dict.fromkeys(data.get("span_gaps", ())))

    def _read_turn(self, data: Mapping[str, JSON], _: Event) -> None:
        if data.get("again"):  # the process died in it, and what came out by then stays its own
            return
        self.turns.append(Turn(data["user"]))

    def _read_reply(self, data: Mapping[str, JSON], _: Event) -> None:
        last = self.turns.pop() if self.turns else Turn()
        said_by = last.said_by + ((data["said_by"],) if "said_by" in data else ())
        self.turns.append(Turn(last.user, (*last.replies, data["text"]), said_by))

    def _read_tool_call(self, data: Mapping[str, JSON], event: Event) -> None:
        if data.get("at") == _SPAN:
            self.traced[data["name"]] = None
        self.tool_calls[_seen(data)] = ToolCall(
            name=data["name"],
            args=data["args"],
            status="unknown",
            raw_args=data.get("raw_args"),
            turn=data["turn"],
            id=data.get("id", ""),
            span_id=event.span,
            asked_by=data.get("asked_by"),
            untold=tuple(data.get("untold", ())),
        )

    def _read_tool_result(self, data: Mapping[str, JSON], event: Event) -> None:
        self.tool_calls[_seen(data)] = replace(
            self.tool_calls[_seen(data)],
            status=data["status"],
            result=data["result"],
            duration_s=event.real.get("duration_s"),
        )

    def _read_model_call(self, data: Mapping[str, JSON], event: Event) -> None:
        self.model_calls[data["call"]] = ModelCall(
            model=data["model"],
            prompt=data["prompt"],
            status="unknown",
            turn=data["turn"],
            span_id=event.span,
        )

    def _read_model_reply(self, data: Mapping[str, JSON], event: Event) -> None:
        usage = data.get("usage")
        self.model_calls[data["call"]] = replace(
            self.model_calls[data["call"]],
            status=data["status"],
            reply=data["reply"],
            usage=None if usage is None else Usage(**usage),
            finish_reason=data.get("finish_reason", ""),
            duration_s=event.real.get("duration_s"),
        )

    def _read_span(self, data: Mapping[str, JSON], event: Event) -> None:
        documents = tuple(Document(**document) for document in data["documents"])
        times = {name: event.real.get(name) for name in ("start_s", "end_s")}
        attributes = {**data["attributes"], **event.real.get("attributes", {})}
        more = {**times, "documents": documents, "attributes": attributes}
        self.spans.append(Span(id=event.span, **{**data, **more}))

    def _read_log(self, data: Mapping[str, JSON], _: Event) -> None:
        self.logs.append(data["text"])
        if data.get("level") in _ERROR_LEVELS:
            self.errors.append(data["text"])

    def trace(self) -> Trace:
        """Give the trace of all events read."""
        # Where a tool tells of itself, its spans tell nothing new.
        traced = tuple(name for name in self.traced if name not in self.watched)
        watched = (*self.watched, *traced)
        return Trace(
            turns=tuple(self.turns),
            tool_calls=self._made_calls(frozenset(watched)),
            asked_calls=self._calls_at(_WIRE) if watched or self.span_gaps else (),
            watched_tools=watched,
            traced_tools=traced,
            span_gaps=tuple(self.span_gaps),
            model_calls=tuple(self.model_calls[number] for number in sorted(self.model_calls)),
            spans=tuple(self.spans),
            logs=tuple(self.logs),
            errors=tuple(self.errors),
            # No word of it at all: the agent never handed back what it did.
            tools_observed=bool(self.tools_observed) and all(self.tools_observed),
            models_observed=bool(self.models_observed) and all(self.models_observed),
            metadata=self.metadata,
        )

    def _calls_at(self, place: str) -> tuple[ToolCall, ...]:
        """Give the calls seen at one place, by their number there."""
        numbers = sorted(number for seen, number in self.tool_calls if seen == place)
        return tuple(self.tool_calls[place, number] for number in numbers)

    def _made_calls(self, watched: frozenset[str]) -> tuple[ToolCall, ...]:
        """Give what ran where a tool or a span tells it, and what was asked for elsewhere."""
        if not watched:
            return self._calls_at(_WIRE)
        made = {
            key: call
            for key, call in self.tool_calls.items()
            if key[0] == _TOOL
            or (key[0] == _SPAN and call.name not in self.watched)
            or (key[0] == _WIRE and call.name not in watched)
        }
        ran = {key: call for key, call in made.items() if key[0] == _SPAN}
        return self._with_spans(made, ran) if ran else tuple(made.values())

    def _with_spans(
        self, made: Mapping[_Seen, ToolCall], ran: Mapping[_Seen, ToolCall]
    ) -> tuple[ToolCall, ...]:
        """Complete what only spans tell, and put it into its place among the other calls."""
        asked = {key: call for key, call in self.tool_calls.items() if key[0] == _WIRE}
        known = joined(ran, asked)
        calls = {**made, **{key: call for key, (call, _) in known.items()}}
        if len(ran) == len(made):  # spans know best in which order they ran
            return tuple(calls.values())
        places = {key: place for place, key in enumerate(self.tool_calls)}
        # Spans come when the turn has ended, so what they answer tells when they ran.
        order = sorted(calls, key=lambda key: places[(key in known and known[key][1]) or key])
        return tuple(calls[key] for key in order)


def _seen(data: Mapping[str, JSON]) -> _Seen:
    """Tell where a call was seen, and its number there."""
    return data.get("at", _WIRE), data["call"]
