"""What one who serves a trial has to say against it."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """Something that fails the trial, whatever the agent makes of it."""

    code: str
    """A reason code, such as ``unscripted_call``."""
    reason: str
    turn: int
    """0-based."""
    status: Literal["failed", "incomplete"] = "failed"
    """What becomes of the trial."""
