"""Files of chat messages: the record around a conversation, the same for every vendor.

A file is JSON lines, one conversation a line, or JSON; a folder is read file by
file. A conversation stands in one of these shapes::

    {"scenario": "weather-only", "trial": 0, "tags": ["good"], "messages": [...]}
    {"scenario": "weather-only", "request": {...}, "response": {...}}
    [{"role": "user", ...}, ...]

Everything but the messages may be left out: the scenario is then the file's name,
with the number of the line or item where there are several; trials are counted.
``grades`` holds what somebody said of the trial: ``{"human": true}`` or
``[{"grader": "human", "value": 0.5, "reason": "rude"}]``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evalkit.errors import GraderError, TraceError
from evalkit.grade import Grade
from evalkit.importers.files import Document, documents, fingerprint
from evalkit.importers.recognition import recognise, refuse_other
from evalkit.importers.records import (
    Draft,
    Imported,
    ImportedTrial,
    Row,
    Trials,
    UnreadableRow,
    numbered,
)
from evalkit.messages.conversation import as_mapping
from evalkit.trace import Trace


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one vendor's messages become a trace."""

    format: str
    messages: Callable[[Mapping[str, Any] | list[Any]], Trace]
    exchange: Callable[[Mapping[str, Any], Mapping[str, Any]], Trace] | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """Under which keys a record names its scenario and its trial."""

    scenario: str
    trial: str


def read_conversations(vendor: Vendor, path: Path, keys: Keys) -> Imported:
    """Read the conversations under a path.

    Raises
    ------
    TraceError
        If the path cannot be read, or its first document is of another format.
    """

    def start() -> Iterator[ImportedTrial]:
        return numbered(_rows(path), lambda row: _draft(row, vendor, keys))

    first = next((document for document in documents(path) if not document.problem), None)
    if first is not None:
        refuse_other(first.value, format=vendor.format, where=first.where)
    source = {"format": vendor.format, **fingerprint(path)}
    return Imported(vendor.format, path, Trials(start), source=source)


def _rows(path: Path) -> Iterator[Row]:
    for document in documents(path):
        if document.problem or not _is_list_of_records(document.value):
            yield Row(document.where, document.scenario, document.value, document.problem)
        else:
            yield from _rows_of_list(document)


def _rows_of_list(document: Document) -> Iterator[Row]:
    for number, record in enumerate(document.value, start=1):
        where = f"{document.where}[{number - 1}]"
        yield Row(where, f"{document.scenario}-{number}", record)


def _is_list_of_records(value: Any) -> bool:
    """Tell a list of conversations from the list of messages that is one."""
    return isinstance(value, list) and any(
        isinstance(item, list) or (isinstance(item, Mapping) and not _BODIES.isdisjoint(item))
        for item in value
    )


_BODIES: Final = frozenset({"messages", "request", "response"})


def _draft(row: Row, vendor: Vendor, keys: Keys) -> Draft:
    if isinstance(row.value, list):
        return Draft(_trace(row.value, vendor))
    if not isinstance(row.value, Mapping):
        raise TraceError("a conversation is an object or a list of messages")
    record = row.value
    named = Draft(Trace(), scenario=_scenario(record, keys))
    try:
        _refuse_misspelt(record, keys)
        return Draft(
            _trace(record, vendor),
            scenario=named.scenario,
            trial=_trial(record, keys),
            grades=_grades(record.get("grades")),
            tags=_tags(record.get("tags")),
        )
    except (TraceError, GraderError) as error:
        raise UnreadableRow(str(error), named) from error


def _trace(value: Mapping[str, Any] | list[Any], vendor: Vendor) -> Trace:
    kind = recognise(value)
    if kind is not None:
        refuse_other(value, format=vendor.format, where="the record")
    trace = _read(value, vendor)
    if not trace.turns and not trace.tool_calls:
        raise TraceError("the conversation is empty: nobody says or does anything in it")
    return trace


def _read(value: Mapping[str, Any] | list[Any], vendor: Vendor) -> Trace:
    if not isinstance(value, Mapping) or "request" not in value:
        return vendor.messages(value)
    if vendor.exchange is None:
        raise TraceError(f"{vendor.format} has no pairs of request and response")
    response = as_mapping(value.get("response"), where="response")
    return vendor.exchange(as_mapping(value["request"], where="request"), response)


def _scenario(record: Mapping[str, Any], keys: Keys) -> str:
    """Give the scenario that a record names; half of a character pair is no name of a file."""
    value = record.get(keys.scenario)
    text = "" if value is None else str(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _trial(record: Mapping[str, Any], keys: Keys) -> int | None:
    value = record.get(keys.trial)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise TraceError(f"{keys.trial}: {value!r} is no number of a trial; write 0, 1, 2 ...")


def _tags(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return tuple(value)
    raise TraceError(f"tags: {value!r} is no list of words")


def _grades(value: Any) -> tuple[Grade, ...]:
    match value:
        case None:
            return ()
        case dict():
            return tuple(_grade(name, {"value": item}) for name, item in value.items())
        case [*items] if all(isinstance(item, Mapping) and "grader" in item for item in items):
            return tuple(_grade(item["grader"], item) for item in items)
    raise TraceError("grades: write {name: value} or [{grader: name, value: 1.0, reason: why}]")


def _grade(name: str, item: Mapping[str, Any]) -> Grade:
    value = item.get("value")
    if value is not None and not isinstance(value, bool | int | float):
        raise TraceError(f"grades: {name}: value {value!r} is no number in [0, 1]")
    reason = str(item.get("reason") or "")
    if value is None:
        return Grade.incomplete(name, reason or "the record has no value")
    return Grade(name, float(value), passed=item.get("passed"), reason=reason)


def _refuse_misspelt(record: Mapping[str, Any], keys: Keys) -> None:
    """Refuse a key that is nearly one that counts; what else a record holds is its own business."""
    known = (keys.scenario, keys.trial, "tags", "grades", "messages", "request", "response")
    for key in record:
        near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.8)
        if near and key not in known and near[0] not in record:
            raise TraceError(f"unknown key {key!r}; did you mean {near[0]!r}?")
