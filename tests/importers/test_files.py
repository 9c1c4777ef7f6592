"""Reading files: exactly, line by line, and with errors that say where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.errors import TraceError
from evalkit.importers import files
from evalkit.importers.files import documents, fingerprint


def _write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _values(path: Path) -> list[object]:
    return [document.value for document in documents(path)]


def test_files_reads_json_lines_one_by_one(tmp_path: Path) -> None:
    """Each line that is not empty is a document that knows its line."""
    path = _write(tmp_path, "a.jsonl", '{"n": 1}\n\n{"n": 2}\r\n')
    assert [(d.where, d.scenario, d.value) for d in documents(path)] == [
        ("a.jsonl:1", "a-1", {"n": 1}),
        ("a.jsonl:3", "a-3", {"n": 2}),
    ]


def test_files_keeps_values_exactly(tmp_path: Path) -> None:
    """Huge integers, lone surrogates, NUL and control characters survive."""
    value = {"n": 2**70, "s": "\ud800\x00\x07\u2028"}
    path = _write(tmp_path, "a.json", json.dumps(value))
    assert _values(path) == [value]
    raw = _write(tmp_path, "b.jsonl", b'{"s": "a\x01b\tc"}\n')
    assert _values(raw) == [{"s": "a\x01b\tc"}]


def test_files_reads_numbers_that_are_no_json_as_unknown(tmp_path: Path) -> None:
    """NaN and Infinity, as Python writes them, become null."""
    assert _values(_write(tmp_path, "a.json", "[NaN, Infinity]")) == [[None, None]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_reads_marked_encodings(tmp_path: Path, encoding: str) -> None:
    """A byte-order mark says how to read the file."""
    path = _write(tmp_path, "a.json", '{"s": "ü"}'.encode(encoding))
    assert _values(path) == [{"s": "ü"}]


def test_files_reads_lines_in_a_file_named_json(tmp_path: Path) -> None:
    """A file named .json that goes on after its first line is read as lines."""
    assert _values(_write(tmp_path, "a.json", '{"n": 1}\n{"n": 2}\n')) == [{"n": 1}, {"n": 2}]


def test_files_reads_one_document_in_a_file_named_jsonl(tmp_path: Path) -> None:
    """A pretty-printed document in a file named .jsonl is read as one."""
    path = _write(tmp_path, "a.jsonl", json.dumps({"n": [1, 2]}, indent=1))
    assert _values(path) == [{"n": [1, 2]}]


def test_files_broken_line_is_a_document_with_a_problem(tmp_path: Path) -> None:
    """One broken line among good ones is told with its line, and costs no other."""
    path = _write(tmp_path, "a.jsonl", b'not json\n{"n": 1}\n\xff\xfe!\n{"n": 2}')
    found = list(documents(path))
    assert [d.value for d in found] == [None, {"n": 1}, None, {"n": 2}]
    assert found[0].problem.startswith("a.jsonl:1: not JSON")
    assert found[2].problem.startswith("a.jsonl:3: byte 0xff is not UTF-8")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"", r"a\.json:1: the file is empty"),
        ("a.jsonl", b"\n\n", r"a\.jsonl:1: the file is empty"),
        ("a.json", b"import os\n", r"a\.json:1: not JSON"),
        ("a.jsonl", b"import os\nimport sys\n", r"a\.jsonl:1: not JSON"),
        ("a.json", b'{\n"a": 1,\n"b": }', r"a\.json:3: not JSON"),
        ("a.json", b'{"a":\n"caf\xe9"}', r"a\.json:2: byte 0xe9 is not UTF-8"),
        ("a.json", b"[" * 200_000, r"a\.json:1: not readable: nested too deeply"),
        ("a.json", b"9" * 10_000, r"a\.json:1: not readable: .*4300"),
        ("a.eval", b"PK\x03\x04rest", r"a\.eval:1: not JSON but a zip archive"),
        ("a.json", b"\x1f\x8brest", r"a\.json:1: not JSON but a gzip archive"),
    ],
)
def test_files_refuses_what_is_no_json_with_file_and_line(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    """A file that cannot be read at all is an error with file and line."""
    with pytest.raises(TraceError, match=problem):
        list(documents(_write(tmp_path, name, content)))


def test_files_refuses_an_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line over the limit is refused before it is all read, and is not quoted."""
    monkeypatch.setattr(files, "MAX_LINE", 1000)
    path = _write(tmp_path, "a.jsonl", b'{"n": 1}\n' + b"x" * 100_000)
    with pytest.raises(TraceError, match=r"a\.jsonl:2: the line is longer") as caught:
        list(documents(path))
    assert len(str(caught.value)) < 300


def test_files_hundred_megabyte_line_that_is_no_json_is_a_short_error(tmp_path: Path) -> None:
    """A single line of 100 MB that is no JSON gives one short sentence."""
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(TraceError, match=r"a\.jsonl:1: the line is longer than 64 MiB") as caught:
        list(documents(path))
    assert len(str(caught.value)) < 300


def test_files_refuses_a_document_over_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document over the limit is refused with what to do."""
    monkeypatch.setattr(files, "MAX_FILE", 1000)
    with pytest.raises(TraceError, match=r"a\.json:1: larger than .*\.jsonl"):
        list(documents(_write(tmp_path, "a.json", b" " * 2000)))


def test_files_names_a_file_that_is_nearly_there(tmp_path: Path) -> None:
    """A path that does not exist names the nearest one."""
    _write(tmp_path, "traces.jsonl", "{}")
    with pytest.raises(TraceError, match=r"no such file.*did you mean 'traces\.jsonl'"):
        list(documents(tmp_path / "trace.jsonl"))


def test_files_reads_a_folder_in_order(tmp_path: Path) -> None:
    """A folder is read file by file; a broken one is a problem, others are passed over."""
    (tmp_path / "in").mkdir()
    _write(tmp_path, "b.json", '{"n": 2}')
    _write(tmp_path, "in/c.jsonl", '{"n": 3}\n')
    _write(tmp_path, "a.json", "broken")
    _write(tmp_path, "notes.txt", "notes")
    _write(tmp_path, ".hidden.json", "{}")
    found = list(documents(tmp_path))
    assert [(d.where, d.value) for d in found] == [
        ("a.json", None),
        ("b.json", {"n": 2}),
        ("c.jsonl:1", {"n": 3}),
    ]
    assert "not JSON" in found[0].problem


def test_files_refuses_an_empty_folder(tmp_path: Path) -> None:
    """A folder without a file to read is an error, never a run of nothing."""
    with pytest.raises(TraceError, match="holds no file"):
        list(documents(tmp_path))


def test_files_fingerprint_changes_with_content(tmp_path: Path) -> None:
    """The hash covers every byte, and no folder of this machine is named."""
    path = _write(tmp_path, "a.json", "{}")
    before = fingerprint(path)
    _write(tmp_path, "a.json", "[]")
    assert before["sha256"] != fingerprint(path)["sha256"]
    assert before["path"] == "a.json"
