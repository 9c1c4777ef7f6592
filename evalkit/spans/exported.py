"""From exports to raw spans: OTLP JSON, and the dumps of SDKs and Phoenix.

Enums come as names or numbers, integers as strings, ids as hex or base64, keys in
camel or snake case, attributes as flat unsorted lists: here they become one thing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from evalkit.errors import TraceError
from evalkit.ledger import JSON

SpanStatus: TypeAlias = Literal["ok", "error", "unknown"]


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One timed event inside a span."""

    name: str
    attributes: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawSpan:
    """One span as exported, its attributes as plain JSON values by their full name."""

    trace_id: str
    id: str
    parent_id: str | None
    name: str
    start_ns: int | None
    end_ns: int | None
    status: SpanStatus
    attributes: Mapping[str, JSON]
    events: tuple[RawEvent, ...] = ()
    resource: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def duration_s(self) -> float | None:
        """Seconds from start to end."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return (self.end_ns - self.start_ns) / 1e9


def spans_of(value: JSON) -> Iterator[RawSpan]:
    """Read the spans of one exported document.

    Raises
    ------
    TraceError
        If a span cannot be read; the text says which.
    """
    if isinstance(value, list):
        for number, span in enumerate(value):
            yield _checked(span, {}, f"spans[{number}]")
        return
    resources = _get(value, "resourceSpans")
    if resources is None:
        yield _checked(value, {}, "span")
        return
    for resource_number, resource_spans in enumerate(resources):
        yield from _of_resource(resource_spans, f"resourceSpans[{resource_number}]")


def _of_resource(resource_spans: Mapping[str, Any], where: str) -> Iterator[RawSpan]:
    resource = _attributes(_get(resource_spans.get("resource") or {}, "attributes"))
    scopes = _get(resource_spans, "scopeSpans") or _get(
        resource_spans, "instrumentationLibrarySpans"
    )
    for scope_number, scope in enumerate(scopes or ()):
        for number, span in enumerate(scope.get("spans") or ()):
            yield _checked(span, resource, f"{where}.scopeSpans[{scope_number}].spans[{number}]")


def _checked(span: JSON, resource: Mapping[str, JSON], where: str) -> RawSpan:
    try:
        return _span(span, resource)
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise TraceError(f"{where}: cannot read the span: {error!r}") from error


def _span(span: Mapping[str, Any], resource: Mapping[str, JSON]) -> RawSpan:
    context = _get(span, "spanContext") or span.get("context") or span
    trace_id, span_id = _get(context, "traceId"), _get(context, "spanId")
    if not trace_id or not span_id:
        raise ValueError("it has no trace id or no span id")
    parent = _get(span, "parentSpanId") or _get(span, "parentId")
    parent = parent or _get(_get(span, "parentSpanContext") or {}, "spanId")
    events = span.get("events") or ()
    attributes = _attributes(span.get("attributes"))
    if span.get("span_kind"):  # Phoenix keeps OpenInference's kind beside the attributes
        attributes.setdefault("openinference.span.kind", span["span_kind"])
    return RawSpan(
        trace_id=_id(trace_id, 16),
        id=_id(span_id, 8),
        parent_id=_id(parent, 8) if parent else None,
        name=str(span.get("name") or ""),
        start_ns=_nanoseconds(_get(span, "startTimeUnixNano") or _get(span, "startTime")),
        end_ns=_end_ns(span),
        status=_status(span, attributes),
        attributes=attributes,
        events=tuple(
            RawEvent(str(event.get("name") or ""), _attributes(event.get("attributes")))
            for event in events
        ),
        resource=resource,
    )


_HUMP: Final = re.compile(r"(?<=[a-z])([A-Z])")


def _get(data: Mapping[str, Any], name: str) -> Any:
    """Give a field by its camel-case name, or by the snake-case one of protobuf."""
    return data[name] if name in data else data.get(_HUMP.sub(r"_\1", name).lower())


def _attributes(attributes: JSON) -> dict[str, JSON]:
    """Give attributes as a flat mapping, whichever way they are written."""
    if attributes is None:
        return {}
    if isinstance(attributes, Mapping):
        return _flat(attributes)
    return {str(item["key"]): _value(item.get("value")) for item in attributes}


def _flat(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    """Give nested attributes, as some dumps have them, under their full names."""
    flat: dict[str, JSON] = {}
    for key, value in attributes.items():
        if isinstance(value, Mapping) and value:
            flat.update({f"{key}.{inner}": item for inner, item in _flat(value).items()})
        else:
            flat[str(key)] = value
    return flat


def _value(value: JSON) -> JSON:
    """Give the plain value of OTLP's AnyValue."""
    if not isinstance(value, Mapping):
        return value
    for name, read in _VALUES.items():
        inner = _get(value, name)
        if inner is not None:
            return read(inner)
    return None


