"""Reading JSON, JSON lines and folders of them, one document at a time.

JSON is read exactly: integers of any size, lone surrogates, NUL and control
characters stay as they are. ``NaN`` and ``Infinity``, which are no JSON but are
met in files, become null. What cannot be read is said with file and line; no
message ever quotes the content.
"""

from __future__ import annotations

import codecs
import difflib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from evalkit.errors import TraceError
from evalkit.ledger import JSON

SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson", ".traj"})
"""Files of a folder that are read."""
MAX_LINE: Final = 64 * 2**20
"""Bytes of the longest line of JSON lines that is read."""
MAX_FILE: Final = 2**30
"""Bytes of the largest file that is read as one JSON document."""

_PATIENCE: Final = 1000
"""Broken lines before the first good one, after which a file is no JSON lines."""
_LINES: Final = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON document: a whole file, or one line of it."""

    path: Path
    line: int | None = None
    """1-based; ``None`` for a whole file."""
    value: JSON = None
    problem: str = ""
    """Why it could not be read; ``value`` is then ``None``."""

    @property
    def where(self) -> str:
        """File, and line where it is one."""
        return self.path.name if self.line is None else f"{self.path.name}:{self.line}"

    @property
    def scenario(self) -> str:
        """Scenario that the document stands for if it does not say: file, and line."""
        stem = self.path.stem.encode("utf-8", "backslashreplace").decode()
        return stem if self.line is None else f"{stem}-{self.line}"


def documents(path: Path) -> Iterator[Document]:
    """Read every document under a path: a file, or the files of a folder by name.

    A line that cannot be read is a document with a ``problem``, and so is a file
    of a folder; where nothing of a file can be read at all, that is an error.

    Raises
    ------
    TraceError
        If there is no such path, or nothing in it to read.
    """
    if not path.is_dir():
        yield from _file(path)
        return
    files = files_of(path)
    if not files:
        raise TraceError(f"{path}: the folder holds no file named {', '.join(sorted(SUFFIXES))}")
    for file in files:
        yield from _file_of_folder(file)


def files_of(path: Path) -> list[Path]:
    """List the files under a path that are read, in the order in which they are read."""
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.suffix in SUFFIXES and file.is_file() and not file.name.startswith(".")
    )


def fingerprint(path: Path) -> dict[str, JSON]:
    """Say what a path held: names, bytes and one hash, for the manifest.

    Raises
    ------
    TraceError
        If a file cannot be read.
    """
    sha, size, files = hashlib.sha256(), 0, files_of(path)
    for file in files:
        with _opened(file) as stream:
            while block := stream.read(2**20):
                sha.update(block)
                size += len(block)
    return {"path": path.name, "n_files": len(files), "bytes": size, "sha256": sha.hexdigest()}


def _file_of_folder(path: Path) -> Iterator[Document]:
    try:
        yield from _file(path)
    except TraceError as error:
        yield Document(path, problem=str(error))


def _file(path: Path) -> Iterator[Document]:
    if path.suffix in _LINES:
        return _as_lines(path)
    return iter(_as_whole(path))


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file or folder{_hint(path)}") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot read the file: {error.strerror}") from error


def _hint(path: Path) -> str:
    names = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _as_lines(path: Path) -> Iterator[Document]:
    """Read lines, unless the first one is broken and the file is one document after all."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise TraceError(f"{path.name}:1: the file is empty")
    if not first.problem:
        yield first
        yield from lines
        return
    try:
        yield _whole(path)
    except TraceError:
        yield from _after_broken(first, lines)


def _after_broken(first: Document, lines: Iterator[Document]) -> Iterator[Document]:
    """Hold broken lines back until there is a good one; without any, the file is no JSON."""
    broken = [first]
    for document in lines:
        if not document.problem:
            yield from broken
            yield document
            yield from lines
            return
        broken.append(document)
        if len(broken) == _PATIENCE:
            break
    raise TraceError(first.problem)


def _lines(path: Path) -> Iterator[Document]:
    with _opened(path) as stream:
        number = 0
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise TraceError(
                    f"{path.name}:{number}: the line is longer than {MAX_LINE // 2**20} MiB; "
                    "write one record a line, or one JSON document into a file named .json"
                )
            if line.strip():
                yield _line(path, number, line)


def _line(path: Path, number: int, line: bytes) -> Document:
    try:
        return Document(path, number, parse(line, where=path.name, first_line=number))
    except TraceError as error:
        return Document(path, number, problem=str(error))


def _as_whole(path: Path) -> Iterator[Document]:
    """Read a file as one document; if it is several, as lines."""
    try:
        document = _whole(path)
    except _SeveralDocuments:
        yield from _lines(path)
        return
    yield document


def _whole(path: Path) -> Document:
    with _opened(path) as stream:
        content = stream.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise TraceError(
            f"{path.name}:1: larger than {MAX_FILE // 2**30} GiB; write one record a line, "
            "into a file named .jsonl"
        )
    if not content.strip():
        raise TraceError(f"{path.name}:1: the file is empty")
    return Document(path, value=parse(content, where=path.name))


class _SeveralDocuments(TraceError):
    """A file goes on after its first JSON document, on another line."""


def parse(content: bytes, *, where: str, first_line: int = 1) -> JSON:
    """Parse JSON exactly.

    Raises
    ------
    TraceError
        If it is none; the text says file and line, and never quotes the content.
    """
    text = _decoded(content, where, first_line)
    try:
        return json.loads(text, strict=False, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        kind = _SeveralDocuments if _goes_on(error) else TraceError
        raise kind(f"{where}:{line}: not JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise TraceError(f"{where}:{first_line}: not readable: nested too deeply") from None
    except ValueError as error:
        raise TraceError(f"{where}:{first_line}: not readable: {error}") from None


def _goes_on(error: json.JSONDecodeError) -> bool:
    return error.msg == "Extra data" and error.lineno == 2


def _no_constant(_: str) -> None:
    """Read NaN and Infinity as unknown: JSON has no such numbers."""


def _decoded(content: bytes, where: str, first_line: int) -> str:
    archive = next((kind for mark, kind in _ARCHIVES.items() if content.startswith(mark)), None)
    if archive:
        raise TraceError(f"{where}:{first_line}: not JSON but {archive}; unpack it first")
    marks = _MARKS if first_line == 1 else {}
    encoding = next((name for mark, name in marks.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        number = first_line + content.count(b"\n", 0, error.start)
        raise TraceError(
            f"{where}:{number}: byte 0x{content[error.start]:02x} is not {encoding.upper()} text; "
            "convert the file to UTF-8 (iconv -f latin1 -t utf-8)"
        ) from None


_ARCHIVES: Final = {
    b"PK\x03\x04": "a zip archive (as Inspect AI's .eval logs are)",
    b"\x1f\x8b": "a gzip archive",
}
_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
