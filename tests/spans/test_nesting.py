"""Spans inside each other: an order that stands, and wrappers of the same thing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.spans.dialects import kind_of, tool_of, untold_of
from evalkit.spans.exported import RawSpan
from evalkit.spans.nesting import outermost_first, without_wrappers


def span(name: str, parent: str | None = None, start: int | None = 1, **attributes: str) -> RawSpan:
    """Make a span."""
    told = {key.replace("__", "."): value for key, value in attributes.items()}
    return RawSpan("t", name, parent, name, start, start, "ok", told)


def test_outer_spans_come_first_where_the_clock_stands() -> None:
    """Spans arrive as they end, the inner before the outer."""
    ended = [span("a1", "a"), span("a2", "a"), span("a", "root"), span("b", "root"), span("root")]
    assert [one.id for one in outermost_first(ended)] == ["root", "a", "a1", "a2", "b"]


def test_earlier_spans_come_first() -> None:
    """Time decides where it passes."""
    spans = [span("late", None, 3), span("early", "late", 2), span("unknown", None, None)]
    assert [one.id for one in outermost_first(spans)] == ["unknown", "early", "late"]


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 5)), max_size=8))
@settings(deadline=None, max_examples=100)
def test_no_span_is_lost_or_doubled(links: list[tuple[int, int | None]]) -> None:
    """Whatever the parents: circles, unknown ones, ids that are not unique."""
    spans = [span(str(own), None if above is None else str(above)) for own, above in links]
    ordered = outermost_first(spans)
    assert sorted(map(id, ordered)) == sorted(map(id, spans))


def test_tool_inside_its_own_wrapper_is_one_call() -> None:
    """Two libraries that see one tool are one; another tool inside is another."""
    named = {"openinference__span__kind": "TOOL"}
    spans = [
        span("outer", tool__name="book", **named),
        span("inner", "outer", tool__name="book", **named),
        span("other", "inner", tool__name="search", **named),
    ]
    kinds = {one.id: kind_of(one) for one in spans}
    assert [one.id for one in without_wrappers(spans, kinds)] == ["inner", "other"]


def test_ten_thousand_nested_tools_take_no_time() -> None:
    """An agent may nest as deep as it likes."""
    spans = [
        span(str(n), str(n - 1), openinference__span__kind="TOOL", tool__name=f"t{n}")
        for n in range(10_000)
    ]
    kinds = dict.fromkeys(map(str, range(10_000)), "tool")
    assert len(without_wrappers(outermost_first(spans), kinds)) == 10_000


def test_arguments_as_python_shows_them_are_arguments() -> None:
    """LangChain's instrumentation writes `str(arguments)`."""
    told = span("book", input__value="{'flight': 'A1', 'seats': 2}")
    assert tool_of(told).args == {"flight": "A1", "seats": 2}
    assert untold_of(told) == ("result",)


def test_text_alone_is_no_arguments() -> None:
    """What went in is known, but not under which name."""
    assert untold_of(span("book", input__value="A1", output__value="ok")) == ("args",)
    assert untold_of(span("book", gen_ai__tool__call__arguments="{}")) == ("result",)
    assert untold_of(span("book")) == ("args", "result")
