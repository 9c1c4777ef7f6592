"""A ledger read back: as a trace, and how the trial ended.

The other way is :mod:`evalkit.recording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from evalkit.errors import TraceError
from evalkit.grade import Ending
from evalkit.ledger import JSON, Event
from evalkit.trace import Document, ModelCall, Span, ToolCall, Trace, Turn, Usage

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

    def _read_turn(self, data: Mapping[str, JSON], _: Event) -> None:
        self.turns.append(Turn(data["user"]))

    def _read_reply(self, data: Mapping[str, JSON], _: Event) -> None:
        last = self.turns.pop() if self.turns else Turn()
        said_by = last.said_by + ((data["said_by"],) if "said_by" in data else ())
        self.turns.append(Turn(last.user, (*last.replies, data["text"]), said_by))

    def _read_tool_call(self, data: Mapping[str, JSON], event: Event) -> None:
        self.tool_calls[_seen(data)] = ToolCall(
            name=data["name"],
            args=data["args"],
            status="unknown",
            raw_args=data.get("raw_args"),
            turn=data["turn"],
            id=data.get("id", ""),
            span_id=event.span,
            asked_by=data.get("asked_by"),
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
        self.spans.append(Span(id=event.span, **{**data, **times, "documents": documents}))

    def _read_log(self, data: Mapping[str, JSON], _: Event) -> None:
        self.logs.append(data["text"])
        if data.get("level") in _ERROR_LEVELS:
            self.errors.append(data["text"])

    def trace(self) -> Trace:
        """Give the trace of all events read."""
        return Trace(
            turns=tuple(self.turns),
            tool_calls=self._made_calls(),
            asked_calls=self._calls_at("wire") if self.watched else (),
            watched_tools=self.watched,
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

    def _made_calls(self) -> tuple[ToolCall, ...]:
        """Give what ran where a tool tells it, and what was asked for elsewhere."""
        if not self.watched:
            return self._calls_at("wire")
        return tuple(
            call
            for (place, _), call in self.tool_calls.items()
            if place == "tool" or call.name not in self.watched
        )


def _seen(data: Mapping[str, JSON]) -> tuple[str, int]:
    """Tell where a call was seen, and its number there."""
    return data.get("at", "wire"), data["call"]
