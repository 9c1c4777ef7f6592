"""A caller that the tests kill: starts trials, says so, and waits for ever.

Usage: ``caller.py MODE SITUATION``, with the entries of the tests beside it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from evalkit.sandbox.child import Received
from evalkit.sandbox.pool import ForkServer

if __name__ == "__main__":
    _, mode, situation = sys.argv
    prepare = "entries:prepare_announced_hang" if situation == "importing" else ""
    path = [*sys.path, str(Path(__file__).parent)]
    with ForkServer("entries:obey", prepare=prepare, path=path, mode=mode) as server:  # type: ignore[arg-type]
        heard = 0
        for action in (b"hang", b"daemon", b"child_that_ignores_sigterm"):
            server.start(action)
        while heard < 3:
            heard += sum(isinstance(event, Received) for event in server.wait())
        if situation == "forked" and os.fork() == 0:
            time.sleep(20)  # keeps the caller's end of the socket open
            os._exit(0)
        os.write(1, b"ready")
        time.sleep(1000)
