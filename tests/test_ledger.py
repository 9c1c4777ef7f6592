"""Events, their lines, their digest, and the file that they are written to."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import LedgerError
from evalkit.ledger import (
    KINDS,
    MAX_DEPTH,
    Event,
    LedgerFile,
    combined_digest,
    decode,
    digest,
    encode,
    event_line,
    parse_event,
    parse_events,
    read_events,
)

anything = st.characters()  # lone surrogates, NUL and control characters too
texts = st.text(anything, max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
big = st.integers(min_value=-(2**80), max_value=2**80)
values = st.recursive(
    scalars | big,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
objects = st.dictionaries(texts, values, max_size=4)
events = st.builds(
    Event,
    seq=st.integers(1, 1000),
    kind=st.sampled_from(sorted(KINDS)),
    data=objects,
    span=texts,
    parent=texts,
    real=objects,
)


def exactly(value: Any) -> str:
    """Tell 1 from 1.0 and from True, and -0.0 from 0.0, which == does not."""
    return repr(sorted_keys(value))


def sorted_keys(value: Any) -> Any:
    """Bring the keys of every mapping into one order."""
    if isinstance(value, dict):
        return [(key, sorted_keys(value[key])) for key in sorted(value)]
    return list(map(sorted_keys, value)) if isinstance(value, list) else value


def nested(depth: int, leaf: Any) -> Any:
    """Put a value into so many lists."""
    for _ in range(depth):
        leaf = [leaf]
    return leaf


@settings(deadline=None)
@given(values)
def test_encode_round_trip_loses_nothing(value: Any) -> None:
    """Whatever JSON can hold comes back the same, types and signs included."""
    line = encode(value)
    assert exactly(decode(line)) == exactly(value)
    assert b"\n" not in line
    assert encode(decode(line)) == line


@pytest.mark.parametrize(
    "value",
    [2**63, 2**64, -(2**63) - 1, 10**400, -0.0, "\ud800", "\x00\x1f\x7f", "\u2028", "", 5e-324],
    ids=repr,
)
def test_encode_keeps_what_other_writers_lose(value: Any) -> None:
    """Integers beyond 64 bits, lone surrogates, NUL and a negative zero survive, nested or not."""
    assert exactly(decode(encode(value))) == exactly(value)
    assert exactly(decode(encode({"a": [value]}))) == exactly({"a": [value]})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")], ids=repr)
def test_encode_never_turns_a_number_into_null(value: float) -> None:
    """NaN and infinities are no unknowns: they come back as they were, at any depth."""
    back = decode(encode({"a": [None, (1, {"b": value})]}))
    assert back["a"][0] is None
    assert repr(back["a"][1][1]["b"]) == repr(float(value))


@pytest.mark.parametrize("leaf", [1, "\ud800"], ids=["fast", "exact"])
def test_encode_refuses_what_is_nested_too_deeply(leaf: Any) -> None:
    """The limit is the same on both ways to encode, and what is written can be read."""
    assert decode(encode(nested(MAX_DEPTH, leaf))) == nested(MAX_DEPTH, leaf)
    with pytest.raises(LedgerError, match=f"more than {MAX_DEPTH} levels deep"):
        encode(nested(MAX_DEPTH + 1, leaf))
    with pytest.raises(LedgerError, match="levels deep"):
        encode(nested(100_000, leaf))


def test_encode_refuses_a_value_that_contains_itself() -> None:
    """A circle is an error with a sentence, not an endless loop."""
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(LedgerError, match="levels deep"):
        encode({"args": circle})


def test_encode_refuses_a_number_too_long_to_write() -> None:
    """Python does not write integers of more than 4,300 digits; the error says so."""
    with pytest.raises(LedgerError, match=r"cannot be written as JSON: .*4300"):
        encode({"n": 10**5000})


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    y: int
    x: float


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (datetime(2026, 1, 5, 9, tzinfo=UTC), "2026-01-05T09:00:00+00:00"),
        (date(2026, 1, 5), "2026-01-05"),
        (Colour.RED, "red"),
        (Point(2, 1.5), {"x": 1.5, "y": 2}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ((1, 2), [1, 2]),
        ({"b", "a"}, ["a", "b"]),
        (b"caf\xe9", "caf\\xe9"),
        (np.float64(0.1), 0.1),
        (np.int64(7), 7),
        (np.bool_(False), False),
        (np.array([[1, 2]]), [[1, 2]]),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        (Path("a"), "a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_encode_gives_foreign_objects_one_meaning(value: Any, told: Any) -> None:
    """What JSON has no word for is told the same way on the fast and on the exact path."""
    assert exactly(decode(encode(value))) == exactly(told)
    assert exactly(decode(encode([value, 2**70]))) == exactly([told, 2**70])


@settings(deadline=None)
@given(events)
def test_event_line_round_trip(event: Event) -> None:
    """An event comes back from its line as it was."""
    line = event_line(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    back = parse_event(line[:-1])
    assert exactly(back._asdict()) == exactly(event._asdict())


@settings(deadline=None)
@given(event=events, other=objects, reals=objects)
def test_digest_ignores_real_and_nothing_else(event: Event, other: Any, reals: Any) -> None:
    """Two runs of the same thing differ in real times only; any other change shows."""
    before = digest([event])
    assert digest([event._replace(real=reals)]) == before
    changed = [
        event._replace(seq=event.seq + 1),
        event._replace(kind="log" if event.kind != "log" else "turn"),
        event._replace(span=event.span + "x"),
        event._replace(parent=event.parent + "x"),
        event._replace(data={**event.data, "": [other]}),
    ]
    if exactly({**event.data, "": [other]}) != exactly(event.data):
        assert before not in {digest([each]) for each in changed}
    assert digest([event, event]) != before


def test_digest_of_memory_is_the_digest_of_the_file() -> None:
    """Tuples, dataclasses and texts of objects do not make a ledger differ from itself."""
    made = [Event(1, "log", {"b": (1, Point(2, math.nan)), "a": datetime(2026, 1, 5, tzinfo=UTC)})]
    assert digest(parse_events(b"".join(map(event_line, made)))) == digest(made)


def test_combined_digest_takes_any_id_and_keeps_the_order() -> None:
    """Digests of a run cover its trials in order, whatever their ids are made of."""
    assert combined_digest(["\ud800.0 a", "b"]) != combined_digest(["b", "\ud800.0 a"])


def lines_of(n: int) -> bytes:
    """Give a ledger of n events."""
    return b"".join(event_line(Event(seq, "log", {"text": "x" * seq})) for seq in range(1, n + 1))


@given(cut=st.integers(min_value=0, max_value=len(lines_of(4))))
def test_parse_events_drops_a_torn_last_line_only(cut: int) -> None:
    """Wherever a dying process stopped, the events written before are there."""
    content = lines_of(4)[:cut]
    found = parse_events(content)
    assert [event.seq for event in found] == list(range(1, content.count(b"\n") + 1))


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"",
        b"[]",
        b"null",
        b'{"seq":2,"kind":"dance","data":{}}',
        b'{"kind":"log","data":{}}',
        b'{"seq":"two","kind":"log","data":{}}',
        b'{"seq":2,"kind":"log"}',
        b'{"seq":2,"kind":"log","data":[]}',
        b'{"seq":2,"kind":["log"],"data":{}}',
        b'{"seq":2,"kind":"log","data":{},"real":1}',
        b"\xff\xfe",
        b" " + b"[" * 100_000,
        b"[" * 100_000,
    ],
    ids=lambda line: repr(line[:24]),
)
def test_a_broken_line_in_the_middle_names_file_and_line(tmp_path: Path, broken: bytes) -> None:
    """A ledger that was tampered with is not read halfway: the error says where."""
    path = tmp_path / "a.0.jsonl"
    whole = lines_of(2).split(b"\n")
    path.write_bytes(b"\n".join([whole[0], broken, whole[1], b""]))
    with pytest.raises(LedgerError, match=r"a\.0\.jsonl:2: broken ledger line"):
        read_events(path)


def test_a_missing_ledger_is_named(tmp_path: Path) -> None:
    """The error says which file and why."""
    with pytest.raises(LedgerError, match=r"x\.jsonl: cannot read the ledger: No such file"):
        read_events(tmp_path / "x.jsonl")


def test_ledger_file_is_partial_until_it_is_whole(tmp_path: Path) -> None:
    """A ledger gets its name only when it is complete, and replaces an older one."""
    path = tmp_path / "a.0.jsonl"
    path.write_bytes(b"old")
    file = LedgerFile(path)
    file.append(lines_of(2))
    assert path.read_bytes() == b"old"
    assert len(read_events(file.partial)) == 2
    file.close()
    assert path.read_bytes() == lines_of(2)
    assert not file.partial.exists()


def test_ledger_file_that_is_not_whole_stays_partial(tmp_path: Path) -> None:
    """What was begun can be looked at, but is not taken for a trial."""
    file = LedgerFile(tmp_path / "a.0.jsonl")
    file.append(lines_of(1))
    file.close(whole=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.0.jsonl.partial"]


WRITER = """
    import os, sys
    from pathlib import Path
    from evalkit.ledger import Event, LedgerFile, event_line
    file = LedgerFile(Path(sys.argv[1]))
    for seq in range(1, 1_000_000):
        file.append(event_line(Event(seq, "log", {"text": "x" * (seq % 999)})))
        os.write(1, b"%d\\n" % seq)  # acknowledged
