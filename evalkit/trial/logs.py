"""What an agent logs with Python's ``logging``, as events with their level."""

from __future__ import annotations

import logging

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