def _array(value: Mapping[str, Any]) -> list[JSON]:
    return [_value(item) for item in value.get("values") or ()]


def _key_values(value: Mapping[str, Any]) -> dict[str, JSON]:
    return _attributes(value.get("values"))


def _same(value: JSON) -> JSON:
    return value


_VALUES: Final[Mapping[str, Any]] = {
    "stringValue": _same,
    "intValue": int,
    "boolValue": _same,
    "doubleValue": float,
    "arrayValue": _array,
    "kvlistValue": _key_values,
    "bytesValue": _same,
}


def _id(value: object, size: int) -> str:
    """Give an id as hex; base64, as naive protobuf dumps write it, is turned into hex."""
    text = str(value).removeprefix("0x")
    if re.fullmatch(rf"[0-9a-fA-F]{{{2 * size}}}", text):
        return text.lower()
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    return raw.hex() if len(raw) == size else text


def _nanoseconds(value: JSON) -> int | None:
    """Read a time: nanoseconds, ``[seconds, nanoseconds]`` or ISO 8601; 0 is unknown."""
    if value in (None, "", 0, "0"):
        return None
    if isinstance(value, list | tuple):
        return int(value[0]) * 10**9 + int(value[1])
    if isinstance(value, str) and not value.isdigit():
        stamp = datetime.fromisoformat(value)
        return int(stamp.timestamp()) * 10**9 + stamp.microsecond * 1000
    return int(value)


def _status(span: Mapping[str, Any], attributes: Mapping[str, JSON]) -> SpanStatus:
    """Read the status; unset means "ended without an error" once the span has ended."""
    status = span.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, Mapping) else status
    code = span.get("status_code", code)
    if code in _ERROR or "error.type" in attributes:
        return "error"
    return "ok" if code in _OK or _end_ns(span) is not None else "unknown"


def _end_ns(span: Mapping[str, Any]) -> int | None:
    return _nanoseconds(_get(span, "endTimeUnixNano") or _get(span, "endTime"))


_OK: Final = (1, "1", "OK", "STATUS_CODE_OK")
_ERROR: Final = (2, "2", "ERROR", "STATUS_CODE_ERROR")


def nested(attributes: Mapping[str, JSON], prefix: str) -> list[Any]:
    """Build the list under a prefix out of flat names with numbers in them.

    Examples
    --------
    >>> nested({"m.1.role": "user", "m.0.role": "system"}, "m")
    [{'role': 'system'}, {'role': 'user'}]
    """
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(f"{prefix}."):
            _put(root, name.removeprefix(f"{prefix}.").split("."), value)
    tree = _listed(root)
    return tree if isinstance(tree, list) else []


def _put(root: dict[str, Any], steps: list[str], value: JSON) -> None:
    for step in steps[:-1]:
        below = root.setdefault(step, {})
        if not isinstance(below, dict):
            return
        root = below
    root[steps[-1]] = value


def _listed(tree: Any) -> Any:
    """Turn mappings whose keys are all numbers into lists, by the number."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdigit() for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    return {key: _listed(value) for key, value in tree.items()}


def in_order(spans: Iterable[RawSpan]) -> list[RawSpan]:
    """Sort spans by their start; those without one keep their place at the front."""
    return sorted(spans, key=lambda span: span.start_ns or 0)
