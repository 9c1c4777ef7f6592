"""What a conversation is known by, when another process goes on with it.

An agent that keeps what was said finds it again by the id of the conversation, and a turn
that comes twice by its number. So both go on where a trial's process is restarted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple


class Talk(NamedTuple):
    """Which conversation it is, and how far it was held."""

    id: str
    n_turns: int = 0
    """Turns that the agent was told."""


class _Earlier:
    """What this process goes on with."""

    talk: Talk | None = None


def go_on_with(talk: Talk) -> None:
    """Have the conversation of this process go on with an earlier one."""
    _Earlier.talk = talk if talk.id else None


def next_talk(make_id: Callable[[], str] | None = None) -> Talk:
    """Give what the conversation of this process is known by; a new id if it is the first.

    Parameters
    ----------
    make_id
        Makes a new id; by default from the randomness of the trial.
    """
    if _Earlier.talk is not None:
        return _Earlier.talk
    return Talk(make_id() if make_id is not None else new_conversation_id())


def new_conversation_id() -> str:
    """Make an id from the randomness of the trial."""
    return f"{random.getrandbits(64):016x}"
