"""Asking the agent that a server has loaded which tools it says that it has."""

from __future__ import annotations

from typing import Any, Final

from evalkit.agents.declared import DeclaredTools
from evalkit.ledger import decode
from evalkit.sandbox.child import Event, Received
from evalkit.sandbox.pool import ForkServer

WHICH_TOOLS: Final = b"which tools?"
"""What a fork of the server is told in place of an order."""

_PATIENCE_S: Final = 10.0


def ask_for_tools(server: ForkServer) -> DeclaredTools | None:
    """Ask a server that runs no trial yet; ``None`` if its agent does not say.

    Where each process must load the agent by itself nobody is asked: it would take as
    long as a trial.
    """
    if server.mode != "fork":
        return None
    child = server.start(WHICH_TOOLS)
    events: list[Event] = []
    while not child.ended:
        heard = server.wait(_PATIENCE_S)
        if not heard:
            child.kill()
        events += heard
    try:
        told: Any = decode(b"".join(each.data for each in events if isinstance(each, Received)))
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
