"""Databases as bytes: made of fixtures, copied without touching them, compared, asked."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.sandbox import snapshots as snapshots_module
from evalkit.sandbox import statements
from evalkit.sandbox.databases import FixtureProblem, Unreadable, database_bytes, open_copy
from evalkit.sandbox.queries import ROW_LIMIT, answer, query_problem
from evalkit.sandbox.row_changes import Changes, changes_between, table_names
from evalkit.sandbox.snapshots import Snapshots

SCRIPT = """-- the notes
CREATE TABLE notes(id INTEGER PRIMARY KEY, text, at DEFAULT CURRENT_TIMESTAMP);
INSERT INTO notes(text) VALUES ('semi;colon'), ('two');
CREATE TRIGGER t AFTER DELETE ON notes BEGIN INSERT INTO notes(text) VALUES ('x'); END;
"""


def write(folder: Path, content: str | bytes, name: str = "a.sql") -> Path:
    """Write a fixture."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def made(*script: str, of: bytes = b"") -> bytes:
    """Execute SQL on a copy of a database."""
    connection = open_copy(of)
    connection.executescript(";".join(script))
    return connection.serialize()


def test_script_is_made_the_same_each_time_at_the_scenarios_time(tmp_path: Path) -> None:
    """Neither the real time nor chance is in it."""
    script = f"{SCRIPT}INSERT INTO notes(text, at) VALUES (random(), datetime('now'));"
    now = datetime(2030, 5, 1, 12, tzinfo=UTC)
    content = database_bytes(write(tmp_path, script), now=now)
    assert content == database_bytes(write(tmp_path, script, "b.sql"), now=now)
    rows = answer(content, "SELECT DISTINCT at FROM notes").rows
    assert rows == (("2030-05-01 12:00:00",),)
    assert table_names(content) == ["notes"]


@pytest.mark.parametrize(
    "script",
    ["", "-- nothing yet\n", "PRAGMA user_version = 7;"],
    ids=["empty", "comment", "version"],
)
def test_script_that_makes_no_table_makes_a_database(tmp_path: Path, script: str) -> None:
    """The agent may make its own tables in it."""
    content = database_bytes(write(tmp_path, script), now=datetime(2030, 5, 1, tzinfo=UTC))
    assert content.startswith(b"SQLite format 3")
    with closing(open_copy(content)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    assert version == (7 if "7" in script else 0)


def test_sqlite_file_is_taken_as_it_is(tmp_path: Path) -> None:
    """Whatever it is called, and also one that is written through a log."""
    connection = sqlite3.connect(tmp_path / "any.name")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SCRIPT)
    connection.close()
    content = database_bytes(tmp_path / "any.name")
    assert content == (tmp_path / "any.name").read_bytes()
    assert answer(content, "SELECT count(*) FROM notes").rows == ((2,),)


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("a.sql", "-- x\n\nCREATE TABLE t(a);\nCREATE TABL u(a);", 4, 'near "TABL": syntax error'),
        ("a.sql", "CREATE TABLE t(a);\nINSERT INTO\n t VALUES (1, 2);", 2, "2 values"),
        ("a.sql", "INSERT INTO gone VALUES (1);", 1, "no such table: gone"),
        ("a.sql", "CREATE TABLE t(a);\nBEGIN;\nDELETE FROM t;", 3, "leaves a transaction open"),
        ("a.sql", "ATTACH 'b.db' AS b;", 1, "can attach no other file"),
        ("a.sql", ".read b.sql\n", 1, "a command of the sqlite3 program"),
        ("a.sql", b"SELECT '\xff';\n", 1, "UTF-8"),
        ("a.db", "CREATE TABLE t(a);", None, "is no SQLite database"),
        ("a.db", b"SQLite format 3\0" + b"\xff" * 5000, None, "broken SQLite database"),
    ],
)
def test_fixture_that_is_none_is_refused(
    tmp_path: Path, name: str, content: str | bytes, line: int | None, message: str
) -> None:
    """The message says what is wrong, and in which line."""
    with pytest.raises(FixtureProblem) as caught:
        database_bytes(write(tmp_path, content, name))
    assert caught.value.line == line
    assert message in caught.value.message


