"""What a trial does, as ledger events.

:class:`Recorder` writes while it happens, :func:`events_of` what a finished trial
did; :mod:`evalkit.reading` reads both. What OpenTelemetry spans tell is written by
:mod:`evalkit.gateway.span_events`. Calls and their results are two events
with one ``call`` number, because a ledger is written while the agent still waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Final, TypeVar

from evalkit.grade import Ending
from evalkit.ledger import JSON, Event, EventKind
from evalkit.trace import CallStatus, ModelCall, Span, ToolCall, Trace, Usage

_Call = TypeVar("_Call", ToolCall, ModelCall)
_USAGE: Final = tuple(field.name for field in fields(Usage))


class Recorder:
    """Writes events with running numbers, turn by turn.

    Parameters
    ----------
    emit
        Called with each event as it happens.
    clock
        Gives seconds since the trial began; each event notes it among its real
        times. Without one, events have no time.
    """

    def __init__(
        self, emit: Callable[[Event], None], *, clock: Callable[[], float] | None = None
    ) -> None:
        self._emit = emit
        self._clock = clock
        self._lock = threading.RLock()
        self._seq = 0
        self._n_turns = 0
        self._n_tool_calls = 0
        self._n_model_calls = 0
        self._n_ran = 0
        self._is_over = False

    @property
    def n_turns(self) -> int:
        """How many turns have begun."""
        return self._n_turns

    def event(
        self,
        kind: EventKind,
        data: Mapping[str, JSON],
        *,
        span: str = "",
        real: Mapping[str, JSON] | None = None,
    ) -> None:
        """Write one event; threads of an agent may do so at the same time, and after the end."""
        with self._lock:
            if self._is_over:  # an agent that serves knows nothing of the end
                return
            at = {} if self._clock is None else {"at_s": round(self._clock(), 6)}
            self._emit(Event(self._seq + 1, kind, data, span, "", {**at, **real} if real else at))
            self._seq += 1  # what could not be written leaves no gap

    def go_on(self, events: Sequence[Event], *, n_turns: int) -> None:
        """Go on with the numbers of a trial whose process died.

        Parameters
        ----------
        events
            All of the trial so far.
        n_turns
            How many turns have begun.
        """
        calls = [event.data for event in events if event.kind == "tool_call"]
        self._seq = len(events)
        self._n_turns = n_turns
        self._n_ran = sum(call.get("at") == "tool" for call in calls)
        self._n_tool_calls = sum("at" not in call for call in calls)
        self._n_model_calls = sum(event.kind == "model_call" for event in events)

    def start(self, *, scenario: str, trial: int, lane: str, seed: int | None = None) -> None:
        """Write that a trial begins."""
        told = {"scenario": scenario, "trial": trial, "lane": lane, "seed": seed}
        self.event("trial_start", told)

    def end(self, ending: Ending) -> None:
        """Write how the trial ended, and nothing after it; its duration is a real time."""
        with self._lock:
            self.event(
                "trial_end",
                {
                    "status": ending.status,
                    "reason_code": ending.reason_code,
                    "reason": ending.reason,
                },
                real=_known({"duration_s": ending.duration_s}),
            )
            self._is_over = True

    def turn(self, user: str, *, again: bool = False, **how: JSON) -> None:
        """Write that a turn begins; calls and replies that follow belong to it.

        Parameters
        ----------
        user
            What the user says.
        again
            Whether it is the turn that began last, which begins anew after a crash.
        **how
            What else happens: ``advance_s``, or how it is delivered. ``None`` is left out.
        """
        number = self._n_turns - again
        self.event("turn", {"turn": number, "user": user} | _known({**how, "again": again or None}))
        self._n_turns = number + 1

    def watched(self, tools: Sequence[str]) -> None:
        """Write which tools tell themselves when they run."""
        self.event("state", {"watched_tools": list(tools)})

    def tool_started(self, name: str, args: Mapping[str, JSON]) -> int:
        """Write that a watched tool begins; gives the number of the call at the tools."""
        with self._lock:
            number, self._n_ran = self._n_ran, self._n_ran + 1
            turn = max(self._n_turns - 1, 0)
            asked = {"call": number, "turn": turn, "name": name, "args": dict(args), "at": "tool"}
            self.event("tool_call", asked, span=f"ran:{number}")
        return number

    def tool_ended(self, call: int, *, status: CallStatus, result: JSON, duration_s: float) -> None:
        """Write how a watched tool ended."""
        answer = {"call": call, "status": status, "result": result, "at": "tool"}
        real = {"duration_s": round(duration_s, 6)}
        self.event("tool_result", answer, span=f"ran:{call}", real=real)

    def ran(self, call: ToolCall) -> None:
        """Write a call that an agent tells of after it ran."""
        number = self.tool_started(call.name, call.args or {})
        self.tool_ended(
            number, status=call.status, result=call.result, duration_s=call.duration_s or 0.0
        )

    def header(self, trace: Trace) -> None:
        """Write what a trace observed, and its metadata."""
        observed = {name: getattr(trace, name) for name in ("tools_observed", "models_observed")}
        self.event("state", {"trace": {**observed, "metadata": dict(trace.metadata)}})

    def tool_call(self, call: ToolCall, *, turn: int, number: int) -> None:
        """Write a tool call, and what came back."""
        asked = {"call": number, "turn": turn, "name": call.name, "args": call.args}
        extra = _known(
            {"raw_args": call.raw_args, "id": call.id or None, "asked_by": call.asked_by}
        )
        self.event("tool_call", asked | extra, span=call.span_id)
        answer = {"call": number, "status": call.status, "result": call.result}
        real = _known({"duration_s": call.duration_s})
        if call.status != "unknown" or call.result is not None or real:
            self.event("tool_result", answer, span=call.span_id, real=real)

    def model_call(self, call: ModelCall, *, turn: int, number: int) -> None:
        """Write a request to a model, and what came back."""
        asked = {"call": number, "turn": turn, "model": call.model, "prompt": call.prompt}
        self.event("model_call", asked, span=call.span_id)
        usage = call.usage and _known({name: getattr(call.usage, name) for name in _USAGE})
        said = {"call": number, "status": call.status, "reply": call.reply}
        extra = _known({"usage": usage, "finish_reason": call.finish_reason or None})
        real = _known({"duration_s": call.duration_s})
        if call.status != "unknown" or call.reply is not None or extra or real:
            self.event("model_reply", said | extra, span=call.span_id, real=real)

    def reply(self, text: str, *, said_by: int | None = None) -> None:
        """Write one reply of the turn that began last."""
        said = {"turn": max(self._n_turns - 1, 0), "text": text}
        self.event("reply", said | _known({"said_by": said_by}))

    def answer(self, trace: Trace) -> None:
        """Write what an agent did in the turn that began last.

        A trace that an agent hands back for one turn is that turn's, however it
        counts its own.
        """
        self.header(trace)
        turn = max(self._n_turns - 1, 0)
        for model_call in trace.model_calls:
            self.model_call(model_call, turn=turn, number=self._n_model_calls)
            self._n_model_calls += 1
        for tool_call in trace.tool_calls:
            self.tool_call(tool_call, turn=turn, number=self._n_tool_calls)
            self._n_tool_calls += 1
        for said in trace.turns:
            for text, said_by in said.attributed:
                self.reply(text, said_by=said_by)
        self.rest(trace)

    def rest(self, trace: Trace) -> None:
        """Write a trace's spans and logs."""
        for span in trace.spans:
            real = _known({"start_s": span.start_s, "end_s": span.end_s})
            self.event("span", _span_data(span), span=span.id, real=real)
        for text in trace.logs:
            level = {"level": "ERROR"} if text in trace.errors else {}
            self.event("log", {"text": text, **level})


