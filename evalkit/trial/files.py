"""What a trial leaves in its working directory, as events."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from evalkit.ledger import JSON, Event
from evalkit.recording import Recorder

_MAX_FILES: Final = 1000
_MAX_TEXT: Final = 100_000
"""Bytes of a file whose text is kept; of a larger one only size and hash are."""


def record_files(recorder: Recorder, folder: Path) -> None:
    """Write each file of a folder as an event, in the order of their paths."""
    for path in _files(folder):
        recorder.event("file", {"path": path.relative_to(folder).as_posix(), **_content(path)})


def _files(folder: Path) -> Iterator[Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return iter(found[:_MAX_FILES])


def _content(path: Path) -> dict[str, JSON]:
    try:
        content = path.read_bytes()
    except OSError as error:
        return {"size": None, "sha256": None, "text": None, "problem": str(error.strerror)}
    told = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {**told, "text": _text(content)}


def _text(content: bytes) -> str | None:
    try:
        return content.decode() if len(content) <= _MAX_TEXT else None
    except UnicodeDecodeError:
        return None


def files_of(events: Iterable[Event]) -> Mapping[str, JSON]:
    """Read back which files a trial left, by path."""
    return {
        event.data["path"]: {key: value for key, value in event.data.items() if key != "path"}
        for event in events
        if event.kind == "file"
    }
