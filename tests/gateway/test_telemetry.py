"""Spans that an agent sends to the gateway: what is answered, what is recorded, what is refused."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from evalkit.gateway import telemetry
from evalkit.gateway.telemetry import Telemetry
from evalkit.ledger import digest
from evalkit.recording import Recorder
from evalkit.serving.http1 import HttpRequest

JSON = {"content-type": "application/json"}
PROTOBUF = {"content-type": "application/x-protobuf"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
HELLO = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}


def span(number: int, /, *, parent: int | None = None, **attributes: Any) -> dict[str, Any]:
    """Write a span of OTLP."""
    told = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": f"step {number}",
        "startTimeUnixNano": str(1_800_000_000_000_000_000 + number),
        "endTimeUnixNano": str(1_800_000_001_000_000_000 + number),
        "attributes": [
            {"key": key.replace("__", "."), "value": {"stringValue": value}}
            for key, value in attributes.items()
        ],
    }
    return told if parent is None else {**told, "parentSpanId": f"{parent:016x}"}


def tool(number: int, name: str, **more: Any) -> dict[str, Any]:
    """Write the span of a tool."""
    names = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name}
    return span(number, **names, **more)


def export(*spans: Any) -> dict[str, Any]:
    """Write the body of a request."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": list(spans)}]}]}


def send(gateway: Any, *spans: Any, **headers: str) -> Any:
    """Send spans as JSON."""
    return gateway.post("/v1/traces", export(*spans), **JSON, **headers)


def test_answer_is_an_empty_response_in_the_encoding_of_the_request(serve) -> None:
    """OTLP: 200, and an ExportTraceServiceResponse without a partial success."""
    gateway = serve()
    answer = send(gateway, span(1))
    assert (answer.status, answer.json) == (200, {})
    assert answer.headers["content-type"] == "application/json"
    body = trace_service_pb2.ExportTraceServiceRequest().SerializeToString()
    answer = gateway.post("/v1/traces", body, **PROTOBUF)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"] == "application/x-protobuf"


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/traces/", "/any/v1/traces?x=1"])
def test_spans_are_no_call_of_a_model(serve, path: str) -> None:
    """They take no step, and are never unscripted."""
    gateway = serve([{"text": "Hello."}])
    assert gateway.post(path, export(span(1)), **JSON).status == 200
    assert gateway.post("/v1/messages", HELLO, **JSON).status == 200
    assert gateway.finish() == ()
    assert gateway.n_requests == 1


@pytest.mark.parametrize("path", ["/v1/metrics", "/v1/logs"])
def test_metrics_and_logs_are_let_go(serve, path: str) -> None:
    """An exporter of anything else that the same variable leads here does no harm."""
    gateway = serve()
    assert gateway.post(path, b"\xff\xff", **PROTOBUF).status == 200
    assert gateway.finish() == ()
    assert gateway.events == []


MALFORMED: dict[str, tuple[bytes, dict[str, str]]] = {
    "no_json": (b"{", JSON),
    "a_list": (b"[]", JSON),
    "odd_resource": (b'{"resourceSpans": 3}', JSON),
    "odd_span": (json.dumps(export(7)).encode(), JSON),
    "no_ids": (json.dumps(export({"name": "x"})).encode(), JSON),
    "too_deep": (b'{"resourceSpans":' + b"[" * 300 + b"]" * 300 + b"}", JSON),
    "no_protobuf": (b"\xff\xff\xff", PROTOBUF),
    "no_gzip": (b"{}", {**JSON, "content-encoding": "gzip"}),
    "cut_gzip": (gzip.compress(b"{}" * 99)[:-9], {**JSON, "content-encoding": "gzip"}),
    "odd_encoding": (b"{}", {**JSON, "content-encoding": "br"}),
    "odd_type": (b"{}", {"content-type": "text/plain"}),
    "no_type": (b"{}", {}),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_body_is_refused_and_told(serve, name: str) -> None:
    """400, no finding, and a gap: what was dropped is known to have been."""
    body, headers = MALFORMED[name]
    gateway = serve()
    answer = gateway.post("/v1/traces", body, **headers)
    assert answer.status == 400
    if headers == JSON:
        assert answer.json["code"] == 3
    assert gateway.finish() == ()
    assert "cannot be read" in gateway.trace.span_gaps[0]


def test_bomb_is_not_unpacked(serve) -> None:
    """Of a few kilobytes that unpack to a gigabyte, a few megabytes are ever held."""
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(1024)) + packer.flush()
    gateway = serve()
    answer = gateway.post("/v1/traces", bomb, **JSON, **{"content-encoding": "gzip"})
    assert answer.status == 413
    gateway.finish()
    assert "once it is unpacked" in gateway.trace.span_gaps[0]
    assert send(gateway, span(1)).status == 200


