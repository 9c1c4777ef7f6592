"""An agent whose module asks the metadata service for credentials, and does without."""

from __future__ import annotations

import socket
from contextlib import suppress

with suppress(OSError):
    socket.create_connection(("169.254.169.254", 80), timeout=5)


def agent(text: str) -> str:
    """Repeat what the user says."""
    return text
