"""One message of a user, and what its handling leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .storage import Job


@dataclass(slots=True)
class Turn:
    """One message while it is handled."""

    user_id: int
    chat_id: int
    text: str
    effects: list[Callable[[], None]] = field(default_factory=list)
    """What happens in one transaction with the recording of the reply: it must not happen
    twice when the update comes again, nor be lost once the reply is there."""
    saved: list[Job] = field(default_factory=list)
    """Postings that were saved on the way."""
    is_forgotten: bool = False
    """Whether the user's data is deleted with the reply; then nothing more is kept."""

    @property
    def thread_id(self) -> str:
        """The conversation that it belongs to."""
        return f"chat:{self.chat_id}"

    def later(self, effect: Callable[[], None]) -> None:
        """Let something happen together with the reply."""
        if not self.is_forgotten:
            self.effects.append(effect)

    def end_with(self, effect: Callable[[], None]) -> None:
        """Let one thing happen and nothing else: the user wants to be forgotten."""
        self.effects[:] = [effect]
        self.is_forgotten = True
