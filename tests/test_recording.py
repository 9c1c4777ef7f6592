"""A trace becomes ledger events and comes back from them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import TraceError
from evalkit.grade import Ending
from evalkit.ledger import Event, digest, event_line, parse_events
from evalkit.reading import ending_of, trace_of
from evalkit.recording import Recorder, events_of, ledger_of
from evalkit.trace import (
    CALL_STATUSES,
    Document,
    ModelCall,
    Span,
    ToolCall,
    Trace,
    Turn,
    Usage,
)

texts = st.text(st.characters(), max_size=8)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, jsons, max_size=3)
seconds = st.none() | st.floats(min_value=0, allow_nan=False, allow_infinity=False)
tokens = st.none() | st.integers(0, 10**20)
statuses = st.sampled_from(CALL_STATUSES)
turn_numbers = st.integers(0, 5)
tool_calls = st.builds(
    ToolCall,
    name=texts,
    args=st.none() | objects,
    status=statuses,
    result=jsons,
    raw_args=st.none() | texts,
    duration_s=seconds,
    turn=turn_numbers,
    id=texts,
    span_id=texts,
    asked_by=st.none() | st.integers(0, 5),
)
model_calls = st.builds(
    ModelCall,
    model=texts,
    usage=st.none() | st.builds(Usage, tokens, tokens, tokens, tokens, seconds),
    prompt=jsons,
    reply=jsons,
    finish_reason=texts,
    duration_s=seconds,
    status=statuses,
    turn=turn_numbers,
    span_id=texts,
)
spans = st.builds(
    Span,
    id=texts,
    parent_id=st.none() | texts,
    name=texts,
    kind=st.sampled_from(["agent", "model", "tool", "retriever", "chain", "other"]),
    start_s=seconds,
    end_s=seconds,
    status=st.sampled_from(["ok", "error", "unknown"]),
    attributes=objects,
    documents=st.lists(st.builds(Document, id=texts, score=seconds, content=texts), max_size=2).map(
        tuple
    ),
)


@st.composite
def turns_of(draw: st.DrawFn) -> Turn:
    """Give a turn; who said its replies is known of all or of none."""
    replies = tuple(draw(st.lists(texts, max_size=3)))
    authors = draw(st.lists(st.integers(0, 5), min_size=len(replies), max_size=len(replies)))
    return Turn(draw(texts), replies, said_by=tuple(authors) if draw(st.booleans()) else ())


turns = turns_of()


def many(records: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Give some of them."""
    return st.lists(records, max_size=4).map(tuple)


traces = st.builds(
    Trace,
    turns=many(turns),
    tool_calls=many(tool_calls),
    model_calls=many(model_calls),
    spans=many(spans),
    logs=many(texts),
    tools_observed=st.booleans(),
    models_observed=st.booleans(),
    metadata=objects,
)


@settings(deadline=None, max_examples=100)
@given(traces)
def test_a_trace_comes_back_from_its_ledger(trace: Trace) -> None:
    """Writing a trace to a file and reading it back changes nothing in it."""
    content = b"".join(map(event_line, events_of(trace)))
    assert trace_of(parse_events(content)) == trace


@settings(deadline=None, max_examples=50)
@given(traces)
def test_a_whole_ledger_frames_the_trace(trace: Trace) -> None:
    """Numbers run without a gap from trial_start to trial_end, and both ends can be read."""
    ending = Ending("failed", "deadline", "too slow", 1.5)
    events = ledger_of(trace, scenario="\ud800", trial=3, lane="imported", ending=ending)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (events[0].kind, events[-1].kind) == ("trial_start", "trial_end")
    assert events[0].data["scenario"] == "\ud800"
    assert ending_of(events) == ending
    assert trace_of(events) == trace


def test_durations_are_in_no_digest() -> None:
    """Two recordings of one trace that took different times are the same."""
    trace = Trace(
        tool_calls=(ToolCall("a", duration_s=1.0),),
        model_calls=(ModelCall("m", duration_s=1.0),),
        spans=(Span("s", start_s=1.0, end_s=2.0),),
    )
    slower = Trace(
        tool_calls=(ToolCall("a", duration_s=9.0),),
        model_calls=(ModelCall("m", duration_s=9.0),),
        spans=(Span("s", start_s=5.0, end_s=9.0),),
    )
    assert digest(events_of(trace)) == digest(events_of(slower))
    assert digest(events_of(trace)) != digest(events_of(replace(trace, logs=("x",))))


def test_a_number_that_is_not_one_stays_what_it_is() -> None:
    """NaN and infinity in arguments and results come back from the file."""
    trace = Trace.from_calls([ToolCall("pay", {"eur": math.inf}, result=math.nan)])
    (call,) = trace_of(parse_events(b"".join(map(event_line, events_of(trace))))).tool_calls
    assert call.args == {"eur": math.inf}
    assert math.isnan(call.result)


def test_a_call_without_a_result_has_no_event_for_one() -> None:
    """What was asked and never answered reads as unknown, not as ok."""
    trace = Trace(tool_calls=(ToolCall("a", status="unknown"),))
    assert [event.kind for event in events_of(trace)] == ["state", "tool_call"]
    assert trace_of(events_of(trace)).tool_calls[0].status == "unknown"


