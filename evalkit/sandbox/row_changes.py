"""What happened to the rows of a database between two snapshots of it.

Rows are compared as what they hold, byte by byte, whatever their collation; two that
are the same are two. An updated row has the primary key of one that is gone; in a table
without one, rows are deleted and inserted.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final, NamedTuple

from evalkit.sandbox.databases import Unreadable, fetch_all, limit_time, open_copy
from evalkit.sandbox.snapshots import broken

_MAX_TABLES: Final = 1000
_LIMIT_S: Final = 10.0
_BEFORE: Final = "ek_before"
_AFTER: Final = "main"
_ROW_NUMBERS: Final = ("rowid", "_rowid_", "oid")

Row = tuple[Any, ...]


class TableChanges(NamedTuple):
    """What happened to one table."""

    columns: tuple[str, ...]
    """Of all its rows, also where it had them before only, or has them now only."""
    key: tuple[str, ...]
    """Its primary key; empty where rows are not told apart by one."""
    inserted: list[Row]
    deleted: list[Row]
    updated: list[tuple[Row, Row]]
    """Before and after."""
    columns_before: frozenset[str]
    columns_after: frozenset[str]


class ChangedObject(NamedTuple):
    """A table, index, view or trigger that was made, dropped or altered."""

    type: str
    name: str
    before: str | None
    """Its SQL; ``None`` where it was not there."""
    after: str | None


class Changes(NamedTuple):
    """What happened to a database."""

    tables: Mapping[str, TableChanges]
    schema: Sequence[ChangedObject]
    problems: Mapping[str, str]
    """Tables that could not be compared, and why."""

    def __bool__(self) -> bool:
        return bool(self.tables or self.schema or self.problems)


def changes_between(before: bytes, after: bytes) -> Changes:
    """Compare two snapshots of a database.

    Raises
    ------
    Unreadable
        If one of them is broken, or both are too much to compare.
    """
    try:
        with closing(open_copy(after, before=before)) as connection:
            limit_time(connection, _LIMIT_S)
            return _Comparison(connection).changes()
    except sqlite3.Error as error:
        raise broken(error) from error


def table_names(content: bytes) -> list[str]:
    """Name the tables of a database.

    Raises
    ------
    Unreadable
        If it is broken.
    """
    try:
        with closing(open_copy(content)) as connection:
            return sorted(name for kind, name in _objects(connection, _AFTER) if kind == "table")
    except sqlite3.Error as error:
        raise broken(error) from error


_Objects = Mapping[tuple[str, str], str | None]


def _objects(connection: sqlite3.Connection, schema: str) -> _Objects:
    """Give the SQL of what the user made, by type and name."""
    query = f"SELECT type, name, sql FROM {schema}.sqlite_master ORDER BY 1, 2"
    rows = fetch_all(connection, query)
    return {(kind, name): sql for kind, name, sql in rows if not name.startswith("sqlite_")}


class _Comparison:
    """Compares what is open as ``main`` with what is open as ``ek_before``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._before = _objects(connection, _BEFORE)
        self._after = _objects(connection, _AFTER)

    def changes(self) -> Changes:
        found: dict[str, TableChanges] = {}
        problems: dict[str, str] = {}
        names = sorted({name for kind, name in {**self._before, **self._after} if kind == "table"})
        if len(names) > _MAX_TABLES:
            raise Unreadable(
                f"has {len(names):,} tables, and only {_MAX_TABLES:,} are compared", is_agents=False
            )
        shadows = self._shadows()
        for name in names:
            if name in shadows:
                continue
            try:
                table = self._table(name)
            except UnicodeError:
                problems[name] = "has a name that is no UTF-8"
                continue
            except sqlite3.Error as error:
                problems[name] = _problem(error)
                continue
            if table.inserted or table.deleted or table.updated:
                found[name] = table
        return Changes(found, list(self._changed_objects()), problems)

    def _shadows(self) -> set[str]:
        """Name the tables in which a virtual one keeps what it shows itself."""
        made = {**self._before, **self._after}.values()
        if not any(sql and sql.upper().startswith("CREATE VIRTUAL") for sql in made):
            return set()
        with suppress(sqlite3.Error):  # an SQLite that does not tell
            rows = fetch_all(
                self._connection, "SELECT name FROM pragma_table_list WHERE type = 'shadow'"
            )
            return {name for (name,) in rows}
        return set()

    def _changed_objects(self) -> Iterator[ChangedObject]:
        for key in sorted({*self._before, *self._after}):
            before, after = self._before.get(key), self._after.get(key)
            if before != after or (key in self._before) != (key in self._after):
                yield ChangedObject(*key, before, after)

    def _table(self, name: str) -> TableChanges:
        before, after = self._shape(_BEFORE, name), self._shape(_AFTER, name)
        columns = tuple(dict.fromkeys((*after.columns, *before.columns)))
        old, new = self._differing(name, columns, before=before, after=after)
        key = after.key if after.key == before.key or not before.columns else ()
        key = before.key if not after.columns else key
        deleted, inserted, updated = _paired(old, new, [columns.index(one) for one in key])
        return TableChanges(
            columns,
            key,
            inserted=inserted,
            deleted=deleted,
            updated=updated,
            columns_before=frozenset(before.columns),
            columns_after=frozenset(after.columns),
        )

    def _shape(self, schema: str, table: str) -> _Shape:
        rows = fetch_all(self._connection, f"PRAGMA {schema}.table_xinfo({_quoted(table)})")
        seen = [row for row in rows if row[6] != 1]  # 1: a parameter of a virtual table
        key = sorted((row[5], row[1]) for row in seen if row[5])
        return _Shape(tuple(row[1] for row in seen), tuple(name for _, name in key))

    def _differing(
        self, table: str, columns: Sequence[str], *, before: _Shape, after: _Shape
    ) -> tuple[list[Row], list[Row]]:
        """Give the rows that are in one of both only, or more often there."""
        kind = ("table", table)
        if self._before.get(kind) == self._after.get(kind):
            number = next((one for one in _ROW_NUMBERS if one not in _lower(columns)), "")
            try:
                if number:
                    return self._by_number(table, columns, number)
            except sqlite3.OperationalError as error:
                if "no such column" not in str(error):  # a table WITHOUT ROWID
                    raise
        return self._by_content(table, columns, before=before, after=after)

    def _by_number(
        self, table: str, columns: Sequence[str], number: str
    ) -> tuple[list[Row], list[Row]]:
        """Leave out the rows that are as they were in their place; that is quick."""

        def rows(mine: str, other: str) -> list[Row]:
            names = [_quoted(column) for column in columns]
            differ = " OR ".join(f"a.{c} COLLATE BINARY IS NOT b.{c}" for c in names)
            return fetch_all(
                self._connection,
                f"SELECT {', '.join(f'a.{c}' for c in names)} "
                f"FROM {mine}.{_quoted(table)} AS a NOT INDEXED "
                f"LEFT JOIN {other}.{_quoted(table)} AS b NOT INDEXED ON b.{number} = a.{number} "
                f"WHERE b.{number} IS NULL OR {differ}",
            )

        old, new = Counter(rows(_BEFORE, _AFTER)), Counter(rows(_AFTER, _BEFORE))
        return list((old - new).elements()), list((new - old).elements())

    def _by_content(
        self, table: str, columns: Sequence[str], *, before: _Shape, after: _Shape
    ) -> tuple[list[Row], list[Row]]:
        """Count how often each row is there now, less how often it was."""
        names = [_quoted(column) for column in columns]
        sides = [
            _counted(schema, table, columns, shape=shape, sign=sign)
            for schema, shape, sign in ((_AFTER, after, 1), (_BEFORE, before, -1))
            if shape.columns
        ]
        rows = fetch_all(
            self._connection,
            f"SELECT {', '.join(names)}, sum(ek_n) AS ek_n FROM ({' UNION ALL '.join(sides)}) "
            f"GROUP BY {', '.join(f'{name} COLLATE BINARY' for name in names)} HAVING ek_n <> 0",
        )
        old = [tuple(row[:-1]) for row in rows for _ in range(-row[-1])]
        return old, [tuple(row[:-1]) for row in rows for _ in range(row[-1])]


