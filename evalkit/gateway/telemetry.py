"""What an agent's OpenTelemetry exporter sends: ``POST .../v1/traces``, answered as OTLP says.

It is no call of a model: it takes no step of a script and is never unscripted. Spans
wait here until a turn has ended, because *when* an exporter sends them is chance;
then :mod:`evalkit.gateway.span_events` writes them into the ledger. Metrics and logs are
accepted and let go: nothing is graded by them.

Nothing of OpenTelemetry is imported before a span has come, or the agent has loaded
its SDK.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from evalkit.errors import TraceError
from evalkit.serving.delivery import Delivery
from evalkit.serving.http1 import BadHttp, HttpRequest
from evalkit.serving.jsontext import to_bytes

if TYPE_CHECKING:
    from evalkit.gateway.flushing import Stopwatch
    from evalkit.gateway.span_events import SpanWriter
    from evalkit.gateway.witness import Record
    from evalkit.ledger import Event
    from evalkit.spans.exported import RawSpan
    from evalkit.spans.otlp import Encoding

MAX_SPANS: Final = 50_000
"""Spans that one trial may send."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes of spans, unpacked, that one trial may send."""
MISSING: Final = (
    "the agent sends OpenTelemetry spans as protobuf, and the package that reads them is not "
    'installed; install it with: pip install "evalkit-lab[otel]"'
)
_SDK: Final = "opentelemetry.sdk.trace"
_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"
_INVALID_ARGUMENT: Final = 3
_GRPC: Final = "PRI * HTTP/2"
"""How a client begins that speaks gRPC."""


def is_telemetry(method: str, target: str) -> bool:
    """Say whether a request brings spans, metrics or logs.

    Examples
    --------
    >>> is_telemetry("POST", "/v1/traces"), is_telemetry("POST", "/v1/messages")
    (True, False)
    """
    path = target.partition("?")[0].rstrip("/")
    return method == "POST" and path.endswith(("/v1/traces", "/v1/metrics", "/v1/logs"))


class Taken(NamedTuple):
    """What becomes of a request that brought telemetry."""

    delivery: Delivery
    missing: str = ""
    """What must be installed to read it; told once a trial."""


