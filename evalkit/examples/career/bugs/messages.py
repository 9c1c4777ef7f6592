"""Mistakes with updates, replies, and what must survive a restart."""

# ruff: noqa: N801 - the classes are named like the mistakes that they are

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from evalkit.examples.career.bot import Copilot, Incoming
from evalkit.examples.career.onboarding import Step
from evalkit.examples.career.settings import Settings
from evalkit.examples.career.storage import Profile, Store
from evalkit.examples.career.telegram import NotSent, Sent, Telegram
from evalkit.examples.career.turns import Turn
from evalkit.examples.career.updates import Entry, Ledger, State

_logger: Final = logging.getLogger(__name__)


class answered_twice(Copilot):
    """Keeps in memory which updates it has answered."""

    class ledger_type(Ledger):
        """Knows nothing of what was before the start."""

        def __init__(self, store: Store) -> None:
            super().__init__(store)
            self._entries: dict[int, Entry] = {}

        def take(self, update_id: int, chat_id: int) -> Entry:  # noqa: ARG002
            """Look it up here."""
            return self._entries.setdefault(update_id, Entry("seen", None))

        def record(self, update_id: int, reply: str) -> None:
            """Keep the reply here."""
            self._entries[update_id] = Entry("ready", reply)

        def move(self, update_id: int, state: State) -> None:
            """Note here how far it is."""
            self._entries[update_id] = self._entries[update_id]._replace(state=state)


class answered_before_work(Copilot):
    """Ticks an update off before it works on it, so a crash between loses the user's wish."""

    def handle(self, update: Mapping[str, Any]) -> None:
        """Tick it off at once."""
        incoming = Incoming.from_update(update)
        if incoming is not None and self._is_new(incoming):
            self.send(incoming, self.work(incoming))

    def _is_new(self, incoming: Incoming) -> bool:
        entry = self.ledger.take(incoming.update_id, incoming.chat_id)
        self.ledger.move(incoming.update_id, "answered")
        return entry.state == "seen"


class sends_again(Copilot):
    """Sends a message again whenever Telegram did not answer well."""

    class telegram_type(Telegram):
        """Takes "nobody knows" for "not sent"."""

        def _send(self, chat_id: int, text: str) -> Sent:
            state = super()._send(chat_id, text)
            if state == "unsure":
                raise NotSent(0.0)
            return state

    def handle(self, update: Mapping[str, Any]) -> None:
        """Give up in the end."""
        try:
            super().handle(update)
        except NotSent:
            _logger.warning("gave up")


class onboarding_in_memory(Copilot):
    """Writes a profile down when it is whole, and not before."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._profiles: dict[int, Profile] = {}

    def take(self, turn: Turn, step: Step) -> str:
        """Keep an unfinished profile in memory."""
        self._profiles[turn.user_id] = step.profile
        return super().take(turn, step) if step.profile.stage == "done" else step.reply

    def reply(self, turn: Turn, incoming: Incoming) -> str:
        """Go on with the profile in memory."""
        profile = self._profiles.get(turn.user_id)
        if profile is None or profile.stage == "done":
            return super().reply(turn, incoming)
        return self.onboard(turn, profile)
