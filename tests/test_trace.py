"""Frozen records of what a trial did, and the tree of its spans."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import TraceError
from evalkit.trace import ModelCall, Span, SpanNode, ToolCall, Trace, Turn, Usage


def test_from_calls_takes_every_form_of_a_call() -> None:
    """Pairs, bare names, lists out of JSON and whole records stand side by side, in order."""
    whole = ToolCall("pay", {"eur": 3}, status="denied")
    calls: list[Any] = [("book", {"id": 1}), "list", ["look", {}], whole]
    trace = Trace.from_calls(calls, reply="Done.")
    assert [call.name for call in trace.tool_calls] == ["book", "list", "look", "pay"]
    assert [call.args for call in trace.tool_calls] == [{"id": 1}, {}, {}, {"eur": 3}]
    assert trace.tool_calls[3] is whole
    assert (trace.reply, trace.tools_observed, trace.models_observed) == ("Done.", True, False)
    assert trace.turns == (Turn("", ("Done.",)),)


@pytest.mark.parametrize(
    "call",
    [None, 1, ("book",), ("book", "args"), (1, {}), ("book", {}, {}), {"name": "book"}, ("a", [1])],
    ids=repr,
)
def test_from_calls_refuses_what_is_no_call(call: Any) -> None:
    """The error says which call, and what would be right."""
    with pytest.raises(TraceError, match=r"calls\[1\]: .* is no tool call; give \('name'"):
        Trace.from_calls(["fine", call])


def test_from_calls_does_not_share_arguments() -> None:
    """What the caller changes afterwards changes no record."""
    args = {"a": 1}
    trace = Trace.from_calls([("book", args)])
    args["a"] = 2
    assert trace.tool_calls[0].args == {"a": 1}


# Callers hand over what the types forbid.
tool_call: Any = ToolCall
model_call: Any = ModelCall
usage: Any = Usage
turn: Any = Turn
trace: Any = Trace


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tool_call("book", status="fine"), "tool call 'book': status 'fine' is none of ok"),
        (lambda: tool_call(None), "its name must be text"),
        (lambda: tool_call("book", [1]), "args must map names to values, not be a list"),
        (lambda: tool_call("book", turn=-1), "turn -1 must be a whole number, from 0"),
        (lambda: tool_call("book", turn=1.0), "turn 1.0 must be a whole number"),
        (lambda: tool_call("book", duration_s="1"), "ToolCall.duration_s: '1' must be a number"),
        (lambda: model_call("m", status=""), "call of model 'm': status '' is none of"),
        (lambda: usage(input_tokens="12"), "Usage.input_tokens: '12' must be a number, or None"),
        (lambda: usage(output_tokens=1.5), "Usage.output_tokens: 1.5"),
        (lambda: usage(cost_usd="free"), "Usage.cost_usd: 'free'"),
        (lambda: turn("hi", (None,)), "turn: None must be text, not NoneType"),
        (lambda: turn("hi", "there"), "replies must be a tuple of texts, not one text"),
        (lambda: turn(b"hi"), "turn: b'hi' must be text, not bytes"),
        (lambda: trace(tool_calls=(("book", {}),)), r"tool_calls\[0\]: .*use Trace.from_calls"),
        (lambda: trace(turns=("hi",)), r"turns\[0\]: 'hi' is no Turn"),
        (lambda: trace(logs=(1,)), r"logs\[0\]: 1 is no str"),
        (lambda: trace(metadata=[1]), "metadata must be a mapping"),
    ],
)
def test_records_refuse_what_no_grader_could_read(make: Any, message: str) -> None:
    """A wrong value is refused where it arises, with the name of the field."""
    with pytest.raises(TraceError, match=message):
        make()


def test_records_take_numbers_of_numpy_and_lists_of_records() -> None:
    """Being strict about types must not get in the way of ordinary code."""
    used = usage(input_tokens=np.int64(3), cost_usd=np.float32(0.5))
    given = trace(turns=[Turn("hi", ("a",))], model_calls=[ModelCall(usage=used)])
    assert isinstance(given.turns, tuple)
    assert given.reply == "a"


@pytest.mark.parametrize(
    "record", [ToolCall("a"), ModelCall(), Usage(), Turn(), Span("a"), Trace(), SpanNode(Span("a"))]
)
def test_records_are_frozen(record: Any) -> None:
    """A record cannot be changed, nor get a field that nobody reads."""
    field = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, field, None)
    assert not hasattr(record, "__dict__")


def test_malformed_arguments_show_as_they_were_written() -> None:
    """A call whose arguments were no JSON names the raw text."""
    call = ToolCall("book", None, status="error", raw_args="{'id': ")
    assert str(call) == "book {'id': "
    assert str(ToolCall("book", {"id": 1})) == "book {'id': 1}"


def test_reply_is_the_last_one_said() -> None:
    """A last turn without a reply does not hide the one before; nothing said is empty."""
    assert Trace(turns=(Turn("a", ("x", "y")), Turn("b"))).reply == "y"
    assert Trace(turns=(Turn("a"),)).reply == Trace().reply == ""
    assert Trace(turns=(Turn("a", ("x", "y")), Turn("b", ("z",)))).replies == ("x", "y", "z")


def test_span_duration_is_unknown_where_an_end_is() -> None:
    """A span that was never ended did not take 0 seconds."""
    assert Span("a", start_s=1.0, end_s=3.5).duration_s == 2.5
    assert Span("a", start_s=1.0).duration_s is None
    assert Span("a", end_s=1.0).duration_s is None


def shape(nodes: tuple[SpanNode, ...]) -> Any:
    """Give names and children only."""
    return [(node.span.name, shape(node.children)) for node in nodes]


def spans(*pairs: tuple[str, str | None]) -> tuple[Span, ...]:
    """Make spans of ids and parents, each with a name of its own."""
    return tuple(Span(own, parent, name=f"{own}{n}") for n, (own, parent) in enumerate(pairs))


@pytest.mark.parametrize(
    ("given", "tree"),
    [
        ([], []),
        ([("a", None), ("b", "a"), ("c", "a"), ("d", "b")],
         [("a0", [("b1", [("d3", [])]), ("c2", [])])]),
        ([("b", "a"), ("a", None)], [("a1", [("b0", [])])]),
        ([("a", "gone"), ("b", "a")], [("a0", [("b1", [])])]),
        ([("a", "a")], [("a0", [])]),
        ([("a", "b"), ("b", "a"), ("c", "b")], [("a0", []), ("b1", [("c2", [])])]),
        ([("a", None), ("a", None), ("b", "a")], [("a0", [("b2", [])]), ("a1", [])]),
    ],
    ids=["none", "tree", "child-first", "orphan", "own-parent", "circle", "same-id"],
)  # fmt: skip
def test_span_tree_holds_each_span_once(given: Any, tree: Any) -> None:
    """Orphans and members of a circle are roots; the first of equal ids has the children."""
    assert shape(Trace(spans=spans(*given)).span_tree()) == tree


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdefg")), max_size=12))
def test_span_tree_loses_and_doubles_nothing(pairs: list[tuple[str, str]]) -> None:
    """Whatever the parents are, a walk over the roots meets every span once."""
    given = spans(*pairs)
    walked = [span for root in Trace(spans=given).span_tree() for span in root.walk()]
    assert sorted(span.name for span in walked) == sorted(span.name for span in given)


def test_span_tree_of_a_deep_trace_needs_no_recursion() -> None:
    """Twenty thousand spans inside each other are a tree like any other."""
    n = 20_000
    given = tuple(Span(str(i), str(i - 1) if i else None) for i in range(n))
    (root,) = Trace(spans=given).span_tree()
    assert [span.id for span in root.walk()] == list(map(str, range(n)))


def test_walk_goes_outermost_first_in_the_given_order() -> None:
    """A span comes before what is inside it, and siblings keep their order."""
    given = spans(("a", None), ("b", "a"), ("c", "a"), ("d", "b"))
    (root,) = Trace(spans=given).span_tree()
    assert [span.id for span in root.walk()] == ["a", "b", "d", "c"]
