"""What an agent does to its SQLite databases, as events: statements, changes, answers.

Statements are told as they happen, by the agent's own process. What happened to rows is
seen in the files, whoever wrote them: after each turn they are compared with what they
were before it. The suite's queries are asked of the same copies.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from evalkit.ledger import JSON
from evalkit.recording import Recorder
from evalkit.sandbox import statements
from evalkit.sandbox.databases import Unreadable
from evalkit.sandbox.folders import Places
from evalkit.sandbox.queries import Answer, answer
from evalkit.sandbox.row_changes import Changes, Row, TableChanges, changes_between, table_names
from evalkit.sandbox.snapshots import SIDE_FILES, Snapshot, Snapshots
from evalkit.trial.order import DatabaseLook, DatabaseLooks

MAX_STATEMENTS: Final = 10_000
"""Statements of a trial that are recorded."""
MAX_SQL: Final = 100_000
"""Characters of one statement that are recorded."""
MAX_ROWS_CHARS: Final = 6_000_000
"""Characters of changed rows, or of an answer, that one event holds."""
MAX_DATABASES: Final = 50

_MAX_SQL_BYTES: Final = 20_000_000
_MAX_TABLES: Final = 1000
_GONE: Final = "does not exist any more"
_NOT_THERE: Final = "does not exist"


class Databases:
    """Watches the databases of one trial, or of one life of it.

    Parameters
    ----------
    looks
        Which databases there are, and what is asked of them.
    places
        The folders of the trial.
    recorder
        Takes the events.
    """

    def __init__(self, looks: DatabaseLooks, places: Places, recorder: Recorder) -> None:
        self._looks = looks
        self._folder = os.path.realpath(places.work)
        self._recorder = recorder
        self._snapshots = Snapshots(places.work, places.root)
        self._ignored: frozenset[str] = frozenset()
        self._before: dict[str, bytes] = {}
        self._problems: dict[str, str] = {}
        self._now: dict[str, Snapshot] = {}
        self._turn = 0
        self._told = _Told(recorder)

    def go_on(self, seen: Mapping[str, bytes], *, turn: int) -> None:
        """Take up what another process has seen last; what is different was not told yet."""
        self._before, self._turn = dict(seen), turn
        statements.watch(self._teller)

    def leave(self) -> None:
        """Write what this process could not keep; the next one looks what has changed."""
        self._told.finish()

    @property
    def seen(self) -> Mapping[str, bytes]:
        """What was last seen of each database."""
        return self._before

    def begin(self) -> None:
        """Take the databases as they are now, and have statements told from now on."""
        for name in self._names():
            snapshot = self._snapshots.take(name)
            if snapshot.content is not None:
                self._before[name] = snapshot.content
        tables = {name: {"tables": _tables(content)} for name, content in self._before.items()}
        self._recorder.event("state", {"databases": tables})
        statements.watch(self._teller)

    def look_late(self, given: frozenset[str], *, turn: int) -> None:
        """Write what databases hold that came out of nothing; not those that were given."""
        self._ignored, self._turn = given, max(turn, 0)
        self._recorder.event("state", {"databases": {}})
        self._compare()

    def begin_turn(self, turn: int) -> None:
        """Go on to a turn, from 0."""
        self._turn = turn

    def end_turn(self) -> None:
        """Write what changed since the turn began, and what the suite asks after it."""
        self._compare()
        self._ask(self._turn)

    def finish(self) -> None:
        """Write what changed after the last turn, and what the suite asks at the end."""
        self._compare()
        self._ask(None)
        self._told.finish()

    def owner(self, path: str) -> str:
        """Name the database that a file belongs to, by its path; empty if it is none's."""
        known = self._before
        stems = (path.removesuffix(ending) for ending in SIDE_FILES if path.endswith(ending))
        return next((name for name in (path, *stems) if name in known), "")

    def _names(self) -> list[str]:
        known = {*self._looks.names, *self._before}
        return sorted({*known, *self._snapshots.found(known)} - self._ignored)

    def _teller(self, path: str | None) -> statements.Tell | None:
        if path is None or not path.startswith(f"{self._folder}/"):
            return None
        return partial(self._statement, path[len(self._folder) + 1 :])

    def _statement(self, name: str, sql: str) -> None:
        self._told.statement(name, sql, turn=self._turn)

    def _compare(self) -> None:
        """Take all databases anew, and write what is different."""
        self._now = {}
        names = self._names()
        for name in names[:MAX_DATABASES]:
            snapshot = self._now[name] = self._snapshots.take(name)
            self._tell_of(name, snapshot)
        for name in names[MAX_DATABASES:]:
            problem = f"is not looked at: there are more than {MAX_DATABASES} databases"
            self._now[name] = Snapshot(None, problem, is_agents=False)
            self._tell_problem(name, self._now[name])

    def _tell_of(self, name: str, snapshot: Snapshot) -> None:
        before, now = self._before.get(name), snapshot.content
        if now is None:
            if snapshot.problem or before is not None:
                self._tell_problem(name, snapshot)
            return
        try:
            told = self._changes_told(before or b"", now)
        except Unreadable as error:
            self._now[name] = Snapshot(None, error.message, error.is_agents)
            self._tell_problem(name, self._now[name])
            return
        self._before[name] = now
        was_wrong = self._problems.pop(name, None) is not None
        if told or was_wrong:
            told = told or {"changes": {}}
            self._recorder.event("database", {"database": name, "turn": self._turn, **told})

    def _changes_told(self, before: bytes, now: bytes) -> dict[str, JSON]:
        """Give what changed; nothing if all is as it was."""
        if before == now:
            return {}
        changes = changes_between(before, now)
        return changes_told(changes) if changes else {}

    def _tell_problem(self, name: str, snapshot: Snapshot) -> None:
        """Write what is wrong with a database, once."""
        problem = snapshot.problem or _GONE
        if self._problems.get(name) == problem:
            return
        self._problems[name] = problem
        told = {"problem": problem, "is_agents": snapshot.is_agents}
        self._recorder.event("database", {"database": name, "turn": self._turn, **told})

    def _ask(self, turn: int | None) -> None:
        for look in self._looks.queries:
            if look.turn == turn:
                told = {"database": look.database, "turn": turn, "query": look.query}
                self._recorder.event("database", {**told, **answer_told(self._answer(look))})

    def _answer(self, look: DatabaseLook) -> Answer:
        snapshot = self._now.get(look.database, Snapshot())
        if snapshot.content is not None:
            return answer(snapshot.content, look.query)
        was_there = look.database in self._before or look.database in self._problems
        problem = snapshot.problem or (_GONE if was_there else _NOT_THERE)
        return Answer(problem=f"{look.database} {problem}", is_agents=snapshot.is_agents)


