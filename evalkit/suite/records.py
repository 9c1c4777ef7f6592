"""Records in the older golden-set shape, as a suite.

A record has ``task_id``, ``input``, ``expect_tools`` (names, ``{name, args}`` or
``{tool, args}``), ``forbid_tools`` (names) and ``success_contains`` (a text or a list).
An empty ``expect_tools`` requires nothing here, unlike ``tools: []`` in a suite file.
Records come from a list in memory, or from a JSONL, JSON or CSV file; the cells of
a CSV file hold JSON, those of ``task_id``, ``input`` and ``success_contains`` may be plain text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from evalkit.errors import Problem, SuiteError
from evalkit.suite.checks import scenario_problems
from evalkit.suite.fields import KeyPath, suggestion
from evalkit.suite.hashing import with_hashes
from evalkit.suite.models import Scenario, Suite
from evalkit.suite.problems import sentences, shown, written_path
from evalkit.suite.yaml_reader import show_path

RECORD_KEYS = ("task_id", "input", "expect_tools", "forbid_tools", "success_contains")
_MAX_BYTES = 100_000_000
_PLAIN_CELLS = ("task_id", "input", "success_contains")
_WRITTEN_KEYS: Mapping[KeyPath, str] = {
    ("id",): "task_id",
    ("turns", 0, "user"): "input",
    ("expect", "tools", "calls"): "expect_tools",
    ("expect", "reply", "contains"): "success_contains",
    ("forbid", "tools"): "forbid_tools",
}


class _Row(NamedTuple):
    """One record and the line where it begins."""

    record: Any
    line: int | None


def suite_from_records(
    records: str | Path | Iterable[Mapping[str, Any]], *, name: str | None = None
) -> Suite:
    """Make a suite of records in the older golden-set shape.

    Parameters
    ----------
    records
        Mappings, or the path of a ``.jsonl``, ``.json`` or ``.csv`` file.
    name
        Name of the suite; by default the file's name without its ending, or ``records``.

    Raises
    ------
    SuiteError
        With every problem that was found, with lines where there is a file.

    Examples
    --------
    >>> suite = suite_from_records(
    ...     [{"task_id": "t1", "input": "Book AA1", "expect_tools": [{"name": "book", "args": {}}]}]
    ... )
    >>> suite.scenario("t1").expect.tools.calls[0].tool
    'book'
    """
    problems: list[Problem] = []
    if isinstance(records, str | Path):
        path, where = Path(records), str(records)
        rows = _read_rows(path, problems)
    else:
        path, where = None, "records"
        rows = [_Row(record, None) for record in records]
    scenarios = _scenarios(rows, problems, where=where)
    if not rows and not problems:
        problems.append(Problem(where, None, "", "holds no records: a suite needs at least one"))
    suite = _suite(name or (path.stem if path else "records"), scenarios, problems, where=where)
    if problems or suite is None:
        raise SuiteError(sorted(problems, key=lambda problem: problem.line or 0))
    return with_hashes(suite.model_copy(update={"path": path}), None)


def _suite(
    name: str, scenarios: list[Scenario], problems: list[Problem], *, where: str
) -> Suite | None:
    stand_in = Scenario.model_construct(id="stand-in", turns=())
    try:
        return Suite(suite=name, scenarios=tuple(scenarios) or (stand_in,))
    except ValidationError as error:
        problems += [Problem(where, None, "name", message) for _, message in sentences(error)]
    return None


def _scenarios(rows: Iterable[_Row], problems: list[Problem], *, where: str) -> list[Scenario]:
    scenarios = []
    seen: dict[str, int] = {}
    for index, row in enumerate(rows):
        found: list[tuple[KeyPath, str]] = []
        scenario = _scenario(row.record, found)
        if scenario is not None:
            first = seen.setdefault(scenario.id.casefold(), index)
            if first != index:
                message = f"{scenario.id!r} is the id of records[{first}]: rename one"
                found.append((("task_id",), message))
            scenarios.append(scenario)
        problems += [
            Problem(where, row.line, show_path((f"records[{index}]", *place)), message)
            for place, message in found
        ]
    return scenarios


def _scenario(record: Any, found: list[tuple[KeyPath, str]]) -> Scenario | None:
    """Build the scenario of one record, or note what is wrong with it."""
    if not isinstance(record, Mapping):
        found.append(
            ((), f"a record is a mapping with {', '.join(RECORD_KEYS)}, not {shown(record)}")
        )
        return None
    found += _key_problems(record)
    if found:
        return None
    context: dict[str, Any] = {"authored": True, "known_keys": {}}
    try:
        scenario = Scenario.model_validate(_as_scenario(record), context=context)
    except ValidationError as error:
        found += [
            (_record_place(place, record), message)
            for place, message in sentences(error, context["known_keys"])
        ]
        return None
    scenario = scenario.model_copy(update={"shape": "record"})
    found += [(_record_place(place, record), text) for place, text in scenario_problems(scenario)]
    return scenario


def _key_problems(record: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for key in record:
        if key not in RECORD_KEYS:
            hint = suggestion(key, RECORD_KEYS) or f" There is {', '.join(RECORD_KEYS)}."
            yield (str(key),), f"unknown key.{hint}"
    for key in ("task_id", "input"):
        if record.get(key) is None:
            yield (), f"`{key}` is missing"
    for key in ("expect_tools", "forbid_tools"):
        if not isinstance(record.get(key) or [], list | tuple):
            yield (key,), f"must be a list, not {shown(record[key])}"


def _as_scenario(record: Mapping[str, Any]) -> dict[str, Any]:
    """Write a record as a scenario of a suite file."""
    expect: dict[str, Any] = {}
    if record.get("expect_tools"):
        expect["tools"] = [_as_call(call) for call in record["expect_tools"]]
    if record.get("success_contains"):
        expect["reply"] = {"contains": record["success_contains"]}
    task_id = record["task_id"]
    is_number = isinstance(task_id, int) and not isinstance(task_id, bool)
    scenario = {"id": str(task_id) if is_number else task_id, "input": record["input"]}
    if expect:
        scenario["expect"] = expect
    if record.get("forbid_tools"):
        scenario["forbid"] = {"tools": list(record["forbid_tools"])}
    return scenario


def _as_call(call: Any) -> Any:
    if isinstance(call, Mapping) and "name" in call and "tool" not in call:
        return {
            "tool": call["name"],
            **{key: value for key, value in call.items() if key != "name"},
        }
    return call


def _record_place(place: KeyPath, record: Mapping[str, Any]) -> KeyPath:
    """Find a place of the scenario again in the record."""
    for prefix, key in _WRITTEN_KEYS.items():
        if place[: len(prefix)] == prefix:
            return (key, *written_path(place[len(prefix) :], record.get(key)))
    return ()


def _read_rows(path: Path, problems: list[Problem]) -> list[_Row]:
    readers = {".jsonl": _jsonl_rows, ".json": _json_rows, ".csv": _csv_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        message = f"records are read from {', '.join(readers)} files, not from {path.name!r}"
        raise SuiteError([Problem(str(path), None, "", message)])
    rows = []
    for row in reader(_read_text(path)):
        if isinstance(row.record, _Unreadable):
            problems.append(Problem(str(path), row.line, row.record.key, row.record.message))
        else:
            rows.append(row)
    return rows


class _Unreadable(NamedTuple):
    """Stands for a record that could not be read."""

    key: str
    message: str


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():
            reason = "there is no such file" if not path.exists() else "is no regular file"
        elif path.stat().st_size > _MAX_BYTES:
            reason = f"is larger than {_MAX_BYTES:,} bytes: split it"
        else:
            return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is no UTF-8: save the file as UTF-8"
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    raise SuiteError([Problem(str(path), None, "", reason)])


def _jsonl_rows(text: str) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _Row(_parsed(line), number)


def _json_rows(text: str) -> Iterator[_Row]:
    data = _parsed(text)
    if isinstance(data, _Unreadable):
        yield _Row(data, 1)
    elif not isinstance(data, list):
        yield _Row(_Unreadable("", f"must be a list of records, not {shown(data)}"), 1)
    else:
        yield from (_Row(record, None) for record in data)


def _csv_rows(text: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        header = [name.strip() for name in next(reader, [])]
        repeated = {name for name in header if header.count(name) > 1}
        if repeated:
            yield _Row(_Unreadable("", f"columns are given twice: {', '.join(repeated)}"), 1)
            return
        line = reader.line_num + 1
        for cells in reader:
            if cells:
                yield _Row(_csv_record(header, cells), line)
            line = reader.line_num + 1
    except csv.Error as error:
        yield _Row(_Unreadable("", f"is no CSV: {error}"), line)


def _csv_record(header: list[str], cells: list[str]) -> Any:
    if len(cells) != len(header):
        return _Unreadable("", f"has {len(cells)} cells, the header has {len(header)}")
    record: dict[str, Any] = {}
    for key, cell in zip(header, cells, strict=True):
        value = _cell(key, cell)
        if isinstance(value, _Unreadable):
            return value
        if value is not None:
            record[key] = value
    return record


def _cell(key: str, cell: str) -> Any:
    """Read one cell; an empty one is absent."""
    if not cell.strip():
        return None
    if key in _PLAIN_CELLS and not (key == "success_contains" and cell.lstrip().startswith("[")):
        return cell
    value = _parsed(cell)
    return value._replace(key=key) if isinstance(value, _Unreadable) else value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except RecursionError:
        return _Unreadable("", "is nested too deeply")
    except ValueError as error:
        return _Unreadable("", f"is no JSON: {error}")


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse keys that are given twice."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return record
