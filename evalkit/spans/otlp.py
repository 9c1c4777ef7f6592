"""The body of an OTLP/HTTP request for traces: JSON or protobuf, plain or gzip.

Sizes are bounded before anything is unpacked, because an agent wrote the bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import orjson

from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.spans.exported import RawSpan, spans_of
from evalkit.spans.protobuf import spans_of_protobuf

Encoding: TypeAlias = Literal["json", "protobuf"]

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""What a body may have once it is unpacked."""
_MAX_DEPTH: Final = 100
_GZIP: Final = 16 + zlib.MAX_WBITS
_MAX_NS: Final = 1 << 64


class TooLargeError(TraceError):
    """A body has more bytes than are taken."""


def unpacked(body: bytes, encoding: str, *, at_most: int = MAX_BODY_BYTES) -> bytes:
    """Undo the ``content-encoding`` of a body.

    Raises
    ------
    TooLargeError
        If more than ``at_most`` bytes come out; no more than that are ever held.
    TraceError
        If the bytes are not compressed as the encoding says.
    """
    way = encoding.strip().lower()
    if way in ("", "identity"):
        return body
    if way not in ("gzip", "deflate"):
        raise TraceError(f"the body is compressed ({encoding}); send it plain, or with gzip")
    try:
        return _inflated(body, _GZIP if way == "gzip" else zlib.MAX_WBITS, at_most)
    except zlib.error as error:
        raise TraceError(f"the body is no {way}: {error}") from error


def _inflated(body: bytes, window: int, at_most: int) -> bytes:
    found = bytearray()
    while body:
        unpacker = zlib.decompressobj(window)
        found += unpacker.decompress(body, at_most + 1 - len(found))
        if len(found) > at_most or unpacker.unconsumed_tail:
            raise TooLargeError(f"the body has more than {at_most:,} bytes once it is unpacked")
        if not unpacker.eof:
            raise TraceError("the body breaks off in the middle of its compressed data")
        body = unpacker.unused_data  # gzip may have several members
    return bytes(found)


def encoding_of(content_type: str) -> Encoding:
    """Say how a body is written, by its ``content-type``.

    Raises
    ------
    TraceError
        If it is neither JSON nor protobuf.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return "json"
    if kind == "application/x-protobuf":
        return "protobuf"
    raise TraceError(
        f"the content-type is {content_type!r}; send application/json or application/x-protobuf"
    )


def spans_of_body(content: bytes, encoding: Encoding) -> list[RawSpan]:
    """Read the spans of an ``ExportTraceServiceRequest``.

    Raises
    ------
    ImportError
        If the body is protobuf and ``opentelemetry-proto`` is not installed.
    TraceError
        If it cannot be read.

    Examples
    --------
    >>> span = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00f067aa0ba902b7"}
    >>> import json
    >>> body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    >>> [span.id for span in spans_of_body(body, "json")]
    ['00f067aa0ba902b7']
    """
    read = spans_of_protobuf if encoding == "protobuf" else _spans_of_json
    try:
        return [_sane(span) for span in read(content)]
    except (AttributeError, TypeError, ValueError, KeyError, OverflowError) as error:
        raise TraceError(f"the body is no ExportTraceServiceRequest: {error!r}") from error


def _spans_of_json(content: bytes) -> list[RawSpan]:
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise TraceError(f"the body is no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise TraceError(f"the body must be a JSON object, not {type(value).__name__}")
    if not ("resourceSpans" in value or "resource_spans" in value):
        return []
    _check_depth(value)
    return list(spans_of(value))


def _check_depth(value: JSON) -> None:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [item for one in level if isinstance(one, dict | list) for item in _inside(one)]
        if not level:
            return
    raise TraceError(f"the body is nested deeper than {_MAX_DEPTH} levels")


def _inside(value: JSON) -> list[JSON]:
    return list(value.values() if isinstance(value, dict) else value)


def _sane(span: RawSpan) -> RawSpan:
    """Leave out times that no clock tells."""
    if _is_time(span.start_ns) and _is_time(span.end_ns):
        return span
    start_ns = span.start_ns if _is_time(span.start_ns) else None
    return replace(span, start_ns=start_ns, end_ns=span.end_ns if _is_time(span.end_ns) else None)


def _is_time(nanoseconds: int | None) -> bool:
    return nanoseconds is None or 0 < nanoseconds < _MAX_NS
