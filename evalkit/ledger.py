"""The ledger: everything that one trial did, as an append-only list of events.

A ledger is one JSONL file a trial. A line holds one :class:`Event`; what may
differ between two runs of the same thing - real times and durations - lies in
``real``, apart from what the digest covers. A file is written with one
unbuffered append an event, so ``kill -9`` can at most tear its last line; a
ledger without a ``trial_end`` event belongs to a trial that never finished.

What a trial *means* is read back by :mod:`evalkit.trace`; this module knows
only events, bytes and digests.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import orjson

from evalkit.errors import LedgerError

JSON: TypeAlias = Any
"""A JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, list or mapping of them."""

EventKind: TypeAlias = Literal[
    "trial_start", "turn", "model_call", "model_reply", "tool_call", "tool_result", "span",
    "reply", "state", "database", "file", "http", "log", "fault", "canary", "trial_end",
]  # fmt: skip
KINDS: Final[frozenset[str]] = frozenset(get_args(EventKind))

MAX_DEPTH: Final = 254
"""Lists and mappings inside each other that a value may have; orjson's own limit."""

_EXACT: Final = b" "
"""First byte of a line that only the exact (slower) JSON reader may decode."""

_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
)
"""Both encoders must agree about what JSON has no word for, so :func:`_as_json` decides."""


_NOTHING: Final[Mapping[str, JSON]] = {}


class Event(NamedTuple):
    """One thing that happened in a trial; a named tuple, because a run makes very many."""

    seq: int
    """Position in the trial, from 1."""
    kind: EventKind
    data: Mapping[str, JSON] = _NOTHING
    span: str = ""
    """Id of the span (a model call, a tool call, a turn) that the event belongs to."""
    parent: str = ""
    """Id of the enclosing span; empty at the root."""
    real: Mapping[str, JSON] = _NOTHING
    """Real times and durations: recorded, but in no digest."""


def encode(value: JSON) -> bytes:
    r"""Encode one JSON value as one line, without its newline, losing nothing.

    Integers of any size, lone surrogates, ``NaN`` and infinities survive (the
    latter as Python's ``json`` writes them). What JSON cannot hold (a
    ``datetime``, an object of the agent's) becomes its text. Keys are sorted.

    Raises
    ------
    LedgerError
        If the value is nested deeper than :data:`MAX_DEPTH`, or contains itself,
        or an integer too long for Python to write.

    Examples
    --------
    >>> encode({"b": 1, "a": "\ud800"})
    b' {"a":"\\ud800","b":1}'
    >>> decode(encode([2**70, float("inf")])) == [2**70, float("inf")]
    True
    """
    try:
        line = orjson.dumps(value, default=_as_json, option=_OPTIONS)
    except (TypeError, RecursionError):
        return _encode_exactly(value)
    # orjson turns NaN and infinities into null without a word.
    if b"null" in line and _has_non_finite(value):
        return _encode_exactly(value)
    return line


