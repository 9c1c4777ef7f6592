"""How a trial's events become lines of its ledger, and whose time that takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from evalkit.agents import BadReplyError
from evalkit.ledger import Event, event_line

MAX_EVENT_BYTES: Final = 20_000_000
"""What one call, reply or log of an agent may take in the ledger."""


class AgentClock:
    """Seconds since the trial began, without those that it waited for evalkit."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._stands_at: float | None = None

    def __call__(self) -> float:
        """Give the time."""
        if self._stands_at is not None:
            return self._stands_at
        return time.monotonic() - self._started

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Let no time pass."""
        at = self._stands_at = self()
        try:
            yield
        finally:
            self._stands_at = None
            self.go_on_from(at)

    def go_on_from(self, seconds: float) -> None:
        """Go back to a time: what has passed since does not count."""
        self._started = time.monotonic() - seconds


class Pen:
    """Writes events down as lines; the time that this takes is not the agent's."""

    def __init__(self, emit: Callable[[bytes], None], clock: AgentClock) -> None:
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._held: list[bytes] = []
        self._is_holding = False

    def write(self, event: Event) -> None:
        """Write one event."""
        asked_at = self._clock()
        try:
            line = _bounded_line(event)
            with self._lock:
                self._held.append(line)
                self._flush()
        finally:
            self._clock.go_on_from(asked_at)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Keep the lines of what belongs together, and emit them at once."""
        self._is_holding = True
        try:
            yield
        finally:
            self._is_holding = False
            asked_at = self._clock()
            with self._lock:
                self._flush()
            self._clock.go_on_from(asked_at)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Do what is evalkit's own; the time that it takes is not the agent's."""
        with self._clock.standing(), self.together():
            yield

    def _flush(self) -> None:
        if self._held and not self._is_holding:
            lines, self._held = b"".join(self._held), []
            self._emit(lines)


def _bounded_line(event: Event) -> bytes:
    line = event_line(event)
    if len(line) > MAX_EVENT_BYTES:
        raise BadReplyError(
            "reply_too_large",
            f"the agent returned a trace with a {event.kind} of {len(line):,} bytes; "
            f"one may have at most {MAX_EVENT_BYTES:,}",
        )
    return line
