"""What is told of databases: statements, changes, answers, and what there is no room for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalkit.ledger import Event
from evalkit.recording import Recorder
from evalkit.sandbox import statements
from evalkit.sandbox.folders import Places
from evalkit.trial import databases as databases_module
from evalkit.trial.databases import Databases
from evalkit.trial.order import DatabaseLook, DatabaseLooks
from evalkit.trial.outcome import database_gap, databases_of, written_into

COUNT = "SELECT count(*) FROM t"


class Watch:
    """A trial of one database, turn by turn."""

    def __init__(self, folder: Path, *looks: DatabaseLook) -> None:
        self.path = folder / "work" / "a.db"
        self.events: list[Event] = []
        places = Places(str(folder), str(folder), str(folder), str(folder / "work"))
        recorder = Recorder(self.events.append)
        self.databases = Databases(DatabaseLooks(("a.db",), looks), places, recorder)
        self.databases.begin()

    def turn(self, number: int, *script: str) -> list[dict[str, Any]]:
        """Execute something in a turn; give what was told of it, but the statements."""
        self.databases.begin_turn(number)
        n_before = len(self.events)
        with sqlite3.connect(self.path) as connection:
            for one in script:
                connection.execute(one)
        connection.close()
        self.databases.end_turn()
        return [dict(e.data) for e in self.events[n_before:] if "sql" not in e.data]

    @property
    def statements(self) -> list[str]:
        """Give the statements so far."""
        return [event.data["sql"] for event in self.events if "sql" in event.data]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give the folder of a trial, with a database in it."""
    (tmp_path / "work").mkdir()
    with sqlite3.connect(tmp_path / "work" / "a.db") as connection:
        connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
        connection.execute("INSERT INTO t VALUES (1, 'x')")
    connection.close()
    yield tmp_path
    statements.unwatch()


def test_a_turn_tells_statements_then_changes_then_answers(folder: Path) -> None:
    """In this order; a turn that changes nothing tells nothing."""
    watch = Watch(folder, DatabaseLook("a.db", COUNT, 1), DatabaseLook("a.db", COUNT))
    assert watch.events[0].data == {"databases": {"a.db": {"tables": ["t"]}}}
    (changes,) = watch.turn(0, "INSERT INTO t VALUES (2, x'00ff')")
    assert changes == {
        "database": "a.db",
        "turn": 0,
        "changes": {
            "t": {"inserted": [{"id": 2, "a": {"base64": "AP8="}}], "updated": [], "deleted": []}
        },
        "keys": {"t": ["id"]},
    }
    (answered,) = watch.turn(1, "SELECT 1")
    assert answered == {
        "database": "a.db", "turn": 1, "query": COUNT, "columns": ["count(*)"], "rows": [[2]],
    }  # fmt: skip
    watch.databases.finish()
    assert watch.events[-1].data["turn"] is None
    assert watch.statements == ["BEGIN ", "INSERT INTO t VALUES (2, x'00ff')", "COMMIT", "SELECT 1"]


def test_next_life_goes_on_from_the_files_that_it_finds(folder: Path) -> None:
    """What was there when it began is no change, whoever made it."""
    Watch(folder).turn(0, "INSERT INTO t VALUES (2, 'y')", "CREATE TABLE u(a)")
    watch = Watch(folder)
    assert watch.turn(1, "SELECT 1") == []
    (changes,) = watch.turn(2, "DELETE FROM t WHERE id = 2")
    assert changes["changes"]["t"]["deleted"] == [{"id": 2, "a": "y"}]


def test_what_is_wrong_is_told_once_and_what_is_right_again(folder: Path) -> None:
    """Changes are then told from what was read last."""
    watch = Watch(folder, DatabaseLook("a.db", COUNT, 1))
    content = watch.path.read_bytes()
    watch.path.unlink()
    watch.databases.end_turn()
    watch.databases.begin_turn(1)
    watch.databases.end_turn()
    said = [dict(event.data) for event in watch.events[1:]]
    gone = {"problem": "does not exist any more", "is_agents": True}
    assert said == [
        {"database": "a.db", "turn": 0, **gone},
        {
            "database": "a.db",
            "turn": 1,
            "query": COUNT,
            **gone,
            "problem": "a.db does not exist any more",
        },
    ]
    watch.path.write_bytes(content)
    (changes,) = watch.turn(2, "DELETE FROM t")
    assert changes["changes"]["t"]["deleted"] == [{"id": 1, "a": "x"}]
    assert database_gap(watch.events) == ""