class _Told:
    """Writes statements, as far as there is room for them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._n = 0
        self._n_bytes = 0
        self._left_out: dict[str, int] = {}

    def statement(self, name: str, sql: str, *, turn: int) -> None:
        """Write a statement; one that is too long is cut, and says so."""
        if self._n >= MAX_STATEMENTS or self._n_bytes >= _MAX_SQL_BYTES:
            self._left_out[name] = self._left_out.get(name, 0) + 1
            return
        told: dict[str, JSON] = {"database": name, "turn": turn, "sql": sql[:MAX_SQL]}
        if len(sql) > MAX_SQL:
            told["n_cut"] = len(sql) - MAX_SQL
        self._n += 1
        self._n_bytes += len(told["sql"])
        self._recorder.event("database", told)

    def finish(self) -> None:
        """Write how many statements found no room."""
        for name, number in sorted(self._left_out.items()):
            self._recorder.event("database", {"database": name, "n_statements_left_out": number})


def _tables(content: bytes) -> list[str] | None:
    try:
        names = table_names(content)
    except Unreadable:
        return None
    return names if len(names) <= _MAX_TABLES else None


def value_told(value: Any) -> JSON:
    """Give a value of SQL as JSON: bytes as ``{"base64": ...}``, all else as it is."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    return value


def answer_told(found: Answer) -> dict[str, JSON]:
    """Give an answer as JSON, as many of its rows as there is room for."""
    if found.problem:
        return {"problem": found.problem, "is_agents": found.is_agents}
    room = _Room()
    rows = [[value_told(value) for value in row] for row in found.rows if room.takes(*row)]
    told: dict[str, JSON] = {"columns": list(found.columns), "rows": rows}
    return told if len(rows) == found.n_rows else {**told, "n_rows": found.n_rows}


class _Room:
    """What may still be written of many rows; what comes after one that is too large is left."""

    def __init__(self) -> None:
        self._left = MAX_ROWS_CHARS

    def takes(self, *values: Any) -> bool:
        """Say whether there is room for some values, and take it."""
        for value in values if self._left > 0 else ():
            is_long = isinstance(value, str | bytes)
            self._left -= 8 + (2 * len(value) if is_long else 0)
        return self._left > 0


def changes_told(changes: Changes) -> dict[str, JSON]:
    """Give changes as JSON; rows that there is no room for are counted in ``unlisted``."""
    room = _Room()
    listed, unlisted = {}, {}
    for name, table in changes.tables.items():
        listed[name] = _table_told(table, room)
        missing = _missing(table, listed[name])
        if missing:
            unlisted[name] = missing
    told: dict[str, JSON] = {"changes": listed}
    keys = {name: list(table.key) for name, table in changes.tables.items() if table.key}
    schema = [one._asdict() for one in changes.schema if room.takes(*one)]
    more: dict[str, JSON] = {
        "keys": keys,
        "schema": schema,
        "n_schema_left_out": len(changes.schema) - len(schema),
        "unlisted": unlisted,
        "problems": dict(changes.problems),
    }
    return told | {name: value for name, value in more.items() if value}


def _table_told(table: TableChanges, room: _Room) -> dict[str, list[JSON]]:
    names = table.columns
    before = partial(_row_told, columns=table.columns, there=table.columns_before)
    after = partial(_row_told, columns=table.columns, there=table.columns_after)
    return {
        "inserted": [after(row) for row in table.inserted if room.takes(*row, *names)],
        "updated": [
            {"before": before(old), "after": after(new)}
            for old, new in table.updated
            if room.takes(*old, *new, *names, *names)
        ],
        "deleted": [before(row) for row in table.deleted if room.takes(*row, *names)],
    }


def _row_told(row: Row, *, columns: tuple[str, ...], there: frozenset[str]) -> dict[str, JSON]:
    told = dict(zip(columns, row, strict=True))
    if len(there) < len(columns):
        told = {column: value for column, value in told.items() if column in there}
    for column, value in told.items():
        if isinstance(value, bytes):
            told[column] = value_told(value)
    return told


def _missing(table: TableChanges, listed: Mapping[str, list[JSON]]) -> dict[str, int]:
    """Count the rows that are not listed."""
    whole = {
        "inserted": len(table.inserted),
        "updated": len(table.updated),
        "deleted": len(table.deleted),
    }
    missing = {kind: number - len(listed[kind]) for kind, number in whole.items()}
    return {kind: number for kind, number in missing.items() if number}