def test_sqlite_file_with_unsaved_changes_is_refused(tmp_path: Path) -> None:
    """What lies in its log is in no hash, and would not be there."""
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SCRIPT)
    with pytest.raises(FixtureProblem, match=r"lies in a\.db-wal"):
        database_bytes(tmp_path / "a.db")
    connection.close()


def test_changed_fixture_is_made_anew(tmp_path: Path) -> None:
    """It is kept for a run only as long as its file stays the same."""
    first = database_bytes(write(tmp_path, "CREATE TABLE t(a);"))
    path = write(tmp_path, "CREATE TABLE other(a);")
    os.utime(path, ns=(1, 1))
    assert database_bytes(path) != first


def said(changes: Changes, table: str = "t") -> tuple[list[Any], list[Any], list[Any]]:
    """Give what happened to a table."""
    found = changes.tables[table]
    return found.inserted, found.updated, found.deleted


def test_rows_with_a_key_are_updated() -> None:
    """Others with the same key are there instead; a new key is another row."""
    before = made(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a)", "INSERT INTO t VALUES (1,'a'),(2,'b')"
    )
    after = made("UPDATE t SET a = 'c' WHERE id = 2", "UPDATE t SET id = 9 WHERE id = 1", of=before)
    assert said(changes_between(before, after)) == ([(9, "a")], [((2, "b"), (2, "c"))], [(1, "a")])


@pytest.mark.parametrize(
    "table",
    [
        "t(k TEXT PRIMARY KEY, a) WITHOUT ROWID",
        "t(k, a, PRIMARY KEY (a, k))",
        't("rowid" PRIMARY KEY, a)',
    ],
)
def test_any_primary_key_will_do(table: str) -> None:
    """Of several columns, without row numbers, or with a column of that name."""
    before = made(f"CREATE TABLE {table}", "INSERT INTO t VALUES ('x', 1), ('y', 2)")
    after = made("DELETE FROM t WHERE a = 1", of=before)
    assert said(changes_between(before, after))[2] == [("x", 1)]


def test_equal_rows_without_a_key_are_counted() -> None:
    """Two that are the same are two."""
    before = made("CREATE TABLE t(a)", "INSERT INTO t VALUES (1), (1), (NULL)")
    after = made("INSERT INTO t VALUES (1), (1)", "DELETE FROM t WHERE a IS NULL", of=before)
    assert said(changes_between(before, after)) == ([(1,), (1,)], [], [(None,)])


def test_rows_are_compared_as_bytes() -> None:
    """Case and type matter, whatever the collation says; row numbers do not."""
    before = made(
        "CREATE TABLE t(a TEXT COLLATE NOCASE, b)",
        "INSERT INTO t VALUES ('x', 1), ('y', x'61'), ('gone', 0)",
        "CREATE INDEX i ON t(a)",
    )
    after = made(
        "UPDATE t SET a = 'X' WHERE b = 1", "UPDATE t SET b = 'a' WHERE a = 'y'", of=before
    )
    assert said(changes_between(before, after)) == (
        [("X", 1), ("y", "a")],
        [],
        [("x", 1), ("y", b"a")],
    )
    again = made(
        "DELETE FROM t", "INSERT INTO t VALUES ('gone', 0), ('y', x'61'), ('x', 1)", of=before
    )
    assert not changes_between(before, again)
    assert not changes_between(before, made("VACUUM", of=before))


def test_values_of_all_kinds_come_through() -> None:
    """Bytes, infinities, long integers, text with NUL and text that is no UTF-8."""
    before = made("CREATE TABLE t(a)")
    after = made(
        "INSERT INTO t VALUES (x'00ff'), (9e999), (9223372036854775807), ('a' || char(0) || 'b')",
        "INSERT INTO t VALUES (CAST(x'61ff' AS TEXT)), (NULL), (0.5)",
        of=before,
    )
    assert [row[0] for row in said(changes_between(before, after))[0]] == [
        None,
        0.5,
        9223372036854775807,
        float("inf"),
        "a\0b",
        "a\udcff",
        b"\0\xff",
    ]


