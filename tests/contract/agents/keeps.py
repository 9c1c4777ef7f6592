"""Agents that keep what they are told in SQLite; each turn is SQL, or a deed by name."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

NAME = os.environ.get("NOTES_DB", "notes.db")
HELD: list[Any] = []


def agent(text: str) -> str:
    """Do what a turn says."""
    deed = DEEDS.get(text)
    if deed is not None:
        return str(deed())
    with sqlite3.connect(NAME) as connection:
        done = [connection.execute(one).fetchall() for one in text.split(";") if one.strip()]
    connection.close()
    return str(done)


def _with_parameters() -> None:
    with sqlite3.connect(NAME) as connection:
        connection.execute("INSERT INTO notes(text, at) VALUES (?, datetime('now'))", ("by hand",))
        connection.executemany("INSERT INTO notes(text) VALUES (?)", [("one",), ("two",)])
        connection.executescript("UPDATE notes SET text = 'first' WHERE id = 1;")
    connection.close()


def _by_sqlalchemy() -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(f"sqlite:///{NAME}")
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("INSERT INTO notes(text) VALUES (:text)"), {"text": "by alchemy"}
        )


async def _aiosqlite() -> None:
    import aiosqlite

    async with aiosqlite.connect(NAME) as connection:
        await connection.execute("INSERT INTO notes(text) VALUES (?)", ("by aio",))
        await connection.commit()


def _by_aiosqlite() -> None:
    import asyncio

    asyncio.run(_aiosqlite())


def _traced_by_itself() -> list[str]:
    seen: list[str] = []
    connection = sqlite3.connect(NAME)
    connection.set_trace_callback(seen.append)
    connection.execute("SELECT 1")
    connection.set_trace_callback(None)
    connection.execute("SELECT 2")
    connection.close()
    return seen


def _remove() -> None:
    Path(NAME).unlink()


def _replace() -> None:
    Path(NAME).write_bytes(b"no database at all, but long enough to be one " * 20)


def _link() -> None:
    Path(NAME).rename("other.db")
    Path(NAME).symlink_to("other.db")


def _corrupt() -> None:
    content = bytearray(Path(NAME).read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    Path(NAME).write_bytes(content)


def _lock() -> None:
    connection = sqlite3.connect(NAME, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("INSERT INTO notes(text) VALUES ('never committed')")
    HELD.append(connection)


def _still_locked() -> str:
    """Say whether somebody else is kept out."""
    import subprocess
    import sys

    code = f"import sqlite3; sqlite3.connect({NAME!r}, timeout=0).execute('SELECT * FROM notes')"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    return "locked" if "locked" in ended.stderr else f"free {ended.stderr}"


def _write_ahead() -> None:
    connection = sqlite3.connect(NAME)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("INSERT INTO notes(text) VALUES ('ahead')")
    connection.commit()
    connection.execute("INSERT INTO notes(text) VALUES ('not yet')")
    HELD.append(connection)


def _attach() -> None:
    with sqlite3.connect(NAME) as connection:
        connection.execute("ATTACH 'side.db' AS side")
        connection.execute("CREATE TABLE side.more (a)")
        connection.execute("INSERT INTO side.more VALUES (7)")
    connection.close()


def _grow() -> None:
    with sqlite3.connect(NAME) as connection:
        connection.execute("CREATE TABLE big (data)")
        connection.executemany("INSERT INTO big VALUES (zeroblob(1000000))", [()] * 70)
    connection.close()


def _many_tables() -> None:
    with sqlite3.connect(NAME, isolation_level=None) as connection:
        connection.execute("BEGIN")
        for number in range(1100):
            connection.execute(f"CREATE TABLE t{number} (a)")
        connection.execute("COMMIT")
    connection.close()


def _many_statements() -> None:
    with sqlite3.connect(NAME) as connection:
        connection.executemany("INSERT INTO notes(text) VALUES (?)", [("x",)] * 10_050)
    connection.close()


def _odd_values() -> None:
    with sqlite3.connect(NAME) as connection:
        connection.execute("CREATE TABLE odd (a)")
        values = [b"\0\xff", None, float("inf"), float("nan"), 2**63 - 1, "a\0b"]
        connection.executemany("INSERT INTO odd VALUES (?)", [(value,) for value in values])
        connection.execute("INSERT INTO odd VALUES (CAST(x'61ff62' AS TEXT))")
    connection.close()


def _elsewhere() -> None:
    """Write by another program."""
    import subprocess
    import sys

    code = f"import sqlite3; c = sqlite3.connect({NAME!r}); "
    code += "c.execute(\"INSERT INTO notes(text) VALUES ('by another')\"); c.commit()"
    subprocess.run([sys.executable, "-c", code], check=True)


def _die() -> None:
    connection = sqlite3.connect(NAME)
    connection.execute("INSERT INTO notes(text) VALUES ('too late')")
    connection.commit()
    os.abort()


DEEDS = {
    "with parameters": _with_parameters,
    "by sqlalchemy": _by_sqlalchemy,
    "by aiosqlite": _by_aiosqlite,
    "traced by itself": _traced_by_itself,
    "remove": _remove,
    "replace": _replace,
    "link": _link,
    "corrupt": _corrupt,
    "lock": _lock,
    "still locked": _still_locked,
    "write ahead": _write_ahead,
    "attach": _attach,
    "grow": _grow,
    "many tables": _many_tables,
    "many statements": _many_statements,
    "odd values": _odd_values,
    "elsewhere": _elsewhere,
    "die": _die,
}


class Stateful:
    """Tells its state; each turn says what it shall be, as Python."""

    def __init__(self) -> None:
        self._told: Any = {}

    def reply(self, text: str) -> str:
        """Take on a state."""
        self._told = eval(text, {"inf": float("inf")})  # noqa: S307 - the test's own words
        return "ok"

    async def state(self) -> Any:
        """Give it, or raise it."""
        if isinstance(self._told, Exception):
            raise self._told
        return self._told


def stateful() -> Stateful:
    """Make one."""
    return Stateful()


class Closing:
    """Writes its last words when it is closed."""

    def reply(self, text: str) -> str:
        """Do nothing but answer."""
        return text

    def close(self) -> None:
        """Write."""
        agent("INSERT INTO notes(text) VALUES ('last words')")


def closing() -> Closing:
    """Make one."""
    return Closing()
