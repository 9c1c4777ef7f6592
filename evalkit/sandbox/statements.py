"""The SQL that a process executes, told as it happens.

Every connection that ``sqlite3.connect`` makes to a file is told of, whatever is on top
of it (SQLAlchemy, aiosqlite, Django), with the values in place of the parameters. An
agent that traces its own connections is told as before. Not covered: connections made
by ``sqlite3.Connection(...)``, apsw, and other programs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from evalkit.sandbox import sqlite

Tell = Callable[[str], object]
"""Takes a statement."""

_FACTORY: Final = 5
_URI: Final = 7
"""Positions among the arguments of ``sqlite3.connect``."""
_KEY: Final = "_evalkit_told"


def watch(teller: Callable[[str | None], Tell | None]) -> None:
    """Have statements told from now on.

    Parameters
    ----------
    teller
        Called with the whole path of each database that is opened, ``None`` for one in
        memory; gives what takes its statements, or ``None`` where nobody wants them.
    """
    plain = sqlite.open_plain_connection

    def opened(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        given = _traceable(args, kwargs)
        connection = plain(*given, **kwargs)
        tell = teller(_path(args, kwargs))
        if tell is not None:
            _told_by(connection).tell = tell
        return connection

    sqlite.open_by(opened)
    sqlite.install()


def unwatch() -> None:
    """Tell nobody any more; connections that are open go on telling."""
    sqlite.open_by(None)


class _Told:
    """The one callback of a connection: for evalkit, and for whom the agent has set."""

    __slots__ = ("tell", "theirs")

    def __init__(self) -> None:
        self.tell: Tell | None = None
        self.theirs: Tell | None = None

    def __call__(self, statement: str) -> None:
        if self.tell is not None:
            self.tell(statement)
        if self.theirs is not None:
            self.theirs(statement)


def _told_by(connection: sqlite3.Connection) -> _Told:
    """Give the callback of a connection, which it must not keep from being closed."""
    told: _Told | None = getattr(connection, _KEY, None)
    if told is None:
        told = _Told()
        if isinstance(connection, _Traced):
            setattr(connection, _KEY, told)
        sqlite3.Connection.set_trace_callback(connection, told)
    return told


class _Traced(sqlite3.Connection):
    """A connection whose callback the agent may set, and does not lose ours by it."""

    def set_trace_callback(self, trace_callback: Tell | None) -> None:
        """Set the agent's own callback."""
        _told_by(self).theirs = trace_callback


_classes: Final[dict[type, type]] = {}


def _traced(kind: type) -> type:
    """Give the class of connections that does what another one does, and is traced."""
    if kind not in _classes:
        _classes[kind] = _traced_class(kind)
    return _classes[kind]


def _traced_class(kind: type) -> type:
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    bases: tuple[type, ...] = (_Traced,) if kind is sqlite3.Connection else (_Traced, kind)
    return type(kind.__name__, bases, {**names, "__doc__": kind.__doc__})


def _traceable(args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
    """Put a traced class in place of the one that was asked for; what is no class stays."""
    is_placed = len(args) > _FACTORY
    asked: Any = args[_FACTORY] if is_placed else kwargs.get("factory", sqlite3.Connection)
    if not (isinstance(asked, type) and issubclass(asked, sqlite3.Connection)):
        return args
    if is_placed:
        return (*args[:_FACTORY], _traced(asked), *args[_FACTORY + 1 :])
    kwargs["factory"] = _traced(asked)
    return args


def _path(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Give the whole path of what is opened; ``None`` if it is in memory."""
    name = os.fsdecode(args[0] if args else kwargs["database"])
    is_uri = args[_URI] if len(args) > _URI else kwargs.get("uri", False)
    if is_uri and name.startswith("file:"):
        parts = urlsplit(name)
        if parse_qs(parts.query).get("mode") == ["memory"]:
            return None
        name = unquote(parts.path)
    if name in ("", ":memory:"):
        return None
    return os.path.realpath(name)
