"""An agent whose module asks the metadata service for credentials, and needs them."""

from __future__ import annotations

import socket

socket.create_connection(("169.254.169.254", 80), timeout=5)


def agent(text: str) -> str:
    """Never come to this."""
    return text