@pytest.mark.parametrize("way", ["gzip", "deflate", "members"])
def test_compressed_spans_are_read(serve, way: str) -> None:
    """Also where gzip has several members."""
    body = json.dumps(export(span(1))).encode()
    packed = {
        "gzip": gzip.compress(body),
        "deflate": zlib.compress(body),
        "members": gzip.compress(body[:9]) + gzip.compress(body[9:]),
    }[way]
    gateway = serve()
    encoding = "deflate" if way == "deflate" else "gzip"
    assert (
        gateway.post("/v1/traces", packed, **JSON, **{"content-encoding": encoding}).status == 200
    )
    gateway.finish()
    assert len(gateway.trace.spans) == 1


def test_protobuf_and_json_tell_the_same(serve) -> None:
    """Every kind of value, and what is no value."""
    values = {
        "text": {"stringValue": "x"},
        "yes": {"boolValue": True},
        "whole": {"intValue": "7"},
        "half": {"doubleValue": 0.5},
        "list": {"arrayValue": {"values": [{"intValue": "1"}, {}]}},
        "map": {"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "b"}}]}},
        "bytes": {"bytesValue": "AP8="},
        "nothing": {},
    }
    told = span(1) | {"attributes": [{"key": k, "value": v} for k, v in values.items()]}
    one, other = serve(), serve()
    send(one, told)
    request = trace_service_pb2.ExportTraceServiceRequest()
    sent = request.resource_spans.add().scope_spans.add().spans.add()
    sent.trace_id, sent.span_id, sent.name = bytes.fromhex(TRACE), (1).to_bytes(8, "big"), "step 1"
    sent.start_time_unix_nano, sent.end_time_unix_nano = 1_800_000_000_000_000_001, 2**63
    for key in values:
        sent.attributes.add(key=key)
    by_key = {pair.key: pair.value for pair in sent.attributes}
    by_key["text"].string_value = "x"
    by_key["yes"].bool_value = True
    by_key["whole"].int_value = 7
    by_key["half"].double_value = 0.5
    by_key["list"].array_value.values.add(int_value=1)
    by_key["list"].array_value.values.add()
    by_key["map"].kvlist_value.values.add(key="a").value.string_value = "b"
    by_key["bytes"].bytes_value = b"\x00\xff"
    other.post("/v1/traces", request.SerializeToString(), **PROTOBUF)
    one.finish(), other.finish()
    assert one.trace.spans[0].attributes == other.trace.spans[0].attributes
    assert digest(one.events) == digest(other.events)


@pytest.mark.parametrize(
    "odd",
    [
        {"endTimeUnixNano": None},
        {"endTimeUnixNano": "0"},
        {"startTimeUnixNano": "9" * 400, "endTimeUnixNano": "9" * 400},
        {"startTimeUnixNano": -5},
        {"name": None},
        {"name": ["x"]},
        {"status": {"code": 99}},
        {"parentSpanId": f"{1:016x}"},
        {"attributes": [{"key": 5, "value": {"stringValue": "x"}}]},
        {"attributes": [{"key": "tool.name", "value": {"arrayValue": {}}}]},
        {"attributes": [{"key": "gen_ai.tool.call.arguments", "value": {"intValue": "3"}}]},
        {"attributes": [{"key": "x", "value": {"doubleValue": "NaN"}}]},
        {"attributes": [{"key": "x", "value": {"stringValue": "\ud800"}}]},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_odd_spans_are_taken_as_far_as_they_can_be(serve, odd: dict[str, Any]) -> None:
    """Spans without end, their own parents, values of odd types: none ends the trial."""
    gateway = serve()
    body = json.dumps(export(tool(1, "book") | odd, span(2))).encode()
    status = gateway.post("/v1/traces", body, **JSON).status
    assert gateway.finish() == ()
    trace = gateway.trace
    assert (status == 200 and len(trace.spans) == 2) or (status == 400 and trace.span_gaps)


def test_span_without_end_has_no_duration_and_no_status(serve) -> None:
    """What never ended is neither fast nor fine."""
    gateway = serve()
    send(gateway, tool(1, "book") | {"endTimeUnixNano": None})
    gateway.finish()
    call = gateway.trace.tool_calls[0]
    assert (call.duration_s, call.status) == (None, "unknown")


def test_spans_are_numbered_and_their_ids_kept_apart(serve) -> None:
    """Two runs whose ids and times differ have one digest."""
    gateways = serve(), serve()
    for gateway, shift in zip(gateways, (0, 100), strict=True):
        spans = [tool(3 + shift, "search", parent=1 + shift), span(1 + shift)]
        for each in spans:
            each["name"] = "x"
        send(gateway, *spans)
        gateway.finish()
    one, other = gateways
    assert digest(one.events) == digest(other.events)
    assert [(each.id, each.parent_id) for each in one.trace.spans] == [
        ("otel:0", None),
        ("otel:1", "otel:0"),
    ]
    assert one.trace.tool_calls[0].span_id == "otel:1"


def test_a_span_sent_twice_counts_once(serve) -> None:
    """An exporter that heard no answer sends again."""
    gateway = serve()
    send(gateway, tool(1, "book"))
    send(gateway, tool(1, "book"), tool(2, "book"))
    gateway.finish()
    assert len(gateway.trace.tool_calls) == 2


def test_spans_belong_to_the_turn_that_ends(serve) -> None:
    """They are written when the next turn begins, whenever they came."""
    gateway = serve(turns=[{}, {}])
    for turn in range(2):
        gateway.endpoint.begin_turn(turn)
        gateway.recorder.turn("Go.")
        send(gateway, tool(turn + 1, "book"))
        assert len(gateway.of_kind("span")) == turn
    gateway.finish()
    assert [call.turn for call in gateway.trace.tool_calls] == [0, 1]
    assert [each.turn for each in gateway.trace.spans] == [0, 1]


def test_chance_in_attributes_is_in_no_digest(serve) -> None:
    """Times, threads and addresses are kept, but apart."""
    gateways = serve(), serve()
    for gateway, value in zip(gateways, ("1", "2"), strict=True):
        send(gateway, span(1, thread__id=value, server__port=value, ai__response__msToFinish=value))
        gateway.finish()
    one, other = gateways
    assert digest(one.events) == digest(other.events)
    assert other.trace.spans[0].attributes["thread.id"] == "2"


def test_too_many_spans_are_a_gap(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer says how many were rejected, in both encodings."""
    monkeypatch.setattr(telemetry, "MAX_SPANS", 2)
    gateway = serve()
    answer = send(gateway, *map(span, range(1, 6)))
    assert answer.json["partialSuccess"]["rejectedSpans"] == "3"
    request = trace_service_pb2.ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    scope.spans.append(trace_pb2.Span(trace_id=b"x" * 16, span_id=b"y" * 8))
    answer = gateway.post("/v1/traces", request.SerializeToString(), **PROTOBUF)
    read = trace_service_pb2.ExportTraceServiceResponse.FromString(answer.body)
    assert read.partial_success.rejected_spans == 1
    assert "2 spans" in read.partial_success.error_message
    gateway.finish()
    assert len(gateway.trace.spans) == 2
    assert "more than 2 spans" in gateway.trace.span_gaps[0]


def test_refusal_in_protobuf_is_a_status() -> None:
    """A google.rpc.Status: code and message."""
    status_pb2 = pytest.importorskip("google.rpc.status_pb2")
    received = HttpRequest(
        "POST", "/v1/traces", {b"content-type": b"application/x-protobuf"}, b"\xff", keeps_open=True
    )
    status = status_pb2.Status.FromString(Telemetry().take(received).delivery.body)
    assert status.code == 3
    assert "ExportTraceServiceRequest" in status.message


def test_exporter_that_speaks_grpc_does_no_harm(serve) -> None:
    """It cannot be served here, and the trial goes on."""
    gateway = serve()
    answer = gateway.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert gateway.finish() == ()
    assert gateway.trace.span_gaps == ()


def test_what_the_ledger_cannot_hold_is_a_gap() -> None:
    """A span that cannot be written is told, and the others are written."""
    from evalkit.gateway.span_events import SpanWriter, Turns
    from evalkit.spans.exported import spans_of

    events: list[Any] = []
    recorder = Recorder(events.append)

    def record(kind: Any, data: Any, **more: Any) -> None:
        if data.get("name") == "step 1":
            raise ValueError("too large")
        recorder.event(kind, data, **more)

    spans = list(spans_of(export(span(1), span(2))))
    SpanWriter(None).write(record, spans, turns=Turns((), 0))
    assert [event.kind for event in events] == ["span", "state"]
    assert "too large" in events[1].data["span_gaps"][0]
