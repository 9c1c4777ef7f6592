"""SQLite databases as bytes: made from a suite's fixtures, and opened as copies in memory.

A fixture is a SQLite file, or a script that is executed once a run. What is opened here
is always a copy: nothing that is done to it can reach a file. How the copies are taken is
:mod:`~evalkit.sandbox.snapshots`'.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from evalkit.sandbox.clock import DEFAULT_TIME
from evalkit.sandbox.sqlite import open_plain, replace_functions

HEADER: Final = b"SQLite format 3\0"
SIZE_LIMIT: Final = 64 << 20
"""Bytes of a database that is looked at."""

_SUFFIXES: Final = frozenset({".db", ".db3", ".sqlite", ".sqlite3"})
_SCRIPT_S: Final = 30.0
_STEPS: Final = 20_000
"""Instructions of SQLite's machine between two looks at the time."""

_FORMAT: Final = slice(18, 20)
"""Where a file says that it is written and read through a write-ahead log."""


class FixtureProblem(Exception):
    """A fixture is no database; ``line`` of the script, where it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Unreadable(Exception):
    """A database, or a part of it, could not be read.

    Parameters
    ----------
    message
        What is wrong, as the rest of a sentence about the database.
    is_agents
        Whether the agent made it so, rather than evalkit being at its limits.
    """

    def __init__(self, message: str, *, is_agents: bool) -> None:
        super().__init__(message)
        self.message = message
        self.is_agents = is_agents


def database_bytes(path: Path, *, now: datetime = DEFAULT_TIME) -> bytes:
    """Make a database of a fixture; the same bytes each time.

    Parameters
    ----------
    path
        A SQLite file, or an SQL script.
    now
        The time that the script sees.

    Raises
    ------
    FixtureProblem
        If it is neither, or its SQL has a fault.
    OSError
        If it cannot be read.
    """
    told = path.stat()
    return _made(path, now, (told.st_mtime_ns, told.st_size, told.st_ino))


@lru_cache(maxsize=64)
def _made(path: Path, now: datetime, _version: tuple[int, ...]) -> bytes:
    content = path.read_bytes()
    if content.startswith(HEADER):
        return _checked(content, path)
    if path.suffix.lower() in _SUFFIXES:
        raise FixtureProblem(
            f"is no SQLite database: it begins with {content[:16]!r}; give a SQLite file, or a "
            "script that ends in .sql"
        )
    try:
        return _executed(content.decode("utf-8-sig"), now)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FixtureProblem("is neither a SQLite database nor UTF-8 text", line) from error


def _checked(content: bytes, path: Path) -> bytes:
    """Refuse a file that is broken, or not the whole of its database."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise FixtureProblem(
            f"is not whole: what was written last lies in {log.name}; close the program that uses "
            'it, or execute "PRAGMA wal_checkpoint(TRUNCATE)"'
        )
    _check_size(content)
    try:
        with closing(open_copy(content)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise FixtureProblem(f"is a broken SQLite database: {error}") from error
    # A collation or module of the agent's own is none that is known here.
    if found != "ok" and "collation" not in found and "module" not in found:
        raise FixtureProblem(f"is a broken SQLite database: {found}")
    return content


def _check_size(content: bytes) -> None:
    if len(content) > SIZE_LIMIT:
        raise FixtureProblem(
            f"has {len(content):,} bytes; at most {SIZE_LIMIT:,} can be watched: "
            "leave out what the scenario does not need"
        )


def _executed(script: str, now: datetime) -> bytes:
    """Execute a script on an empty database."""
    with closing(_fresh(now)) as connection:
        try:
            connection.executescript(script)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise _located(script, now) or FixtureProblem(_said(error)) from error
        if connection.in_transaction:
            raise FixtureProblem("leaves a transaction open: add COMMIT", script.count("\n") + 1)
        # What nothing was ever written to has no bytes; this writes a database without tables.
        connection.execute(f"PRAGMA user_version = {_user_version(connection)}")
        content = connection.serialize()
    _check_size(content)
    return content


def _user_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _fresh(now: datetime) -> sqlite3.Connection:
    """Open an empty database in which time stands still and chance is the same each time."""
    connection = open_plain()
    replace_functions(connection, now=lambda: now, stream=random.Random(0))
    connection.set_authorizer(_refuse_files)
    limit_time(connection, _SCRIPT_S)
    return connection


def _refuse_files(action: int, *_: Any) -> int:
    """Let a script reach no other file."""
    is_file = action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    return sqlite3.SQLITE_DENY if is_file else sqlite3.SQLITE_OK


def _located(script: str, now: datetime) -> FixtureProblem | None:
    """Find the statement of a script that has a fault."""
    with closing(_fresh(now)) as connection:
        for line, statement in _statements(script):
            try:
                connection.execute(statement)
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                return FixtureProblem(_said(error, statement), line)
    return None


def _said(error: Exception, statement: str = "") -> str:
    """Say what is wrong with a statement."""
    if statement.startswith("."):
        word = statement.split()[0]
        return f"{word} is a command of the sqlite3 program: only SQL can stand here"
    if "not authorized" in str(error):
        return "a fixture can attach no other file: write all of it into one script"
    if "interrupted" in str(error):
        return f"took longer than {_SCRIPT_S:g} s"
    return f"{error}{_quoted(statement)}"


def _quoted(statement: str) -> str:
    shown = " ".join(statement.split())
    return f", in: {shown[:80]}{'...' if len(shown) > 80 else ''}" if shown else ""


def _statements(script: str) -> Iterator[tuple[int, str]]:
    """Give the statements of a script, each with the line where it begins."""
    begins, held = 1, ""
    for number, line in enumerate(script.splitlines(keepends=True), start=1):
        for piece in _up_to_semicolons(line):
            if not held:
                if _says_nothing(piece):
                    continue
                begins = number
            held += piece
            if sqlite3.complete_statement(held):
                yield begins, held.strip()
                held = ""
    if held.strip():
        yield begins, held.strip()


def _says_nothing(piece: str) -> bool:
    return not piece.strip() or piece.lstrip().startswith("--")


def _up_to_semicolons(line: str) -> Iterator[str]:
    *whole, rest = line.split(";")
    yield from (f"{piece};" for piece in whole)
    yield rest


def open_copy(content: bytes, *, before: bytes | None = None) -> sqlite3.Connection:
    """Open a copy of a database in memory, and another one beside it as ``ek_before``.

    Raises
    ------
    sqlite3.Error
        If it is none; more often that comes with the first query.
    """
    connection = open_plain()
    try:
        _fill(connection, content, "main")
        if before is not None:
            connection.execute("SELECT count(*) FROM main.sqlite_master")  # settles the encoding
            connection.execute("ATTACH ':memory:' AS ek_before")
            _fill(connection, before, "ek_before")
    except BaseException:
        connection.close()
        raise
    return connection


def _fill(connection: sqlite3.Connection, content: bytes, name: str) -> None:
    if content:  # an empty file is a database without tables
        connection.deserialize(without_log(content), name=name)


def without_log(content: bytes) -> bytes:
    """Have a database that is whole not ask for its write-ahead log."""
    if b"\x02" not in content[_FORMAT]:
        return content
    return content[: _FORMAT.start] + b"\1\1" + content[_FORMAT.stop :]


def limit_time(connection: sqlite3.Connection, seconds: float) -> None:
    """Interrupt what a connection does from now on, once the time is over."""
    due = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > due, _STEPS)


def fetch_all(connection: sqlite3.Connection, sql: str) -> list[Any]:
    """Execute a query; text that is no UTF-8 is kept in lone surrogates."""
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    connection.text_factory = lenient_text
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.text_factory = str


def lenient_text(data: bytes) -> str:
    """Decode text of any agent, losing no byte."""
    return data.decode("utf-8", "surrogateescape")