def _span_data(span: Span) -> dict[str, JSON]:
    return {
        "name": span.name,
        "kind": span.kind,
        "status": span.status,
        "attributes": dict(span.attributes),
        "documents": [asdict(document) for document in span.documents],
        "parent_id": span.parent_id,
        **_known({"turn": span.turn}),
    }


def _known(values: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in values.items() if value is not None}


def events_of(trace: Trace) -> tuple[Event, ...]:
    """Write a finished trace as ledger events, turn by turn.

    A call without a recorded result (status ``unknown``) has no event for one.

    Examples
    --------
    >>> trace = Trace.from_calls([("book", {"flight_id": "AA123"})], reply="Booked.")
    >>> [event.kind for event in events_of(trace)]
    ['state', 'turn', 'tool_call', 'tool_result', 'reply']
    >>> from evalkit.reading import trace_of
    >>> trace_of(events_of(trace)) == trace
    True
    """
    events: list[Event] = []
    _record(trace, Recorder(events.append))
    return tuple(events)


def ledger_of(
    trace: Trace, *, scenario: str, trial: int, lane: str, ending: Ending
) -> tuple[Event, ...]:
    """Write the whole ledger of a trial that was run elsewhere, from start to end."""
    events: list[Event] = []
    recorder = Recorder(events.append)
    recorder.start(scenario=scenario, trial=trial, lane=lane)
    _record(trace, recorder)
    recorder.end(ending)
    return tuple(events)


def _record(trace: Trace, recorder: Recorder) -> None:
    """Write a finished trace, turn by turn; a call keeps its place among all calls."""
    recorder.header(trace)
    model_calls, tool_calls = _by_turn(trace.model_calls), _by_turn(trace.tool_calls)
    # A call may name a turn of which nothing else is known.
    for index in sorted({*range(len(trace.turns)), *model_calls, *tool_calls}):
        turn = trace.turns[index] if index < len(trace.turns) else None
        if turn is not None:
            recorder.turn(turn.user)
        for number, model_call in model_calls.get(index, ()):
            recorder.model_call(model_call, turn=index, number=number)
        replies = [] if turn is None else list(turn.attributed)
        for number, tool_call in tool_calls.get(index, ()):
            while replies and _is_before(replies[0][1], tool_call.asked_by):
                text, said_by = replies.pop(0)
                recorder.reply(text, said_by=said_by)
            recorder.tool_call(tool_call, turn=index, number=number)
        for text, said_by in replies:
            recorder.reply(text, said_by=said_by)
    recorder.rest(trace)


def _is_before(said_by: int | None, asked_by: int | None) -> bool:
    """Say whether a reply came before a call; what is unknown comes after all calls."""
    return said_by is not None and asked_by is not None and said_by <= asked_by


def _by_turn(calls: Iterable[_Call]) -> dict[int, list[tuple[int, _Call]]]:
    """Collect numbered calls by the turn in which they were made."""
    found: dict[int, list[tuple[int, _Call]]] = {}
    for number, call in enumerate(calls):
        found.setdefault(call.turn, []).append((number, call))
    return found
