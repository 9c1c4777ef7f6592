"""OpenTelemetry spans: one trace (by trace id) is one trial.

Prompts repeat what was said before, so calls of an earlier trace that stand in a
prompt count here too: the trial is what a reader of this one trace can see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from evalkit.errors import TraceError
from evalkit.importers.files import Document, documents, fingerprint
from evalkit.importers.otel.assembling import trace_of_spans
from evalkit.importers.recognition import refuse_other
from evalkit.importers.records import Draft, Imported, ImportedTrial, Row, Trials, numbered
from evalkit.messages.conversation import first_of
from evalkit.spans.exported import RawSpan, spans_of


def read_otel(path: Path, *, scenario_key: str = "evalkit.scenario") -> Imported:
    """Read traces out of OTLP JSON, or out of a dump of spans.

    Parameters
    ----------
    path
        OTLP JSON, JSON lines of it (as the collector's file exporter writes), a
        list of spans (JavaScript, Python, Phoenix), or a folder of such files.
        One trace may be spread over lines and files.
    scenario_key
        Attribute of a span or of the resource that names the scenario. Where
        there is none, a trace is named after its file, with the beginning of its
        trace id where the file holds several.

    Raises
    ------
    TraceError
        If the file cannot be read or is of another format.
    """
    rows = _rows(path, scenario_key)

    def start() -> Iterator[ImportedTrial]:
        return numbered(iter(rows), _draft)

    source = {"format": "otel", **fingerprint(path)}
    return Imported("otel", path, Trials(start), source=source)


def _rows(path: Path, scenario_key: str) -> list[Row]:
    """Gather spans by trace; what cannot be read is a row of its own."""
    traces: dict[str, list[RawSpan]] = {}
    homes: dict[str, Document] = {}
    broken: list[Row] = []
    for document in documents(path):
        try:
            found = _spans(document)
        except TraceError as error:
            broken.append(Row(document.where, document.scenario, problem=str(error)))
            continue
        for span in found:
            traces.setdefault(span.trace_id, []).append(span)
            homes.setdefault(span.trace_id, document)
    if not traces:
        nothing = f"{path}: an OpenTelemetry export without a single span"
        raise TraceError(broken[0].problem if broken else nothing)
    counts = _traces_per_file(homes.values())
    named = [
        _row(homes[key], spans, scenario_key, is_only=counts[homes[key].path] == 1)
        for key, spans in traces.items()
    ]
    return [*named, *broken]


def _spans(document: Document) -> list[RawSpan]:
    if document.problem:
        raise TraceError(document.problem)
    refuse_other(document.value, format="otel", where=document.where)
    return list(spans_of(document.value))


def _traces_per_file(homes: Iterable[Document]) -> dict[Path, int]:
    counts: dict[Path, int] = {}
    for document in homes:
        counts[document.path] = counts.get(document.path, 0) + 1
    return counts


def _row(home: Document, spans: list[RawSpan], scenario_key: str, *, is_only: bool) -> Row:
    named = [
        first_of(span.attributes, scenario_key) or first_of(span.resource, scenario_key)
        for span in spans
    ]
    default = home.path.name.split(".json")[0]
    if not is_only:
        default = f"{default}-{spans[0].trace_id[:8]}"
    scenario = next((_printable(name) for name in named if name), default)
    return Row(f"{home.where} (trace {spans[0].trace_id})", scenario, spans)


def _printable(name: object) -> str:
    return str(name).encode("utf-8", "backslashreplace").decode()


def _draft(row: Row) -> Draft:
    return Draft(trace_of_spans(row.value, metadata={"trace_id": row.value[0].trace_id}))
