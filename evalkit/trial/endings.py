"""How trials end that did not tell it themselves, in words."""

from __future__ import annotations

import signal

from evalkit.grade import Ending


def too_slow(deadline_s: float) -> Ending:
    """Say that an agent took longer than its deadline."""
    reason = (
        f"the agent was not done after {deadline_s:g} s; "
        "make it faster or give the scenario a longer `deadline`"
    )
    return Ending("failed", "deadline", reason)


def how_it_ended(status: int) -> str:
    """Say how a process ended."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