def test_database_that_is_as_it_was_is_right_again(folder: Path) -> None:
    """An event says so, for what was wrong is not any more."""
    watch = Watch(folder)
    content = watch.path.read_bytes()
    watch.path.write_bytes(b"x" * 5000)
    watch.databases.end_turn()
    assert "is no SQLite database any more" in database_gap(watch.events)
    watch.path.write_bytes(content)
    watch.databases.end_turn()
    assert watch.events[-1].data == {"database": "a.db", "turn": 0, "changes": {}}
    assert database_gap(watch.events) == ""


def test_statements_have_bounds_that_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long one is cut, and those beyond the limit are counted."""
    monkeypatch.setattr(databases_module, "MAX_STATEMENTS", 3)
    monkeypatch.setattr(databases_module, "MAX_SQL", 20)
    watch = Watch(folder)
    watch.turn(0, f"SELECT '{'y' * 100}'", "SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4")
    assert watch.statements == ["SELECT 'yyyyyyyyyyyy", "SELECT 1", "SELECT 2"]
    assert "too long" in database_gap(watch.events)
    watch.databases.finish()
    assert watch.events[-1].data == {"database": "a.db", "n_statements_left_out": 2}


def test_rows_have_bounds_that_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not listed is counted, so that counts stay exact."""
    monkeypatch.setattr(databases_module, "MAX_ROWS_CHARS", 150)
    watch = Watch(folder, DatabaseLook("a.db", "SELECT * FROM t", 0))
    changes, answered = watch.turn(0, *(f"INSERT INTO t VALUES ({n}, 'y')" for n in range(2, 11)))
    n_listed = len(changes["changes"]["t"]["inserted"])
    assert 0 < n_listed < 9
    assert changes["unlisted"] == {"t": {"inserted": 9 - n_listed}}
    assert answered["n_rows"] == 10
    assert "more changed rows than were kept" in database_gap(watch.events)


def test_files_say_which_database_they_belong_to(folder: Path) -> None:
    """Also those that lie beside it."""
    watch = Watch(folder)
    owners = [watch.databases.owner(name) for name in ("a.db", "a.db-wal", "a.db-x", "b.db")]
    assert owners == ["a.db", "a.db", "", ""]


def event(**data: Any) -> Event:
    """Make an event of a database."""
    return Event(1, "database", {"database": "a.db", "turn": 0, **data})


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("SELECT 'secret'", []),
        ("-- note\nselect 'secret'", []),
        ("DELETE FROM t WHERE a = 'secret'", []),
        ("WITH x AS (SELECT 'secret') SELECT * FROM x", []),
        ("COMMIT", []),
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT 'secret'", None),
        ("INSERT INTO t VALUES ('secret')", None),
        ("/* c */ REPLACE INTO t VALUES ('secret')", None),
        ("UPDATE t SET a = 1 WHERE b = 'secret'", ["UPDATE t SET a = 1 "]),
        ("UPDATE t SET a = (SELECT b WHERE c) WHERE 'x'", ["UPDATE t SET a = (SELECT b WHERE c) "]),
        ("INSERT INTO t VALUES ('was here', 'new')", ["INSERT INTO t VALUES ('', 'new')"]),
        ("INSERT INTO t VALUES (x'4142')", ["INSERT INTO t VALUES (x'4142')", "AB"]),
        ("INSERT INTO t VALUES ('it''s", ["INSERT INTO t VALUES ('it''s"]),
    ],
)  # fmt: skip
def test_only_what_a_statement_writes_is_searched(sql: str, written: list[str] | None) -> None:
    """Not what it looks for, nor what the database held when the trial began."""
    found = written_into([event(sql=sql)], given={"a.db": "INSERT INTO t VALUES ('was here')"})
    assert found == ([sql] if written is None else written)


def test_only_new_values_of_rows_are_searched() -> None:
    """Inserted rows whole, of updated ones what they did not have, and bytes as text, too."""
    pair = {"before": {"id": 1, "a": "old", "b": 1}, "after": {"id": 1, "a": "old", "b": "new"}}
    table = {
        "inserted": [{"id": 2, "a": {"base64": "aGk="}}],
        "updated": [pair],
        "deleted": [{"a": "gone"}],
    }
    schema = [{"type": "table", "name": "u", "before": None, "after": "CREATE TABLE u(a)"}]
    found = written_into([event(changes={"t": table}, schema=schema)], given={})
    assert found == [{"id": 2, "a": [{"base64": "aGk="}, "hi"]}, {"b": "new"}, "CREATE TABLE u(a)"]


def test_nobody_looked_where_nothing_says_so() -> None:
    """No event of a database is not the same as no change."""
    assert databases_of([Event(1, "turn", {"turn": 0})]) == {}
    begun = Event(1, "state", {"databases": {"a.db": {"tables": ["t"]}}})
    assert databases_of([begun]) == {"database": {"tables": {"a.db": ["t"]}, "events": []}}