def decode(line: bytes) -> JSON:
    """Decode a line that :func:`encode` wrote.

    Raises
    ------
    ValueError
        If it is no JSON, or nested too deeply.
    """
    if line[:1] != _EXACT:
        return orjson.loads(line)
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _encode_exactly(value: JSON) -> bytes:
    """Encode what orjson refuses: huge integers, lone surrogates, keys that are no strings."""
    try:
        plain = _plain(value, MAX_DEPTH)
        text = json.dumps(plain, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    except ValueError as error:  # an integer of more digits than Python writes
        raise LedgerError(f"cannot be written as JSON: {error}") from error
    return _EXACT + text.encode("ascii")


def _plain(value: JSON, depth: int) -> JSON:
    """Turn a value into what JSON has words for, with keys that are strings and sort."""
    if value is None or isinstance(value, str | int | float):
        return value
    if depth == 0:
        raise LedgerError(f"cannot be written as JSON: nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {str(key): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    return _plain(_as_json(value), depth - 1)


# Tuples, because `str | int` would be built anew at each of very many calls.
_FINITE: Final = (str, int, type(None))
_LISTS: Final = (list, tuple)


def _has_non_finite(value: JSON) -> bool:
    """Say whether a value that orjson has encoded holds a ``NaN`` or an infinity."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, _FINITE):
            continue
        if isinstance(one, float):
            if not math.isfinite(one):
                return True
        elif isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, _LISTS):
            pending.extend(one)
        else:
            pending.append(_as_json(one))
    return False


def _as_json(value: object) -> JSON:
    """Give something nearer to JSON for what JSON has no word for."""
    match value:
        case Mapping():
            return dict(value)
        case float():  # a subclass, such as numpy's
            return float(value)
        case set() | frozenset():
            return sorted(map(str, value))
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case date() | time():
            return value.isoformat()
        case Enum():
            return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def event_line(event: Event) -> bytes:
    """Encode one event as a ledger line, newline included."""
    record = _content(event)
    if event.real:
        record["real"] = event.real
    return encode(record) + b"\n"


def _content(event: Event) -> dict[str, JSON]:
    """Give an event as a JSON object, real times apart."""
    content: dict[str, JSON] = {"seq": event.seq, "kind": event.kind, "data": event.data}
    if event.span:
        content["span"] = event.span
    if event.parent:
        content["parent"] = event.parent
    return content


def parse_event(line: bytes) -> Event:
    """Decode one ledger line.

    Raises
    ------
    ValueError
        If the line is no JSON object of an event, or of a kind that this
        version does not know.
    """
    record = decode(line)
    if not isinstance(record, dict) or record.get("kind") not in KINDS:
        raise ValueError(f"not an event of a ledger: {line[:80]!r}")
    event = Event(
        int(record["seq"]),
        record["kind"],
        record["data"],
        record.get("span", ""),
        record.get("parent", ""),
        record.get("real", _NOTHING),
    )
    if not (isinstance(event.data, dict) and isinstance(event.real, dict)):
        raise ValueError("`data` and `real` of an event must be objects")
    return event


def parse_events(content: bytes, *, where: str = "ledger") -> tuple[Event, ...]:
    """Decode a whole ledger; a torn last line is dropped.

    Raises
    ------
    LedgerError
        If any line but a torn last one is broken.
    """
    return tuple(_parse_lines(content, where))


def _parse_lines(content: bytes, where: str) -> Iterator[Event]:
    # A last line without its newline was being written when the process died.
    *whole, _torn = content.split(b"\n")
    for number, line in enumerate(whole, start=1):
        try:
            yield parse_event(line)
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError(f"{where}:{number}: broken ledger line: {error}") from error


def read_events(path: Path) -> tuple[Event, ...]:
    """Read a ledger file, ``.partial`` or whole.

    Raises
    ------
    LedgerError
        If the file is missing or broken.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"{path}: cannot read the ledger: {error.strerror}") from error
    return parse_events(content, where=str(path))


def digest(events: Iterable[Event]) -> str:
    """Hash what happened, leaving out real times.

    Returns
    -------
    str
        ``sha256`` in hex over the canonical lines of all events.
    """
    sha = hashlib.sha256()
    for event in events:
        sha.update(encode(_content(event)) + b"\n")
    return sha.hexdigest()


def combined_digest(digests: Iterable[str]) -> str:
    """Hash the digests of several trials or runs, in the order given."""
    text = "\n".join(digests)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class LedgerFile:
    """One ledger being written: ``.partial`` until :meth:`close` is told that it is whole.

    Parameters
    ----------
    path
        Final name; the folder must exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partial = Path(f"{path}.partial")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(self.partial, flags, 0o600)

    def append(self, lines: bytes) -> None:
        """Append whole lines with one write; returns once the kernel has them."""
        view = memoryview(lines)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def close(self, *, whole: bool = True) -> None:
        """Close the file; give it its final name if it is whole."""
        os.close(self._descriptor)
        if whole:
            os.replace(self.partial, self.path)  # noqa: PTH105 - half the time of Path.replace