class _Shape(NamedTuple):
    """The columns of a table, and those of its primary key; none where it is not there."""

    columns: tuple[str, ...]
    key: tuple[str, ...]


def _counted(schema: str, table: str, columns: Sequence[str], *, shape: _Shape, sign: int) -> str:
    """Write the query for the rows of one side; a column that it lacks is NULL in it."""
    given = ", ".join(
        f"{_quoted(one) if one in shape.columns else 'NULL'} AS {_quoted(one)}" for one in columns
    )
    return f"SELECT {given}, {sign} AS ek_n FROM {schema}.{_quoted(table)} NOT INDEXED"


def _paired(
    old: list[Row], new: list[Row], key: Sequence[int]
) -> tuple[list[Row], list[Row], list[tuple[Row, Row]]]:
    """Tell updated rows from deleted and inserted ones; each in the order of keys and values."""
    updated: list[tuple[Row, Row]] = []
    if key and old and new:
        olds, news = _by_key(old, key), _by_key(new, key)
        both = [one for one in olds if one in news and len(olds[one]) == len(news[one]) == 1]
        updated = [(olds[one][0], news[one][0]) for one in both if None not in one]
        gone = {id(row) for pair in updated for row in pair}
        old, new = [r for r in old if id(r) not in gone], [r for r in new if id(r) not in gone]

    pairs = dict(zip((pair[0] for pair in updated), updated, strict=True))
    return _sorted(old, key), _sorted(new, key), [pairs[row] for row in _sorted(pairs, key)]


def _sorted(rows: Iterable[Row], key: Sequence[int]) -> list[Row]:
    """Order rows by key, then by all that they hold; values of unlike types as SQLite does."""
    given = list(rows)
    try:
        return sorted(given, key=lambda row: (*(row[place] for place in key), *row))
    except TypeError:
        return sorted(given, key=lambda row: [_rank(row[n]) for n in (*key, *range(len(row)))])


def _by_key(rows: Iterable[Row], key: Sequence[int]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[place] for place in key), []).append(row)
    return found


def _rank(value: Any) -> tuple[int, Any]:
    """Order values of all types, as SQLite does."""
    match value:
        case None:
            return 0, 0
        case int() | float():
            return 1, value
        case str():
            return 2, value
    return 3, value


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _problem(error: sqlite3.Error) -> str:
    """Say why one table cannot be compared; what concerns the whole database is raised on."""
    found = broken(error)
    if found.is_agents or "too long" in found.message:
        raise found from error
    return found.message
