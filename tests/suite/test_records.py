"""Older golden-set records, from memory and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import SuiteError
from evalkit.suite import CallExpect, ForbiddenCall, suite_from_records

RECORDS: list[dict[str, Any]] = [
    {
        "task_id": "weather-gate-book",
        "input": "Book flight AA123 for Friday, but only if it isn't raining in Denver.",
        "expect_tools": [
            {"name": "get_weather", "args": {"city": "Denver"}},
            {"tool": "book", "args": {"flight_id": "AA123", "date": "Friday"}},
        ],
        "forbid_tools": [],
        "success_contains": "booked",
    },
    {
        "task_id": "weather-only",
        "input": "What's the weather\nin Denver, today?",
        "expect_tools": ["get_weather"],
        "forbid_tools": ["book", "search"],
        "success_contains": ["denver", "°F"],
    },
    {"task_id": 7, "input": "Hi", "expect_tools": [], "forbid_tools": [], "success_contains": ""},
]


def write(folder: Path, kind: str) -> Path:
    """Write the records as one kind of file."""
    path = folder / f"golden.{kind}"
    if kind == "json":
        path.write_text(json.dumps(RECORDS, indent=1))
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(record) for record in RECORDS) + "\n\n")
    else:
        path.write_text(csv_text())
    return path


def csv_text() -> str:
    """Write the records as CSV."""

    def cell(value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return '"' + text.replace('"', '""') + '"'

    rows = [",".join(cell(record[key]) for key in RECORDS[0]) for record in RECORDS]
    return "\ufeff" + "\r\n".join([",".join(RECORDS[0]), *rows])


@pytest.mark.parametrize("kind", ["memory", "json", "jsonl", "csv"])
def test_records_load_from_every_source(tmp_path: Path, kind: str) -> None:
    """The same records are the same scenarios, wherever they come from."""
    suite = suite_from_records(RECORDS if kind == "memory" else write(tmp_path, kind))
    assert suite.name == ("records" if kind == "memory" else "golden")
    assert [one.hash for one in suite] == [one.hash for one in suite_from_records(RECORDS)]
    first, second, third = suite
    assert first.shape == "record"
    assert first.expect is not None
    assert first.expect.tools is not None
    assert first.expect.tools.calls == (
        CallExpect(tool="get_weather", args={"city": "Denver"}),
        CallExpect(tool="book", args={"flight_id": "AA123", "date": "Friday"}),
    )
    assert first.forbid is None
    assert second.input == "What's the weather\nin Denver, today?"
    assert second.forbid is not None
    assert second.forbid.tools == (ForbiddenCall(tool="book"), ForbiddenCall(tool="search"))
    assert second.expect is not None
    assert second.expect.reply is not None
    assert second.expect.reply.contains == ("denver", "°F")
    assert third.id == "7"
    assert third.expect is None


def record(**keys: Any) -> dict[str, Any]:
    """Give a record with some keys changed."""
    return {"task_id": "a", "input": "x"} | keys


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "records: holds no records"),
        ([5], "records[0]: a record is a mapping"),
        (
            [record(expected_tools=[])],
            "records[0].expected_tools: unknown key. Did you mean `expect_tools`?",
        ),
        ([{"input": "x"}], "records[0]: `task_id` is missing"),
        ([{"task_id": "a"}], "records[0]: `input` is missing"),
        ([record(), record()], "records[1].task_id: 'a' is the id of records[0]"),
        ([record(task_id="a/b")], "records[0].task_id: is also a file name"),
        ([record(input=5)], 'records[0].input: must be text, not 5: quote it, "5"'),
        ([record(expect_tools="book")], 'records[0].expect_tools: must be a list, not "book"'),
        (
            [record(expect_tools=[{"name": "b", "arg": {}}])],
            "records[0].expect_tools[0].arg: unknown key. Did you mean `args`?",
        ),
        (
            [record(expect_tools=[{"name": "b", "args": 3}])],
            "records[0].expect_tools[0].args: must be a mapping",
        ),
        (
            [record(expect_tools=["b"], forbid_tools=["b"])],
            "records[0].expect_tools[0]: `b` is expected here and forbidden",
        ),
        ([record(success_contains=[1])], "records[0].success_contains[0]: must be text"),
    ],
)
def test_record_is_refused_with_place_and_reason(records: list[Any], words: str) -> None:
    """What is wrong with a record names the record, its own key and what would be right."""
    with pytest.raises(SuiteError) as caught:
        suite_from_records(records)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("g.jsonl", '{"task_id": "a", "input": "x"}\n{"task_id"\n', "g.jsonl:2: is no JSON"),
        ("g.jsonl", '\n{"task_id": "a", "input": NaN}\n', "g.jsonl:2: is no JSON: NaN"),
        ("g.jsonl", '{"task_id": "a", "task_id": "b", "input": "x"}', "'task_id' is given twice"),
        ("g.jsonl", "", "holds no records"),
        ("g.json", '{"task_id": "a"}', "g.json:1: must be a list of records"),
        ("g.json", "[" * 100_000, "nested too deeply"),
        ("g.csv", "task_id,input\na,x,y\n", "g.csv:2: has 3 cells, the header has 2"),
        ("g.csv", 'task_id,input\n"a\nb",x\nc,\n', "g.csv:4: records[1]: `input` is missing"),
        ("g.csv", "task_id,input,expect_tools\na,x,book\n", "g.csv:2: expect_tools: is no JSON"),
        ("g.csv", "task_id,task_id,input\na,b,c\n", "columns are given twice: task_id"),
        ("g.csv", 'task_id,input\na,"x\n', "g.csv:2: is no CSV"),
        ("g.txt", "x", "records are read from .jsonl, .json, .csv files"),
        ("g x.jsonl", '{"task_id": "a", "input": "x"}', "name: is also a file name"),
    ],
)
def test_record_file_is_refused_with_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    """What is wrong with a file of records is told with its line."""
    (tmp_path / name).write_text(text)
    with pytest.raises(SuiteError) as caught:
        suite_from_records(tmp_path / name)
    assert words in str(caught.value)


def test_record_file_must_exist_and_be_utf8(tmp_path: Path) -> None:
    """A missing file and another encoding give a sentence."""
    with pytest.raises(SuiteError, match="no such file"):
        suite_from_records(tmp_path / "no.csv")
    (tmp_path / "g.csv").write_bytes(b"task_id,input\na,\xe9\n")
    with pytest.raises(SuiteError, match="save the file as UTF-8"):
        suite_from_records(tmp_path / "g.csv")
