"""OTLP spans as protobuf, read with ``opentelemetry-proto``.

That package is imported when the first such body comes, and not before.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.spans.exported import RawEvent, RawSpan, SpanStatus

_MAX_DEPTH: Final = 100
_STATUS_OK: Final = 1
_STATUS_ERROR: Final = 2


def spans_of_protobuf(content: bytes) -> list[RawSpan]:
    """Read an ``ExportTraceServiceRequest``.

    Raises
    ------
    ImportError
        If ``opentelemetry-proto`` is not installed.
    TraceError
        If the bytes are no such message, or a span has no ids.
    """
    from importlib import import_module

    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    try:
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(content)
    except import_module("google.protobuf.message").DecodeError as error:
        raise TraceError(f"the body is no ExportTraceServiceRequest: {error}") from error
    return [span for one in request.resource_spans for span in _of_resource(one)]


def _of_resource(resource_spans: Any) -> Iterator[RawSpan]:
    resource = _attributes(resource_spans.resource.attributes)
    for scope in resource_spans.scope_spans:
        for span in scope.spans:
            yield _span(span, resource)


def _span(span: Any, resource: Mapping[str, JSON]) -> RawSpan:
    if not span.trace_id or not span.span_id:
        raise TraceError(f"the span {span.name[:80]!r} has no trace id or no span id")
    attributes = _attributes(span.attributes)
    return RawSpan(
        trace_id=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        name=span.name,
        start_ns=span.start_time_unix_nano or None,
        end_ns=span.end_time_unix_nano or None,
        status=_status(span, attributes),
        attributes=attributes,
        events=tuple(RawEvent(event.name, _attributes(event.attributes)) for event in span.events),
        resource=resource,
    )


def _status(span: Any, attributes: Mapping[str, JSON]) -> SpanStatus:
    code = span.status.code
    if code == _STATUS_ERROR or "error.type" in attributes:
        return "error"
    return "ok" if code == _STATUS_OK or span.end_time_unix_nano else "unknown"


def _attributes(pairs: Iterable[Any], depth: int = 0) -> dict[str, JSON]:
    return {pair.key: _value(pair.value, depth) for pair in pairs}


def _value(value: Any, depth: int) -> JSON:
    """Give the plain value of an AnyValue; one of a kind that is not known here is none."""
    kind = value.WhichOneof("value")
    if depth > _MAX_DEPTH:
        raise TraceError(f"an attribute is nested deeper than {_MAX_DEPTH} levels")
    if kind in _NESTED:
        return _NESTED[kind](getattr(value, kind), depth + 1)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode("ascii")
    return getattr(value, kind) if kind in _PLAIN else None


def _array(value: Any, depth: int) -> list[JSON]:
    return [_value(item, depth) for item in value.values]


def _key_values(value: Any, depth: int) -> dict[str, JSON]:
    return _attributes(value.values, depth)


_PLAIN: Final = frozenset({"string_value", "bool_value", "int_value", "double_value"})
_NESTED: Final[Mapping[str, Callable[[Any, int], JSON]]] = {
    "array_value": _array,
    "kvlist_value": _key_values,
}
