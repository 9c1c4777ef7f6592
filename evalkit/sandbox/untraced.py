"""What evalkit does with the agent's SDKs before a trial, kept out of the agent's spans.

SDKs trace their own calls once the agent has set OpenTelemetry up. Dry calls are
none of the agent's, and its exporter would try in vain to send their spans, for
there is no gateway yet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def untraced() -> Iterator[None]:
    """Let no span be recorded inside, as below a span that was not sampled."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        yield
        return
    from opentelemetry import context, trace

    outer: Any = trace.NonRecordingSpan(trace.SpanContext(1, 1, is_remote=False))
    token = context.attach(trace.set_span_in_context(outer))
    try:
        yield
    finally:
        context.detach(token)