def test_tables_that_come_go_and_change() -> None:
    """A new column that is NULL everywhere changes no row; the schema tells of it."""
    before = made(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')"
    )
    wider = made("ALTER TABLE t ADD COLUMN b", of=before)
    changes = changes_between(before, wider)
    assert changes.tables == {}
    assert [(one.type, one.name) for one in changes.schema] == [("table", "t")]
    filled = made("UPDATE t SET b = 7 WHERE id = 1", of=wider)
    assert said(changes_between(before, filled)) == ([], [((1, "x", None), (1, "x", 7))], [])
    other = changes_between(before, made("CREATE TABLE u(a)", "DROP TABLE t", of=before))
    assert said(other)[2] == [(1, "x"), (2, "y")]
    assert [(one.name, one.before is None, one.after is None) for one in other.schema] == [
        ("t", False, True),
        ("u", True, False),
    ]


def test_search_tables_show_their_rows_and_not_their_inside() -> None:
    """A virtual table is compared by what it shows."""
    before = made("CREATE VIRTUAL TABLE t USING fts5(body)")
    changes = changes_between(before, made("INSERT INTO t VALUES ('hello')", of=before))
    assert {name: table.inserted for name, table in changes.tables.items()} == {"t": [("hello",)]}


def test_one_unreadable_table_does_not_hide_the_others() -> None:
    """A function of the agent's own is not known here, and that is said."""
    connection = sqlite3.connect(":memory:")
    connection.create_function("mine", 1, lambda value: value, deterministic=True)
    connection.executescript("CREATE TABLE t(a, b AS (mine(a))); CREATE TABLE u(a)")
    before = connection.serialize()
    connection.executescript("INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)")
    changes = changes_between(before, connection.serialize())
    assert changes.tables["u"].inserted == [(1,)]
    assert "mine" in changes.problems["t"]


def test_too_many_tables_and_broken_files_are_told_apart() -> None:
    """The one is a limit of evalkit's, the other the agent's doing."""
    many = made(*(f"CREATE TABLE t{n}(a)" for n in range(1001)))
    with pytest.raises(Unreadable, match="1,001 tables") as limit:
        changes_between(b"", many)
    assert not limit.value.is_agents
    broken = bytearray(made("CREATE TABLE t(a)", "INSERT INTO t VALUES (1)"))
    broken[100:] = b"\xff" * (len(broken) - 100)
    with pytest.raises(Unreadable, match="malformed") as fault:
        changes_between(b"", bytes(broken))
    assert fault.value.is_agents


def test_databases_in_another_encoding_are_compared() -> None:
    """All of SQLite's encodings are."""
    before = made("PRAGMA encoding = 'UTF-16'", "CREATE TABLE t(a)", "INSERT INTO t VALUES ('ä')")
    after = made("INSERT INTO t VALUES ('ö')", of=before)
    assert said(changes_between(before, after)) == ([("ö",)], [], [])


VALUES = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from(["a", "A", "b\0c", "é", ""]),
    st.binary(max_size=2),
    st.sampled_from([0.5, float("inf")]),
)
TABLES = st.lists(st.tuples(VALUES, VALUES), max_size=6)


@settings(max_examples=80, deadline=None)
@given(TABLES, TABLES)
def test_changes_turn_one_table_into_the_other(old: list[Any], new: list[Any]) -> None:
    """What was there, less what is gone, and what came, is what is there."""

    def content(rows: list[Any]) -> bytes:
        connection = open_copy(b"")
        connection.execute("CREATE TABLE t(a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        return connection.serialize()

    changes = changes_between(content(old), content(new))
    inserted, updated, deleted = said(changes) if changes else ([], [], [])
    assert updated == []
    assert Counter(old) - Counter(deleted) + Counter(inserted) == Counter(new)
    assert not Counter(inserted) & Counter(deleted)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Give a working directory with a database."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.db").write_bytes(made("CREATE TABLE t(a)", "INSERT INTO t VALUES ('x')"))
    return work


def rows_of(content: bytes | None) -> tuple[Any, ...]:
    """Give the rows of the one table."""
    assert content is not None
    return answer(content, "SELECT a FROM t").rows


def is_locked(path: Path) -> bool:
    """Say whether another process is kept out of a database."""
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT * FROM t')"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, check=False
    )
    return b"locked" in ended.stderr


