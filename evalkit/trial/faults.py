"""What an agent raised in its conversation: whose fault it is, in words."""

from __future__ import annotations

import traceback
from typing import Final

from evalkit.agents import BadReplyError
from evalkit.errors import AgentError, LedgerError
from evalkit.grade import Ending

_TRACEBACK_LINES: Final = 12
_MAX_REASON: Final = 10_000


def fault_of(error: BaseException) -> Ending:
    """Say what went wrong, and whose fault it is."""
    match error:
        case BadReplyError():
            return Ending("failed", error.code, error.message)
        case LedgerError():
            return Ending("failed", "bad_reply", f"what the agent returned {error}")
        case AgentError():
            return Ending("incomplete", "agent_unavailable", str(error))
        case SystemExit():
            return Ending("failed", "agent_exited", f"the agent called sys.exit({error.code!r})")
    return Ending("failed", "agent_raised", _raised(error))


def _raised(error: BaseException) -> str:
    """Name what the agent raised, first line first, then where."""
    shown = traceback.format_exception(error, limit=-_TRACEBACK_LINES)
    return f"the agent raised {_one_line(error)}\n{_clipped(''.join(shown).rstrip())}"


def _one_line(error: BaseException) -> str:
    try:
        message = _clipped(str(error).split("\n", 1)[0])
    except BaseException:  # an exception whose __str__ raises is the agent's as well
        message = "(its message cannot be shown)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _clipped(text: str) -> str:
    """Leave out the middle of a text that nobody would read to its end."""
    if len(text) <= _MAX_REASON:
        return text
    return f"{text[: _MAX_REASON // 2]}\n...\n{text[-_MAX_REASON // 2 :]}"
