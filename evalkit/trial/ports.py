"""A free port for the scripted model, where trials share the machine's loopback.

It is chosen before the agent is imported, because a client that a module builds
reads its address then; and it stays bound, so that no other trial takes it.
"""

from __future__ import annotations

import os
import socket

from evalkit.sandbox.environment import gateway_variables

_reserved: list[socket.socket] = []


def reserve_port() -> None:
    """Choose a free port and lead every client to it."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _reserved.append(holder)
    os.environ.update(gateway_variables(holder.getsockname()[1]))


def entered_port() -> int:
    """Give the reserved port free for the one who listens there; 0 if there is none."""
    if not _reserved:
        return 0
    with _reserved.pop() as holder:
        port: int = holder.getsockname()[1]
        return port