class Telemetry:
    """Takes in the spans of one trial.

    Parameters
    ----------
    watches_sdk
        Whether OpenTelemetry in this process is the agent's.
    """

    def __init__(self, *, watches_sdk: bool = False) -> None:
        self._watches_sdk = watches_sdk
        self._lock = threading.Lock()
        self._waiting: list[RawSpan] = []
        self._gaps: dict[str, None] = {}
        self._seen: set[tuple[str, str]] = set()
        self._n_bytes = 0
        self._lacks_package = False
        self._began_ns: list[int] = []
        self._stopwatch: Stopwatch | None = None
        self._writer: SpanWriter | None = None
        self._written = (0, 0)

    def take(self, received: HttpRequest) -> Taken:
        """Take in one request; never raises for what stands in it."""
        if not received.target.partition("?")[0].rstrip("/").endswith("/v1/traces"):
            return Taken(_accepted(_type_of(received)))
        from evalkit.spans.otlp import TooLargeError

        try:
            spans = self._read(received)
        except ImportError:
            return self._without_package(received)
        except TooLargeError as error:
            return Taken(self._refused(received, str(error), 413))
        except TraceError as error:
            return Taken(self._refused(received, str(error), 400))
        return Taken(_accepted(_type_of(received), n_rejected=self._keep(spans)))

    def _read(self, received: HttpRequest) -> list[RawSpan]:
        from evalkit.spans.otlp import encoding_of, spans_of_body, unpacked

        encoding: Encoding = encoding_of(_type_of(received))
        packed = received.headers.get(b"content-encoding", b"").decode("latin-1")
        body = unpacked(received.body, packed)
        with self._lock:
            self._n_bytes += len(body)
            if self._n_bytes > MAX_BYTES:
                raise TraceError(f"the trial sent more than {MAX_BYTES:,} bytes of spans")
        return spans_of_body(body, encoding)

    def _keep(self, spans: list[RawSpan]) -> int:
        """Keep spans until the turn ends; give how many were too many."""
        n_rejected = 0
        with self._lock:
            for span in spans:
                key = span.trace_id, span.id
                if key in self._seen:  # an exporter that heard no answer sends again
                    continue
                if len(self._seen) >= MAX_SPANS:
                    n_rejected += 1
                    continue
                self._seen.add(key)
                self._waiting.append(span)
            if n_rejected:
                self._gaps[f"the trial sent more than {MAX_SPANS:,} spans"] = None
        return n_rejected

    def _refused(self, received: HttpRequest, problem: str, status: int) -> Delivery:
        self._note(f"spans were sent that cannot be read: {problem}")
        return _refusal(status, problem, _type_of(received))

    def _without_package(self, received: HttpRequest) -> Taken:
        with self._lock:
            first, self._lacks_package = not self._lacks_package, True
            self._gaps[MISSING] = None
        return Taken(_refusal(400, MISSING, _type_of(received)), MISSING if first else "")

    def reject(self, problem: BadHttp) -> Delivery:
        """Refuse bytes that an exporter sent and that are no request."""
        if not is_grpc(str(problem)):  # who speaks gRPC has sent nothing yet
            self._note(f"spans were sent that cannot be read: {problem}")
        return _refusal(problem.status, str(problem), "")

    def begin_turn(self) -> None:
        """Note when a turn begins, and time the spans of this process from then on."""
        self._began_ns.append(time.time_ns())
        if self._watches_sdk and self._stopwatch is None and _SDK in sys.modules:
            from evalkit.gateway.flushing import start_stopwatch

            self._stopwatch = start_stopwatch()

    def restore(self, events: Iterable[Event], *, n_turns: int) -> None:
        """Go on with the numbers of a process that died; what it still held is lost."""
        self._began_ns = [0] * n_turns
        ids: set[str | None] = {None}
        n_calls = 0
        for event in events:
            if event.kind == "span":
                ids |= {event.span, event.data["parent_id"]}
            elif event.kind == "tool_call":
                n_calls += event.data.get("at") == "span"
        self._written = len(ids) - 1, n_calls

    def fetch(self, *, is_end: bool = False) -> bool:
        """Have this process's exporter send what it still holds; say if there is news.

        Call it where no lock is held: what is sent comes in through :meth:`take`.
        """
        if self._watches_sdk and self._began_ns and _SDK in sys.modules:
            from evalkit.gateway.flushing import flush

            problem = flush()
            self._note(problem)
        if is_end and self._stopwatch is not None and self._seen:
            lost = self._stopwatch.lost_tools(self._seen)
            self._note(f"spans that ended were never sent, of: {', '.join(lost)}" if lost else "")
        return bool(self._waiting or self._gaps)

    def _note(self, gap: str) -> None:
        """Note why spans may be missing, if they may."""
        if gap:
            with self._lock:
                self._gaps[gap] = None

    def write(self, record: Record, *, turn: int) -> None:
        """Write down what has come since the last time, as that of a turn or of one before."""
        from evalkit.gateway.span_events import SpanWriter, Turns

        with self._lock:
            spans, self._waiting = self._waiting, []
            gaps, self._gaps = list(self._gaps), {}
        if self._writer is None:
            self._writer = SpanWriter(self._stopwatch, written=self._written)
        self._writer.write(record, spans, turns=Turns(tuple(self._began_ns), turn))
        self._writer.tell_gaps(record, gaps)


def is_grpc(problem: str) -> bool:
    """Say whether bytes that are no HTTP/1.1 are a gRPC exporter's, which cannot be served here."""
    return _GRPC in problem


def _type_of(received: HttpRequest) -> str:
    return received.headers.get(b"content-type", b"").decode("latin-1")


def _accepted(content_type: str, *, n_rejected: int = 0) -> Delivery:
    """Answer with an ``ExportTraceServiceResponse``, in the encoding of the request."""
    said = f"a trial may send {MAX_SPANS:,} spans" if n_rejected else ""
    if _is_json(content_type):
        partial = {"rejectedSpans": str(n_rejected), "errorMessage": said}
        return Delivery(200, _headers(_JSON), to_bytes({"partialSuccess": partial} if said else {}))
    inner = b"\x08" + _varint(n_rejected) + _text_field(2, said)
    body = b"\x0a" + _varint(len(inner)) + inner if said else b""
    return Delivery(200, _headers(_PROTOBUF), body)


def _refusal(status: int, message: str, content_type: str) -> Delivery:
    """Answer with a ``google.rpc.Status``; no exporter tries again after a 4xx."""
    if _is_json(content_type):
        body = to_bytes({"code": _INVALID_ARGUMENT, "message": message})
        return Delivery(status, _headers(_JSON), body)
    code = b"\x08" + _varint(_INVALID_ARGUMENT)
    return Delivery(status, _headers(_PROTOBUF), code + _text_field(2, message))


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == _JSON


def _headers(kind: str) -> Mapping[str, str]:
    return {"content-type": kind}


def _text_field(number: int, text: str) -> bytes:
    content = text.encode("utf-8", "replace")
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Write a number as protobuf does, without its package, which may be what is missing."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
