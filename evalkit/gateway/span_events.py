"""Spans as events of the ledger: every span, and what ran for those of tools.

Ids are chance, so spans are numbered by first appearance and the ids that came are
kept among the real times, as are attributes that tell times, threads and addresses.
"""

from __future__ import annotations

import re
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evalkit.errors import EvalkitError
from evalkit.gateway.witness import Record
from evalkit.ledger import JSON
from evalkit.spans import dialects
from evalkit.spans.exported import RawSpan
from evalkit.spans.nesting import outermost_first, without_wrappers
from evalkit.trace import SpanKind

if TYPE_CHECKING:
    from evalkit.gateway.flushing import Seconds, Stopwatch

_MAX_TEXT: Final = 200_000
"""Characters of an attribute that are kept."""
_MAX_ATTRIBUTES: Final = 2_000

_CHANCE: Final = re.compile(
    r"(^|[._])(thread|process|host|pid|port|url|uri|duration|latency|elapsed|timestamp|ttft"
    r"|time_to_\w+|time_per_\w+|\w*(start|end|created)_time|run_id|session_id|uuid)([._]|$)"
    r"|PerSecond$|\.ms[A-Z]"
)
"""Names of attributes that no two runs agree about."""


class Turns(NamedTuple):
    """When the turns began, and which one has just ended."""

    began_ns: Sequence[int]
    now: int

    def of(self, span: RawSpan) -> int:
        """Give the turn in which a span began; spans are read at the end of each turn."""
        place = bisect_right(self.began_ns, span.start_ns or 0) - 1
        return min(place, self.now) if place >= 0 else self.now


class SpanWriter:
    """Writes the spans of one trial, in the order in which they began.

    Parameters
    ----------
    stopwatch
        Knows how long spans of this process took; without one, and where the clock
        stands, nobody does.
    written
        How many ids and calls of the trial have a number already.
    """

    def __init__(self, stopwatch: Stopwatch | None, *, written: tuple[int, int] = (0, 0)) -> None:
        self._stopwatch = stopwatch
        self._numbers: dict[tuple[str, str], int] = {}
        self._n_before, self._n_calls = written

    def write(self, record: Record, spans: Sequence[RawSpan], *, turns: Turns) -> None:
        """Write spans that came together; what cannot be written is told as a gap."""
        ordered = sorted(outermost_first(spans), key=self._began)
        kinds = {span.id: dialects.kind_of(span) for span in ordered}
        ran = {id(span) for span in without_wrappers(ordered, kinds) if kinds[span.id] == "tool"}
        unwritten: dict[str, None] = {}
        for span in ordered:
            try:
                self._write_one(record, span, kinds[span.id], turn=turns.of(span))
                if id(span) in ran:
                    self._write_call(record, span, turn=turns.of(span))
            except OSError:
                raise  # nobody is left to record for
            except Exception as error:
                unwritten[f"a span cannot be written down: {_short(error)}"] = None
        self.tell_gaps(record, unwritten)

    def _began(self, span: RawSpan) -> tuple[int, float]:
        """Say when a span began, by its own clock, and by the stopwatch where that stands."""
        measured = self._measured(span)
        return span.start_ns or 0, 0.0 if measured is None else measured.start_s

    def _measured(self, span: RawSpan) -> Seconds | None:
        watch = self._stopwatch
        return None if watch is None else watch.seconds((span.trace_id, span.id))

    def tell_gaps(self, record: Record, gaps: Iterable[str]) -> None:
        """Write why spans may be missing."""
        told = list(gaps)
        if told:
            record("state", {"span_gaps": told})

    def _write_one(self, record: Record, span: RawSpan, kind: SpanKind, *, turn: int) -> None:
        lasting, chance = _attributes(span.attributes)
        data = {
            "name": span.name,
            "kind": kind,
            "status": span.status,
            "attributes": lasting,
            "documents": [asdict(document) for document in dialects.documents_of(span)],
            "parent_id": self._id(span.trace_id, span.parent_id) if span.parent_id else None,
            "turn": turn,
        }
        seconds = self._seconds(span)
        times = {} if seconds is None else {"start_s": seconds[0], "end_s": seconds[1]}
        ids = {"trace_id": span.trace_id, "span_id": span.id}
        more = {"attributes": chance} if chance else {}
        record("span", data, span=self._id(span.trace_id, span.id), real={**times, **ids, **more})

    def _write_call(self, record: Record, span: RawSpan, *, turn: int) -> None:
        call, untold = dialects.tool_of(span), dialects.untold_of(span)
        number, self._n_calls = self._n_calls, self._n_calls + 1
        asked = {"call": number, "turn": turn, "name": call.name, "args": call.args, "at": "span"}
        more = {"raw_args": call.raw_args, "id": call.id, "untold": list(untold)}
        span_id = self._id(span.trace_id, span.id)
        record("tool_call", asked | {k: v for k, v in more.items() if v}, span=span_id)
        answer = {"call": number, "status": call.status, "result": call.result, "at": "span"}
        record("tool_result", answer, span=span_id, real=self._duration(span))

    def _duration(self, span: RawSpan) -> dict[str, JSON]:
        seconds = self._seconds(span)
        return {} if seconds is None else {"duration_s": round(seconds[1] - seconds[0], 6)}

    def _seconds(self, span: RawSpan) -> Seconds | tuple[float, float] | None:
        """Say when a span began and ended in real time, if anybody knows."""
        measured = self._measured(span)
        if measured is not None or span.start_ns is None or span.end_ns is None:
            return measured
        if _clock_stands() and span.start_ns <= time.time_ns():
            return None
        return span.start_ns / 1e9, span.end_ns / 1e9

    def _id(self, trace_id: str, span_id: str) -> str:
        """Give a span its number, also one that only its children name so far."""
        number = self._numbers.setdefault((trace_id, span_id), self._n_before + len(self._numbers))
        return f"otel:{number}"


def _clock_stands() -> bool:
    """Say whether this process's clock is the trial's, in which no time passes for a tool."""
    traveller: Any = sys.modules.get("time_machine")
    return traveller is not None and bool(traveller.escape_hatch.is_travelling())


def _attributes(found: Mapping[str, JSON]) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Part attributes into those that two runs agree about, and the others."""
    lasting: dict[str, JSON] = {}
    chance: dict[str, JSON] = {}
    for name, value in list(found.items())[:_MAX_ATTRIBUTES]:
        side = chance if _CHANCE.search(str(name)) else lasting
        side[str(name)[:_MAX_TEXT]] = _clipped(value)
    return lasting, chance


def _clipped(value: JSON) -> JSON:
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        return f"{value[:_MAX_TEXT]} [... {len(value) - _MAX_TEXT:,} more characters]"
    return value


def _short(error: Exception) -> str:
    text = str(error) if isinstance(error, EvalkitError) else repr(error)
    return text[:300]