def test_snapshot_leaves_locks_journal_and_what_is_not_committed(room: Path) -> None:
    """It is taken while a transaction is open, and does not end it."""
    taker = Snapshots(str(room), str(room.parent))
    connection = sqlite3.connect(room / "a.db", isolation_level=None)
    connection.executescript("PRAGMA cache_size = 1; BEGIN EXCLUSIVE; DELETE FROM t")
    connection.executemany("INSERT INTO t VALUES (?)", [("y" * 3000,)] * 50)
    assert (room / "a.db-journal").stat().st_size
    journal = (room / "a.db-journal").read_bytes()
    for _ in range(2):
        assert rows_of(taker.take("a.db").content) == (("x",),)
    assert is_locked(room / "a.db")
    assert (room / "a.db-journal").read_bytes() == journal
    connection.execute("COMMIT")
    assert len(rows_of(taker.take("a.db").content)) == 50
    assert sorted(entry.name for entry in room.parent.iterdir()) == ["work"]


def test_snapshot_reads_the_write_ahead_log(room: Path) -> None:
    """What was committed is there, though the file does not have it yet."""
    connection = sqlite3.connect(room / "a.db", isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; INSERT INTO t VALUES ('y')")
    connection.executescript("BEGIN; INSERT INTO t VALUES ('z')")
    snapshot = Snapshots(str(room), str(room.parent)).take("a.db")
    assert rows_of(snapshot.content) == (("x",), ("y",))
    connection.execute("COMMIT")
    connection.close()


def test_hot_journal_of_a_dead_process_is_rolled_back_in_the_copy_only(room: Path) -> None:
    """The agent's own next start finds it as its process left it."""
    code = (
        "import sqlite3, os, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.executescript('PRAGMA cache_size = 1; BEGIN; DELETE FROM t')\n"
        "c.executemany('INSERT INTO t VALUES (?)', [('y' * 3000,)] * 50)\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(room / "a.db")], check=True)
    before = {path.name: path.read_bytes() for path in room.iterdir()}
    assert set(before) == {"a.db", "a.db-journal"}
    assert rows_of(Snapshots(str(room), str(room.parent)).take("a.db").content) == (("x",),)
    assert {path.name: path.read_bytes() for path in room.iterdir()} == before


def test_what_became_of_a_database_is_said(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone, no database, a link, too large: each in words, and whose doing it is."""
    taker = Snapshots(str(room), str(room.parent))
    assert taker.take("none.db") == (None, "", True)
    (room / "b.db").write_bytes(b"no database" * 100)
    assert "is no SQLite database any more" in taker.take("b.db").problem
    (room / "c.db").symlink_to(room / "a.db")
    assert taker.take("c.db").problem == "is a symbolic link now"
    os.mkfifo(room / "d.db")
    assert taker.take("d.db").problem == "is no file now"
    monkeypatch.setattr(snapshots_module, "SIZE_LIMIT", 1000)
    large = taker.take("a.db")
    assert "only 1,000 are looked at" in large.problem
    assert not large.is_agents


def test_databases_are_found_wherever_they_lie(room: Path) -> None:
    """By what they are, not by their names; links and small files are none."""
    (room / "sub").mkdir()
    (room / "sub" / "cache").write_bytes((room / "a.db").read_bytes())
    (room / "text.db").write_text("x" * 1000)
    (room / "link.db").symlink_to(room / "a.db")
    taker = Snapshots(str(room), str(room.parent))
    assert taker.found([]) == ["a.db", "sub/cache"]
    assert taker.found(["a.db"]) == ["sub/cache"]


@pytest.mark.parametrize(
    ("query", "problem", "is_agents"),
    [
        ("SELECT * FROM gone", "no such table: gone", True),
        ("SELECT gone FROM t", "no such column: gone", True),
        ("SELEC 1", 'near "SELEC": syntax error', False),
        ("DELETE FROM t", "does more than read", False),
        ("ATTACH 'x.db' AS x", "does more than read", False),
        ("SELECT 1; SELECT 2", "several statements", False),
        ("SELECT gone(1)", "no such function: gone", False),
    ],
)
def test_query_without_an_answer_says_why(query: str, problem: str, is_agents: bool) -> None:
    """What is not there may be the agent's doing; a query that is none is not."""
    content = made("CREATE TABLE t(a)", "INSERT INTO t VALUES (1)")
    found = answer(content, query)
    assert problem in found.problem
    assert found.is_agents is is_agents
    assert bool(query_problem(query, content)) is not is_agents


def test_query_without_an_end_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in a suite does not hold up a run."""
    monkeypatch.setattr("evalkit.sandbox.queries._LIMIT_S", 0.05)
    endless = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT sum(x) FROM r"
    assert "took longer than" in answer(b"", endless).problem


def test_many_rows_are_counted_and_few_kept() -> None:
    """The number is exact all the same."""
    many = (
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 2500) SELECT x FROM r"
    )
    found = answer(b"", many)
    assert (len(found.rows), found.n_rows, found.columns) == (ROW_LIMIT, 2500, ("x",))


def test_json_and_pragmas_can_be_asked() -> None:
    """They read as well."""
    content = made("CREATE TABLE t(a)", """INSERT INTO t VALUES ('{"b": [1, 2]}')""")
    query = "SELECT value FROM t, json_each(t.a, '$.b')"
    assert answer(content, query).rows == ((1,), (2,))
    assert answer(content, "PRAGMA table_info(t)").rows[0][1] == "a"
    assert query_problem(query, content) == ""


@pytest.fixture
def told(tmp_path: Path) -> Iterator[list[tuple[str | None, str]]]:
    """Collect the statements of every database below the test's folder."""
    found: list[tuple[str | None, str]] = []

    def teller(path: str | None) -> statements.Tell | None:
        if path is None:
            return None
        return lambda sql: found.append((os.path.relpath(path, os.path.realpath(tmp_path)), sql))

    statements.watch(teller)
    yield found
    statements.unwatch()


def test_statements_are_told_with_their_values(
    told: list[tuple[str | None, str]], tmp_path: Path
) -> None:
    """However they are executed, and of files only."""
    connection = sqlite3.connect(f"file:{tmp_path}/a%2Edb?mode=rwc", uri=True)
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(1,), ("it's",)])
    connection.commit()
    connection.executescript("SELECT 1; SELECT 2;")
    connection.close()
    sqlite3.connect(":memory:").execute("SELECT 3")
    sqlite3.connect("file:x?mode=memory", uri=True).execute("SELECT 4")
    assert {name for name, _ in told} == {"a.db"}
    assert [sql for _, sql in told] == [
        "CREATE TABLE t(a)",
        "BEGIN ",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES ('it''s')",
        "COMMIT",
        "SELECT 1;",
        " SELECT 2;",
    ]


class Custom(sqlite3.Connection):
    """A connection of the agent's own class, which traces from the start."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: list[str] = []
        self.set_trace_callback(self.seen.append)


def test_agents_own_trace_goes_on(told: list[tuple[str | None, str]], tmp_path: Path) -> None:
    """Set, set anew or taken back: ours hears all, theirs what it asked for."""
    connection: Any = sqlite3.connect(tmp_path / "a.db", 5, 0, None, True, Custom)
    assert isinstance(connection, Custom)
    assert type(connection).__name__ == "Custom"
    connection.execute("SELECT 1")
    connection.set_trace_callback(None)
    connection.execute("SELECT 2")
    assert connection.seen == ["SELECT 1"]
    assert [sql for _, sql in told] == ["SELECT 1", "SELECT 2"]
    anything: Any = lambda *args, **kwargs: sqlite3.Connection(*args, **kwargs)  # noqa: E731
    made_by = sqlite3.connect(tmp_path / "a.db", factory=anything)
    made_by.execute("SELECT 3")
    assert told[-1][1] == "SELECT 3"


def test_connection_that_nobody_has_is_closed(
    told: list[tuple[str | None, str]], tmp_path: Path
) -> None:
    """Being told keeps no connection alive, nor its locks."""
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    connection.executescript("CREATE TABLE t(a); BEGIN EXCLUSIVE")
    assert is_locked(tmp_path / "a.db")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del connection
        gc.collect()
    assert not is_locked(tmp_path / "a.db")
    assert told
