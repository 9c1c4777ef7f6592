"""How spans lie inside each other: wrappers of the same thing, and a lasting order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from evalkit.spans import dialects
from evalkit.spans.exported import RawSpan
from evalkit.trace import SpanKind

_LEVELS: Final = 100
"""How far above a thing its wrapper may lie; bounded, because an agent may nest without end."""


def without_wrappers(spans: Sequence[RawSpan], kinds: Mapping[str, SpanKind]) -> list[RawSpan]:
    """Leave out model and tool spans that only wrap the same thing, seen by another library."""
    by_id = {span.id: span for span in spans}
    things = {
        span.id: (kinds[span.id], dialects.tool_name_of(span) if kinds[span.id] == "tool" else "")
        for span in spans
        if kinds[span.id] in ("model", "tool")
    }
    wrappers = {
        above.id
        for span in spans
        if span.id in things
        for above in islice(_ancestors(span, by_id), _LEVELS)
        if things.get(above.id) == things[span.id]
    }
    return [span for span in spans if span.id not in wrappers]


def _ancestors(span: RawSpan, by_id: Mapping[str, RawSpan]) -> Iterator[RawSpan]:
    seen = {span.id}
    above = by_id.get(span.parent_id or "")
    while above is not None and above.id not in seen:
        yield above
        seen.add(above.id)
        above = by_id.get(above.parent_id or "")


def outermost_first(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """Sort spans by their start; of those that began at one time, the outer before the inner.

    Where a clock stands, many begin at one time. Beside each other, they then keep
    their order, which is that in which they ended.

    Examples
    --------
    >>> def span(id, parent=None):
    ...     return RawSpan("t", id, parent, id, 1, 1, "ok", {})
    >>> [one.id for one in outermost_first([span("b", "a"), span("c", "a"), span("a")])]
    ['a', 'b', 'c']
    """
    ids = {_key(span) for span in spans}
    below: dict[_Key | None, list[RawSpan]] = {}
    for span in spans:
        above = span.trace_id, span.parent_id
        below.setdefault(above if above in ids else None, []).append(span)
    ordered = _walked(below)
    reached = {id(span) for span in ordered}
    # What is its own ancestor is below no root.
    ordered += [span for span in spans if id(span) not in reached]
    return sorted(ordered, key=lambda span: span.start_ns or 0)


_Key: TypeAlias = tuple[str, str | None]


def _key(span: RawSpan) -> _Key:
    return span.trace_id, span.id


def _walked(below: dict[_Key | None, list[RawSpan]]) -> list[RawSpan]:
    """Give every span under a root once, without recursion: real spans may lie very deep."""
    found: list[RawSpan] = []
    waiting = below.pop(None, [])[::-1]
    while waiting:
        span = waiting.pop()
        found.append(span)
        # Taken away, because ids need not be unique: a span may be below its own namesake.
        waiting.extend(reversed(below.pop(_key(span), [])))
    return found
