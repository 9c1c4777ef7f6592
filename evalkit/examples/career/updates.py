"""Which updates were seen and answered: a ledger on disk, written before anything is sent.

An update arrives until it is acknowledged, so it may arrive again after a crash::

    seen -> ready -> sending -> answered      (or refused, or unsure)

* ``seen``: work has begun. Again: it is done again, and has the same effects.
* ``ready``: the reply is recorded, and all effects are. Again: it is sent.
* ``sending``: a request may have left. Again: nothing, and nobody will ever know
  (``unsure``). A reply that nobody got is bad, one that comes twice is worse: each is sent
  at most once.
* ``answered``: done. The text of the reply is not kept.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from .storage import Store

State = Literal["seen", "ready", "sending", "unsure", "answered", "refused"]
OPEN: Final = frozenset({"seen", "ready"})
"""States in which something remains to be done."""


class Entry(NamedTuple):
    """What is known of one update."""

    state: State
    reply: str | None


class Ledger:
    """The updates of one copilot.

    Parameters
    ----------
    store
        Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def take(self, update_id: int, chat_id: int) -> Entry:
        """Note that an update arrived; give what is known of it."""
        statement = "INSERT OR IGNORE INTO updates VALUES (?, ?, 'seen', NULL, ?)"
        self._store.db.execute(statement, (update_id, chat_id, self._store.now()))
        query = "SELECT state, reply FROM updates WHERE update_id = ?"
        return Entry(*self._store.db.execute(query, (update_id,)).fetchone())

    def record(self, update_id: int, reply: str) -> None:
        """Keep the reply; in one transaction with what it tells of."""
        statement = "UPDATE updates SET state = 'ready', reply = ? WHERE update_id = ?"
        self._store.db.execute(statement, (reply, update_id))

    def move(self, update_id: int, state: State) -> None:
        """Note how far an update is."""
        keeps = "reply" if state in ("ready", "sending") else "NULL"
        statement = f"UPDATE updates SET state = ?, reply = {keeps} WHERE update_id = ?"
        self._store.db.execute(statement, (state, update_id))
