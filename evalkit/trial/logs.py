"""What an agent logs with Python's ``logging``, as events with their level.

Nothing is put among the agent's own handlers: one there would turn its
``logging.basicConfig`` into nothing, and its ``dictConfig`` would throw it out.
"""

from __future__ import annotations

import logging
from functools import partialmethod
from typing import Any

from evalkit.recording import Recorder


class LogTaker(logging.Handler):
    """Writes log records as events; what is printed is taken in by the controller."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(logging.INFO)
        self._recorder = recorder

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            text = record.getMessage()
        except (
            Exception
        ):  # arguments that do not fit the message: the message says more than nothing
            text = str(record.msg)
        told = {"level": record.levelname, "logger": record.name, "text": text}
        self._recorder.event("log", told)

    def listen(self) -> None:
        """Take in what reaches the root logger, whatever handlers the agent has or sets."""
        taken: Any = partialmethod(_call_handlers, taker=self, call=logging.Logger.callHandlers)
        logging.Logger.callHandlers = taken  # type: ignore[method-assign]


def _call_handlers(
    logger: logging.Logger, record: logging.LogRecord, *, taker: LogTaker, call: Any
) -> None:
    """Take in a record, then let the agent's handlers have it, if there are any."""
    if record.levelno >= taker.level and _reaches_root(logger):
        taker.handle(record)
    if logger.hasHandlers():  # else it would be printed, although it is in the ledger
        call(logger, record)


def _reaches_root(logger: logging.Logger) -> bool:
    while logger.parent is not None:
        if not logger.propagate:
            return False
        logger = logger.parent
    return True
