"""The time that an agent sees: it starts where the scenario says, and moves by steps.

Between the steps it stands, so that two runs see the same times. ``time.monotonic``
and ``perf_counter`` run on: timeouts, sleeps and retries work. SQLite's own ``now``
follows (:mod:`evalkit.sandbox.sqlite`). Not covered: file times, numpy's
``datetime64("now")``, and other programs, which need :mod:`~evalkit.sandbox.faketime`.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evalkit.sandbox.faketime import ProgramTime

DEFAULT_TIME: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
"""When a scenario happens that does not say when (a Monday)."""
STEP_S: Final = 1.0
"""How far a model's reply moves the clock."""


class Clock:
    """The clock of this process, once it has been set.

    Parameters
    ----------
    at
        Where it starts; times without a zone are UTC.
    frozen
        Whether :meth:`tick` leaves it where it is.
    """

    def __init__(self, at: datetime = DEFAULT_TIME, *, frozen: bool = False) -> None:
        self._frozen = frozen
        moment = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        # A bare number: of a moment with a zone, time-machine would also set the process's.
        self._traveller = load().travel(int(moment.timestamp()), tick=False).start()
        if moment.microsecond:
            self._traveller.shift(timedelta(microseconds=moment.microsecond))
        time.tzset()  # the scenario may have set another zone than the server's
        self._programs: ProgramTime | None = None

    def tick(self) -> None:
        """Let one model reply's time pass; nothing when the clock is frozen."""
        if not self._frozen:
            self.advance(STEP_S)

    def advance(self, seconds: float) -> None:
        """Move the clock, frozen or not."""
        self._traveller.shift(timedelta(seconds=seconds))
        if self._programs is not None:
            self._programs.show(self.now.timestamp())

    def lead(self, programs: ProgramTime) -> None:
        """Have other programs see this time, too, from now on."""
        self._programs = programs
        programs.show(self.now.timestamp())

    @property
    def now(self) -> datetime:
        """The time that the agent sees."""
        return datetime.now(UTC)


def load() -> ModuleType:
    """Import what moves the clock; in the server, so that no trial has to."""
    if "time_machine" not in sys.modules:
        with _without_pytest():
            return importlib.import_module("time_machine")
    return sys.modules["time_machine"]


@contextmanager
def _without_pytest() -> Iterator[None]:
    """Keep time-machine from importing pytest: libraries behave differently beside it."""
    if "pytest" in sys.modules:
        yield
        return
    sys.modules["pytest"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["pytest"]