def test_a_call_that_died_on_its_way_is_unknown() -> None:
    """A ledger that ends between a call and its result keeps the call."""
    events = events_of(Trace.from_calls(["a", "b"]))[:-2]
    assert [event.kind for event in events] == [
        "state", "turn", "tool_call", "tool_result", "tool_call",
    ]  # fmt: skip
    assert [call.status for call in trace_of(events).tool_calls] == ["ok", "unknown"]


def test_many_turns_cost_no_more_than_their_number() -> None:
    """A call in turn ten million does not make evalkit count to ten million."""
    trace = Trace(tool_calls=(ToolCall("a", turn=10**7), ToolCall("b", turn=0)))
    assert trace_of(events_of(trace)) == trace


def live(*answers: Trace) -> list[Event]:
    """Record what an agent answers, turn by turn."""
    events: list[Event] = []
    recorder = Recorder(events.append)
    for number, answer in enumerate(answers):
        recorder.turn(f"question {number}")
        recorder.answer(answer)
    return events


def test_answers_of_several_turns_become_one_trace() -> None:
    """Each answer belongs to the turn that was asked, however it counts its own."""
    trace = trace_of(
        live(
            Trace.from_calls(["a"], reply="one"),
            Trace((Turn("x", ("two",)), Turn("y", ("three",))), (ToolCall("b", turn=1),)),
        )
    )
    assert trace.turns == (Turn("question 0", ("one",)), Turn("question 1", ("two", "three")))
    assert [(call.name, call.turn) for call in trace.tool_calls] == [("a", 0), ("b", 1)]


def test_tools_are_observed_only_if_they_were_in_every_turn() -> None:
    """One turn of plain text hides what the agent did in it."""
    text = Trace(turns=(Turn("", ("hi",)),), tools_observed=False)
    seen = Trace.from_calls(["a"], reply="x")
    assert trace_of(live(seen, seen)).tools_observed
    assert not trace_of(live(seen, text)).tools_observed
    assert not trace_of(live()).tools_observed
    assert not trace_of(()).models_observed


def test_what_cannot_be_written_leaves_no_gap() -> None:
    """An event that raises while it is written takes no number."""
    written: list[Event] = []

    def emit(event: Event) -> None:
        event_line(event)
        written.append(event)

    recorder = Recorder(emit)
    recorder.turn("a")
    with pytest.raises(Exception, match="4300"):
        recorder.event("log", {"n": 10**5000})
    recorder.end(Ending())
    assert [event.seq for event in written] == [1, 2]


def test_times_are_noted_where_there_is_a_clock() -> None:
    """Each event knows when it happened, apart from what the digest covers."""
    written: list[Event] = []
    Recorder(written.append, clock=lambda: 1.25).turn("a")
    assert written[0].real == {"at_s": 1.25}
    Recorder(written.append).turn("a")
    assert written[1].real == {}


@pytest.mark.parametrize(
    "event",
    [
        Event(7, "tool_result", {"call": 0, "status": "ok", "result": 1}),
        Event(7, "tool_call", {"call": 0, "turn": 0}),
        Event(7, "tool_call", {"call": 0, "turn": -1, "name": "a", "args": {}}),
        Event(7, "tool_call", {"call": 0, "turn": 0, "name": "a", "args": [1]}),
        Event(7, "turn", {}),
        Event(7, "reply", {"text": 1}),
        Event(7, "span", {"documents": [{"nope": 1}]}),
        Event(7, "span", {"documents": 3}),
        Event(7, "state", {"trace": None}),
        Event(7, "log", {"text": 1}),
    ],
    ids=lambda event: f"{event.kind}-{list(event.data)}",
)
def test_an_event_that_makes_no_sense_is_named(event: Event) -> None:
    """Nothing is read halfway, and no error but a TraceError comes out."""
    with pytest.raises(TraceError, match=r"event 7|logs\[0\]"):
        trace_of([event])


def test_a_ledger_without_an_end_is_incomplete() -> None:
    """A trial that never ended is not taken for a pass."""
    ending = ending_of(events_of(Trace()))
    assert (ending.status, ending.reason_code) == ("incomplete", "ledger_broken")


def test_call_with_broken_arguments_has_failed_though_nothing_came_back() -> None:
    """A malformed request is no call that an expectation could be satisfied by."""
    asked = {"call": 0, "turn": 0, "name": "book", "args": None, "raw_args": '{"fl'}
    (call,) = trace_of([Event(1, "tool_call", asked)]).tool_calls
    assert call.status == "error"


def test_nothing_is_written_after_the_end() -> None:
    """An agent whose threads go on does not break the ledger of its trial."""
    events: list[Event] = []
    recorder = Recorder(events.append)
    recorder.turn("a", deliver="POST /hook", update_id=1, redelivered=None)
    recorder.end(Ending())
    recorder.reply("late")
    recorder.event("log", {"text": "late"})
    assert [event.kind for event in events] == ["turn", "trial_end"]
    assert events[0].data == {"turn": 0, "user": "a", "deliver": "POST /hook", "update_id": 1}
    assert recorder.n_turns == 1
