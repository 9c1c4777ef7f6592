"""What was said before, thread by thread: the chat is one, each analysis has its own."""

from __future__ import annotations

from typing import Final

from .storage import Store

MOST_MESSAGES: Final = 20
"""Messages of a thread that a model is reminded of."""


class NoThread(LookupError):
    """Something is to be remembered, and nobody said where."""


class Memory:
    """The conversation of one thread.

    Parameters
    ----------
    store
        Where it is kept.
    user_id
        Whose it is.
    thread_id
        Which one.

    Raises
    ------
    NoThread
        If there is none: what is said must not end up in somebody else's.
    """

    def __init__(self, store: Store, user_id: int, thread_id: str | None) -> None:
        if not thread_id:
            raise NoThread("a conversation needs a thread id")
        self._store = store
        self._user_id = user_id
        self._thread_id = thread_id

    def recall(self) -> list[tuple[str, str]]:
        """Give role and content of what was said last; the first is the user's."""
        said = self._store.messages(self._thread_id, most=MOST_MESSAGES)
        return said[1:] if said and said[0][0] != "user" else said

    def keep(self, role: str, content: str) -> None:
        """Remember what was said."""
        self._store.add_message(self._user_id, self._thread_id, role=role, content=content)
