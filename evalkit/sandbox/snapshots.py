"""Copies of an agent's SQLite databases, taken between its turns without touching them.

A process loses its locks on a file when it closes *any* descriptor of it, and SQLite
relies on those locks. So the files of a database are read through descriptors that stay
open until the process ends, and never opened as a database: what was not committed, in a
journal or a log, is settled in a copy.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

from evalkit.sandbox.databases import HEADER, SIZE_LIMIT, Unreadable, without_log
from evalkit.sandbox.sqlite import open_plain

SIDE_FILES: Final = ("-wal", "-journal", "-shm")
"""What may lie beside a database, and belongs to it."""

_SETTLED: Final = SIDE_FILES[:2]
_LEAST: Final = 512
"""Bytes of the smallest database that has a table."""
_MAX_FILES: Final = 10_000
_ATTEMPTS: Final = 5
_PAUSE_S: Final = 0.01

_Stamp = tuple[int, ...] | None


class Snapshot(NamedTuple):
    """A database as it was at one moment."""

    content: bytes | None = None
    """Whole, without journal and log; ``None`` where there is none, or it cannot be read."""
    problem: str = ""
    """Why it cannot be read, as the rest of a sentence about it."""
    is_agents: bool = True
    """Whether the agent made it so."""


class Snapshots:
    """Takes snapshots below one folder.

    Parameters
    ----------
    folder
        The working directory of the trial.
    scratch
        Where copies are settled; outside of ``folder``.
    """

    def __init__(self, folder: str, scratch: str) -> None:
        self._folder = folder
        self._scratch = scratch
        self._kept: dict[tuple[int, int], int] = {}

    def found(self, known: Iterable[str]) -> list[str]:
        """Name the databases that lie there, besides known ones, by their path."""
        passed = {*known, *(f"{name}{ending}" for name in known for ending in SIDE_FILES)}
        names = []
        for number, (name, entry) in enumerate(_files_below(self._folder, "")):
            if number >= _MAX_FILES:
                break
            if name not in passed and self._is_database(entry):
                names.append(name)
        return sorted(names)

    def _is_database(self, entry: os.DirEntry[str]) -> bool:
        with suppress(OSError):
            told = entry.stat(follow_symlinks=False)
            if told.st_size < _LEAST or (told.st_dev, told.st_ino) in self._kept:
                return told.st_size >= _LEAST
            fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            if os.pread(fd, len(HEADER), 0) == HEADER:
                self._kept[told.st_dev, told.st_ino] = fd
                return True
            os.close(fd)
        return False

    def take(self, name: str) -> Snapshot:
        """Take a snapshot of one database, by its path in the folder; never raises."""
        path = f"{self._folder}/{name}"
        try:
            for _ in range(_ATTEMPTS):
                before = _stamps(path)
                if before[0] is None:
                    return Snapshot()
                snapshot = self._taken(path)
                if _stamps(path) == before:
                    return snapshot
                time.sleep(_PAUSE_S)
        except Unreadable as error:
            return Snapshot(None, error.message, error.is_agents)
        except FileNotFoundError:
            return Snapshot()
        except PermissionError:
            return Snapshot(None, "cannot be read: the agent took the permission away")
        except OSError as error:
            return Snapshot(None, f"could not be copied: {error.strerror}", is_agents=False)
        return Snapshot(None, "was being written while no turn was under way", is_agents=False)

    def _taken(self, path: str) -> Snapshot:
        content = self._content(path)
        if content and not content.startswith(HEADER):
            raise Unreadable(
                f"is no SQLite database any more: it begins with {content[:16]!r}", is_agents=True
            )
        unsettled = [ending for ending in _SETTLED if _is_unsettled(f"{path}{ending}")]
        if content and unsettled:
            return Snapshot(self._settled(path, content, unsettled))
        return Snapshot(without_log(content))

    def _content(self, path: str) -> bytes:
        """Read a file without ever closing it."""
        told = os.lstat(path)
        if not stat.S_ISREG(told.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(told.st_mode) else "no file"
            raise Unreadable(f"is {kind} now", is_agents=True)
        _check_size(told.st_size)
        key = (told.st_dev, told.st_ino)
        if key not in self._kept:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            self._kept[key] = os.open(path, flags)
        return _whole(self._kept[key], told.st_size)

    def _settled(self, path: str, content: bytes, unsettled: list[str]) -> bytes:
        """Let SQLite bring a copy to the state that was committed last."""
        folder = tempfile.mkdtemp(prefix="evalkit-", dir=self._scratch)
        try:
            # Its name is in its journal's own, so the copy has it, too.
            copy = Path(folder, os.path.basename(path))  # noqa: PTH119
            copy.write_bytes(content)
            for ending in unsettled:
                _check_size(os.lstat(f"{path}{ending}").st_size)
                Path(f"{copy}{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
            with closing(open_plain(str(copy), timeout=0)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return without_log(connection.serialize())
        except sqlite3.Error as error:
            raise broken(error) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def broken(error: sqlite3.Error) -> Unreadable:
    """Say what SQLite says of a database that it cannot read."""
    if "interrupted" in str(error):
        return Unreadable("took too long to read", is_agents=False)
    if "encoding" in str(error):
        return Unreadable("has another text encoding now", is_agents=False)
    name = getattr(error, "sqlite_errorname", "")
    is_agents = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
    return Unreadable(f"cannot be read: {error}", is_agents=is_agents)


def _check_size(n_bytes: int) -> None:
    if n_bytes > SIZE_LIMIT:
        raise Unreadable(
            f"has {n_bytes:,} bytes, and only {SIZE_LIMIT:,} are looked at", is_agents=False
        )


def _whole(fd: int, size: int) -> bytes:
    """Read a file to its end, without moving in it."""
    content = os.pread(fd, size, 0)
    while len(content) < size and (more := os.pread(fd, size - len(content), len(content))):
        content += more
    return content


def _stamps(path: str) -> tuple[_Stamp, ...]:
    """Tell the files of a database from what they are a moment later."""
    return tuple(_stamp(f"{path}{ending}") for ending in ("", *_SETTLED))


def _stamp(path: str) -> _Stamp:
    try:
        told = os.lstat(path)
    except FileNotFoundError:
        return None
    return told.st_ino, told.st_size, told.st_mtime_ns


def _is_unsettled(path: str) -> bool:
    """Say whether a log or journal holds anything; one that is done with begins with zeros."""
    with suppress(OSError), Path(path).open("rb") as file:
        return file.read(8).strip(b"\0") != b""
    return False


def _files_below(folder: str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Give files with their path below the folder; links are passed over."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{prefix}{entry.name}", entry
