"""SQLite's own ``now`` and ``random()``, made to follow the trial's clock and stream.

The functions that read time or randomness are replaced on every connection that
``sqlite3.connect`` makes, whatever is on top of it (SQLAlchemy, aiosqlite, Django);
defaults such as ``DEFAULT CURRENT_TIMESTAMP`` follow, too. Not covered: connections
made by ``sqlite3.Connection(...)``, apsw, and other programs.
"""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

_open: Final[Callable[..., sqlite3.Connection]] = sqlite3.connect
_Value = str | bytes | int | float | None

# Function -> position of the time among its arguments.
_TIME_FUNCTIONS: Final = {
    "datetime": 0,
    "date": 0,
    "time": 0,
    "julianday": 0,
    "unixepoch": 0,
    "strftime": 1,
}
_WORDS: Final = {
    "current_timestamp": "%Y-%m-%d %H:%M:%S",
    "current_date": "%Y-%m-%d",
    "current_time": "%H:%M:%S",
}


Opener = Callable[..., sqlite3.Connection]


class _Following:
    """What connections follow; nothing, until a trial says so."""

    stream: random.Random | None = None
    is_on: bool = False
    opener: Opener = staticmethod(_open)


def install() -> None:
    """Replace ``sqlite3.connect``, in the server and before the agent takes it.

    It changes nothing until :func:`follow` is called.
    """
    for module in (sqlite3, sqlite3.dbapi2):
        vars(module)["connect"] = _connect


def follow(stream: random.Random | None) -> None:
    """Have connections follow this process's clock, and ``random()`` a stream."""
    _Following.is_on = True
    _Following.stream = stream
    install()


def open_by(opener: Opener | None) -> None:
    """Have connections opened by another function from now on; ``None`` for SQLite's own."""
    _Following.opener = staticmethod(opener or _open)


def open_plain_connection(*args: Any, **kwargs: Any) -> sqlite3.Connection:
    """Open a database as ``sqlite3.connect`` did before anybody replaced it."""
    return _open(*args, **kwargs)


def open_plain(*args: Any, **kwargs: Any) -> sqlite3.Connection:
    """Open a database for evalkit itself: nobody watches, and no transaction is begun."""
    return _open(*(args or (":memory:",)), isolation_level=None, **kwargs)


def _connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
    connection = _Following.opener(*args, **kwargs)
    if _Following.is_on:
        replace_functions(connection, stream=_Following.stream)
    return connection


def _now() -> datetime:
    return datetime.now(UTC)


def replace_functions(
    connection: sqlite3.Connection,
    *,
    now: Callable[[], datetime] = _now,
    stream: random.Random | None = None,
) -> None:
    """Replace what reads time or randomness on one connection.

    Parameters
    ----------
    connection
        Where SQL is executed.
    now
        Gives the time; by default the process's own clock does.
    stream
        Randomness; ``None`` leaves SQLite's own.
    """
    create = connection.create_function
    # Deterministic, although they are not quite: only then may a default or index use them.
    for name, form in _WORDS.items():
        create(name, 0, _word(form, now), deterministic=True)
    for name, position in _TIME_FUNCTIONS.items():
        create(name, -1, _time_function(name, position, now=now), deterministic=True)
    if stream is not None:
        create("random", 0, lambda: stream.getrandbits(64) - 2**63)
        create("randomblob", 1, lambda size: stream.randbytes(max(1, int(size or 0))))


def _word(form: str, now: Callable[[], datetime]) -> Callable[[], str]:
    """Return a function for one of SQL's time words."""
    return lambda: now().strftime(form)


def _time_function(
    name: str, position: int, *, now: Callable[[], datetime]
) -> Callable[..., _Value]:
    """Return a function that puts the clock's time where ``now`` stands, and lets SQLite go on."""

    def function(*args: _Value) -> _Value:
        given = [*args]
        if len(given) <= position:
            given += ["now"] * (position + 1 - len(given)) if name != "strftime" or given else []
        if len(given) > position and _is_now(given[position]):
            given[position] = now().strftime("%Y-%m-%d %H:%M:%S.%f")
        return _original(name, given)

    return function


def _is_now(value: _Value) -> bool:
    return isinstance(value, str) and value.lower() == "now"


class _Originals(threading.local):
    """A connection of each thread's own, with SQLite's own functions."""

    def __init__(self) -> None:
        self.connection = _open(":memory:")


_originals: _Originals | None = None


def _original(name: str, args: list[_Value]) -> _Value:
    """Call one of SQLite's own functions."""
    global _originals
    if _originals is None:
        _originals = _Originals()
    marks = ",".join("?" * len(args))
    value: _Value
    (value,) = _originals.connection.execute(f"select {name}({marks})", args).fetchone()
    return value