"""


def test_kill_9_loses_no_acknowledged_event(tmp_path: Path) -> None:
    """Each event that the writer saw written is in the file after a SIGKILL at any moment."""
    path = tmp_path / "a.0.jsonl"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        acknowledged = 0
        while acknowledged < 500:
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        for line in process.stdout:
            acknowledged = int(line)
    found = read_events(path.with_name(path.name + ".partial"))
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    assert len(found) >= acknowledged


FULL = """
    import resource, signal, sys
    from pathlib import Path
    from evalkit.ledger import Event, LedgerFile, event_line
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    file = LedgerFile(Path(sys.argv[1]))
    for seq in range(1, 100):
        try:
            file.append(event_line(Event(seq, "log", {"text": "x" * 60})))
        except OSError as error:
            print(seq - 1, error.errno)
            break
"""


def test_a_full_disk_is_an_error_and_keeps_what_was_written(tmp_path: Path) -> None:
    """A short write is not taken for a whole one; the events before it can be read."""
    path = tmp_path / "a.0.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    n_written, number = map(int, done.stdout.split())
    assert number == errno.EFBIG
    assert len(read_events(path.with_name(path.name + ".partial"))) == n_written > 1


def test_a_ledger_is_private_to_its_user(tmp_path: Path) -> None:
    """Raw text of agents and users is readable by its owner only."""
    file = LedgerFile(tmp_path / "a.0.jsonl")
    file.close()
    assert os.stat(file.path).st_mode & 0o077 == 0  # noqa: PTH116 - the mode is what counts


def test_ordinary_lines_are_plain_json() -> None:
    """Other tools can read a ledger with any JSON reader."""
    assert json.loads(lines_of(1)) == {"seq": 1, "kind": "log", "data": {"text": "x"}}
