"""What an agent logs is taken in, whatever it does to Python's logging."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Callable
from typing import Any

import pytest

from evalkit.trial.logs import LogTaker

Fresh = Callable[[], list[str]]


class Recorder:
    """Keeps events."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def event(self, kind: str, data: Any) -> None:
        """Keep one."""
        assert kind == "log"
        self.told.append(f"{data['level']} {data['logger']}: {data['text']}")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Give what makes the root logger as it is when a program starts, and listens to it.

    To be called in the test: pytest puts handlers of its own there after the fixtures.
    """

    def listen() -> list[str]:
        root, recorder = logging.getLogger(), Recorder()
        monkeypatch.setattr(root, "handlers", [])
        monkeypatch.setattr(root, "level", logging.WARNING)
        root.setLevel(logging.WARNING)
        monkeypatch.setattr(logging.Logger, "callHandlers", logging.Logger.callHandlers)
        LogTaker(recorder).listen()  # type: ignore[arg-type]
        return recorder.told

    return listen


def test_log_of_an_agent_that_sets_nothing(fresh: Fresh, capfd: pytest.CaptureFixture[str]) -> None:
    """Warnings are taken in, once: they are not printed besides."""
    told = fresh()
    logging.getLogger("a").warning("beware of %s", "dogs")
    logging.getLogger("a").info("all is well")
    assert told == ["WARNING a: beware of dogs"]
    assert capfd.readouterr() == ("", "")


def test_basic_config_works_as_it_does_elsewhere(
    fresh: Fresh, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its level holds, and its handler writes: nobody was there before it."""
    told = fresh()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("a").info("all is well")
    logging.getLogger("a").debug("too much")
    assert told == ["INFO a: all is well"]
    assert capfd.readouterr().err == "all is well\n"


@pytest.mark.parametrize("is_forced", [True, False])
def test_new_configuration_does_not_end_the_listening(fresh: Fresh, is_forced: bool) -> None:
    """Those that throw all handlers out have nothing of ours to throw out."""
    told = fresh()
    if is_forced:
        logging.basicConfig(level=logging.INFO, handlers=[logging.NullHandler()], force=True)
    else:
        logging.config.dictConfig(
            {"version": 1, "disable_existing_loggers": False, "root": {"level": "INFO"}}
        )
    logging.getLogger("a.b").info("still here")
    assert told == ["INFO a.b: still here"]


def test_what_does_not_reach_the_root_is_not_taken_in(fresh: Fresh) -> None:
    """A logger that passes nothing on says nothing to others."""
    told = fresh()
    logger = logging.getLogger("a.quiet")
    logger.propagate = False
    logger.error("for nobody")
    logger.propagate = True
    assert told == []


def test_message_whose_arguments_do_not_fit_is_kept(fresh: Fresh) -> None:
    """Half of it says more than nothing."""
    told = fresh()
    logging.getLogger("a").error("%d of %d", 1)
    assert told == ["ERROR a: %d of %d"]
