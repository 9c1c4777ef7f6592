"""What a trial leaves in its working directory, as events."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from evalkit.ledger import JSON, Event
from evalkit.recording import Recorder

_MAX_FILES: Final = 1000
_MAX_TEXT: Final = 100_000
"""Bytes of a file whose text is kept; of a larger one only size and hash are."""


def record_files(recorder: Recorder, folder: Path) -> None:
    """Write each file of a folder as an event, in the order of paths, and how many there are."""
    found = sorted(map(Path, _below(str(folder))))
    for path in found[:_MAX_FILES]:
        recorder.event("file", {"path": path.relative_to(folder).as_posix(), **_content(path)})
    recorder.event("state", {"files": {"n": len(found), "n_recorded": min(len(found), _MAX_FILES)}})


def _below(folder: str) -> Iterator[str]:
    """Find files and links; what cannot be read, or is neither, is passed over."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path)
            elif entry.is_symlink() or entry.is_file():
                yield entry.path


def _content(path: Path) -> dict[str, JSON]:
    if path.is_symlink():  # where it leads to may lie outside
        return {"size": None, "sha256": None, "text": None, "problem": "it is a symbolic link"}
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


def files_of(events: Iterable[Event]) -> dict[str, JSON]:
    """Read back what is known of a trial's files.

    Returns
    -------
    dict
        ``files`` by path, unless nobody recorded them; ``files_gap`` where some are
        missing, and why.
    """
    files: dict[str, JSON] = {}
    counted: Mapping[str, JSON] | None = None
    for event in events:
        if event.kind == "file":
            told = dict(event.data)
            files[told.pop("path")] = told
        elif event.kind == "state" and "files" in event.data:
            counted = event.data["files"]
    if counted is None:
        return {}
    if counted["n"] == counted["n_recorded"]:
        return {"files": files}
    gap = f"only the first {counted['n_recorded']:,} of {counted['n']:,} files were recorded"
    return {"files": files, "files_gap": gap}
