"""OpenTelemetry in the agent's own process: timing its spans, and sending what it holds.

An exporter in batches sends when its process ends, and a trial's process ends without
running exit handlers; so the spans are asked for while there is somebody to take
them. Import this only where the SDK is loaded anyway.

The trial's clock stands between the replies of its model, so a span's own times say
nothing about how long it took: the stopwatch does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import Final, NamedTuple

from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from evalkit.spans import dialects
from evalkit.spans.exported import RawSpan

DEADLINE_S: Final = 5.0
"""Seconds that an exporter may take to send what it holds."""

Key = tuple[str, str]


class Seconds(NamedTuple):
    """When a span began and ended, in seconds since the stopwatch was started."""

    start_s: float
    end_s: float


class Stopwatch(SpanProcessor):
    """Measures the spans of this process."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._open: dict[Key, float] = {}
        self._ended: dict[Key, Seconds] = {}
        self._tools: dict[Key, str] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's
        """Note when a span begins."""
        key = _key(span)
        if key is not None:
            self._open[key] = self._now

    def on_end(self, span: ReadableSpan) -> None:
        """Note when a span ends, and which tool's it is."""
        key, now = _key(span), self._now
        if key is None or key not in self._open:
            return
        self._ended[key] = Seconds(self._open.pop(key), now)
        plain = _plain(span, key)
        if dialects.kind_of(plain) == "tool":
            self._tools[key] = dialects.tool_name_of(plain)

    @property
    def _now(self) -> float:
        return round(time.monotonic() - self._started, 6)

    def seconds(self, key: Key) -> Seconds | None:
        """Give what was measured of a span; ``None`` if it is another process's."""
        return self._ended.get(key)

    def lost_tools(self, received: Collection[Key]) -> tuple[str, ...]:
        """Name the tools of spans that ended here and are not among those received."""
        names = {name for key, name in tuple(self._tools.items()) if key not in received}
        return tuple(sorted(names))


def _key(span: ReadableSpan) -> Key | None:
    context = span.get_span_context()
    if context is None or not context.trace_flags.sampled:
        return None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def _plain(span: ReadableSpan, key: Key) -> RawSpan:
    attributes = dict(span.attributes or {})
    return RawSpan(key[0], key[1], None, span.name, None, None, "unknown", attributes)


def start_stopwatch() -> Stopwatch | None:
    """Time the spans of the global tracer provider; ``None`` while there is none."""
    provider = api.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        return None
    watch = Stopwatch()
    provider.add_span_processor(watch)
    return watch


def flush(deadline_s: float = DEADLINE_S) -> str:
    """Send what the tracer provider still holds.

    Returns
    -------
    str
        Why that did not work; empty if it did, or if nobody traces here.
    """
    providers = _providers()
    if not providers:
        return ""
    problems: list[str] = []
    thread = threading.Thread(
        target=_flush_all, args=(providers, problems), name="evalkit-flush", daemon=True
    )
    thread.start()
    thread.join(deadline_s)
    if thread.is_alive():
        return f"the agent's exporter had not sent its spans after {deadline_s:g} s"
    return problems[0] if problems else ""


def _flush_all(providers: Collection[TracerProvider], problems: list[str]) -> None:
    # That a provider says no is no news: one that was shut down has sent everything.
    for provider in providers:
        try:
            provider.force_flush(int(DEADLINE_S * 1000))
        except Exception as error:
            problems.append(f"the agent's exporter failed: {type(error).__name__}: {error}")


def _providers() -> list[TracerProvider]:
    """Give the global tracer provider; where there is none, those that the agent keeps."""
    provider = api.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        return [provider]
    import gc

    return [one for one in gc.get_objects() if type(one) is TracerProvider]
