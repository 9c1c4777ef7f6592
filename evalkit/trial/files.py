"""What a trial leaves in its working directory, as events."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalkit.ledger import JSON, Event
from evalkit.recording import Recorder

if TYPE_CHECKING:
    from evalkit.trial.databases import Databases

_DATABASE: Final = b"SQLite format 3\0"
_MAX_FILES: Final = 1000
_MAX_TEXT: Final = 100_000
"""Bytes of a file whose text is kept; of a larger one only size and hash are."""


def record_files(
    recorder: Recorder,
    folder: Path,
    *,
    databases: Databases | None = None,
    look_late: Callable[[], Databases] | None = None,
    given: Collection[str] = (),
) -> None:
    """Write each file of a folder as an event, in the order of paths, and how many there are.

    What belongs to a database that is watched says so: its bytes say less than its rows,
    and are not the same in each run.

    Parameters
    ----------
    recorder
        Takes the events.
    folder
        The working directory.
    databases
        Those that are watched, if any are.
    look_late
        Looks for databases that the agent made by itself; called if there is one.
    given
        Files that the trial began with.
    """
    found = sorted(map(Path, _below(str(folder))))
    for path in found[:_MAX_FILES]:
        name, told = path.relative_to(folder).as_posix(), _content(path)
        is_database = told.pop("is_database", False)
        if is_database and databases is None and look_late is not None and name not in given:
            databases = look_late()
        owner = "" if databases is None else databases.owner(name)
        if not owner:
            recorder.event("file", {"path": name, **told})
            continue
        digest = {"sha256": told.pop("sha256")}
        recorder.event("file", {"path": name, **told, "text": None, "database": owner}, real=digest)
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
    text = _text(content)
    is_database = {"is_database": True} if content.startswith(_DATABASE) else {}
    return {**told, **is_database, "text": text}


def _text(content: bytes) -> str | None:
    try:
        return content.decode() if len(content) <= _MAX_TEXT else None
    except UnicodeDecodeError:
        return None


def _database_told(told: Mapping[str, JSON], changed: Collection[str]) -> dict[str, JSON]:
    """Say of a file of a database whether it is as it was, by what happened to its rows."""
    owner = told["database"]
    if told["path"] != owner:
        return {"beside": owner}
    return {"unchanged": owner not in changed}


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
    changed: set[str] = set()
    for event in events:
        if event.kind == "file":
            told = {**event.data}
            if "database" in told:
                told |= {"sha256": event.real.get("sha256"), **_database_told(told, changed)}
            files[told.pop("path")] = told
        elif event.kind == "database" and ("changes" in event.data or "problem" in event.data):
            changed.add(event.data["database"])
        elif event.kind == "state" and "files" in event.data:
            counted = event.data["files"]
    if counted is None:
        return {}
    if counted["n"] == counted["n_recorded"]:
        return {"files": files}
    gap = f"only the first {counted['n_recorded']:,} of {counted['n']:,} files were recorded"
    return {"files": files, "files_gap": gap}
