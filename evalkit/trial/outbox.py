"""How a worker's events reach the controller: lines over a socket, safe when that matters.

A line goes out at once, so that it survives the process. What the gateway tells of
one request goes out together, and is acknowledged before the request is answered:
an empty line asks for that, one byte answers.
"""

from __future__ import annotations

import os
import socket
import threading
from typing import Final

ACKNOWLEDGE: Final = b""
"""The line that asks the controller to say that all before it is written."""
ACKNOWLEDGED: Final = b"k"
LEAVING: Final = b"!"
"""How lines begin that are not the ledger's: the process leaves, and (after a second one)
what it hands over."""


class Outbox:
    """The sending end of a trial's channel."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        """The scripted model and the world may both wait: each for its own acknowledgement."""
        self._held = bytearray()
        self._is_holding = False

    def put(self, line: bytes) -> None:
        """Send a line of the ledger, or keep it while lines are held."""
        # A process that the agent forked comes by here too; it must not speak for the trial.
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._held += line
            if not self._is_holding:
                self._flush()

    def hold(self) -> None:
        """Keep lines until :meth:`settle`."""
        self._is_holding = True

    def settle(self) -> None:
        """Send what is held, and return when the controller has written it."""
        with self._settling:
            with self._lock:
                self._is_holding = False
                self._held += ACKNOWLEDGE + b"\n"
                self._flush()
            self._channel.recv(len(ACKNOWLEDGED))

    def farewell(self) -> int:
        """Say that this process leaves, and let nobody send anything after that.

        Returns
        -------
        int
            A descriptor by which a fork can send the last word.
        """
        self._lock.acquire()  # for good
        self._held += LEAVING + b"\n"
        self._flush()
        return os.dup(self._channel.fileno())

    def _flush(self) -> None:
        self._channel.sendall(self._held)
        self._held.clear()
