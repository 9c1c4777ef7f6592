"""Queries of a suite, on a copy of a database: read only, in bounded time, of bounded size."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any, Final, NamedTuple

from evalkit.sandbox.clock import DEFAULT_TIME
from evalkit.sandbox.databases import lenient_text, limit_time, open_copy
from evalkit.sandbox.sqlite import replace_functions

ROW_LIMIT: Final = 1000
"""Rows of an answer that are kept; the rest is counted."""

_LIMIT_S: Final = 5.0
_MOST: Final = 1_000_000
_CHUNK: Final = 1000
_FORBIDDEN: Final = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})
_WRITES: Final = "the query does more than read: write one SELECT"
_MISSING: Final = ("no such table", "no such column")
_UNREADABLE: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class Answer(NamedTuple):
    """What a query gave."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    """The first :data:`ROW_LIMIT`."""
    n_rows: int = 0
    problem: str = ""
    """Why there is no answer."""
    is_agents: bool = False
    """Whether that is the agent's doing: what the query asks for is not there."""


def answer(content: bytes, query: str, *, now: Callable[[], datetime] | None = None) -> Answer:
    """Ask a database.

    Parameters
    ----------
    content
        The database; it stays as it is.
    query
        One statement that only reads.
    now
        Gives the time that SQL sees; by default the process's clock does.
    """
    try:
        with closing(open_copy(content)) as connection:
            _prepare(connection, now)
            return _answered(connection, query)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        return _unanswered(error)


def query_problem(query: str, content: bytes = b"") -> str:
    """Say what is wrong with a query, whatever database it will be asked of; empty if nothing.

    A table or column that is not there may be made by the agent, so it is none.
    """
    try:
        with closing(open_copy(content)) as connection:
            _prepare(connection, lambda: DEFAULT_TIME)
            steps = connection.execute(f"EXPLAIN {query}").fetchall()
            if any(step[1] == "Transaction" and step[3] for step in steps):
                return _WRITES
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        found = _unanswered(error)
        return "" if found.is_agents else found.problem
    return ""


def _prepare(connection: sqlite3.Connection, now: Callable[[], datetime] | None) -> None:
    """Let a connection only read, see a given time, and not take for ever."""
    if now is None:
        replace_functions(connection)
    else:
        replace_functions(connection, now=now)
    connection.execute("PRAGMA query_only = 1")
    connection.set_authorizer(_refuse_files)
    limit_time(connection, _LIMIT_S)


def _answered(connection: sqlite3.Connection, query: str) -> Answer:
    try:
        return _fetched(connection.execute(query))
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    connection.text_factory = lenient_text
    return _fetched(connection.execute(query))


def _fetched(cursor: sqlite3.Cursor) -> Answer:
    if cursor.description is None:
        return Answer(problem="the query gives no rows: write a SELECT")
    columns = tuple(column[0] for column in cursor.description)
    rows: list[tuple[Any, ...]] = []
    n_rows = 0
    while chunk := cursor.fetchmany(_CHUNK):
        n_rows += len(chunk)
        rows += chunk[: max(ROW_LIMIT - len(rows), 0)]
        if n_rows > _MOST:
            return Answer(problem=f"the query gives more than {_MOST:,} rows")
    return Answer(columns, tuple(rows), n_rows)


def _unanswered(error: Exception) -> Answer:
    """Say why there is no answer, and who is to blame."""
    said = str(error)
    if "interrupted" in said:
        return Answer(problem=f"the query took longer than {_LIMIT_S:g} s")
    if "not authorized" in said or "readonly database" in said:
        return Answer(problem=_WRITES)
    if "one statement" in said:
        return Answer(problem="the query has several statements: write one SELECT")
    name = getattr(error, "sqlite_errorname", "")
    is_agents = said.startswith(_MISSING) or name.startswith(_UNREADABLE)
    return Answer(problem=said, is_agents=is_agents)


def _refuse_files(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_DENY if action in _FORBIDDEN else sqlite3.SQLITE_OK
