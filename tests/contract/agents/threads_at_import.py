"""An agent whose module starts a thread, as an exporter or a connection pool does."""

from __future__ import annotations

import threading
import time

_EXPORTER = threading.Thread(target=time.sleep, args=(3600,), daemon=True)
_EXPORTER.start()


def agent(text: str) -> str:
    """Say whether the thread is there, as the module's author expects."""
    return f"{text}: {_EXPORTER.is_alive()}"
