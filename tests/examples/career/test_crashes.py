"""What a crash, or a messenger that fails, leaves behind: nothing lost, nothing answered twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from evalkit.examples.career.bot import Copilot
from evalkit.examples.career.telegram import NotSent

Tell = Callable[..., str]


class Killed(BaseException):
    """Stands for kill -9: nothing after it happens."""


class MortalConnection:
    """A database connection that survives n statements, and not its next one's end."""

    def __init__(self, connection: Any, n: int) -> None:
        self._connection = connection
        self._n_left = n

    def execute(self, *args: Any) -> Any:
        """Execute a statement, and die after it; what was not committed is lost."""
        if self._n_left < 0:
            raise Killed
        result = self._connection.execute(*args)
        self._n_left -= 1
        if self._n_left < 0:
            self._connection.rollback()
            raise Killed
        return result


def test_killed_anywhere_nothing_is_lost_or_answered_twice(
    start: Callable[[], Copilot], around: Any, write: Any
) -> None:
    """After each statement of a save; the update comes again: one job, one reply at most."""
    with closing(start()) as bot:
        for number, said in enumerate(("/start", "Ada, engineer", "London", "SQL", "yes")):
            bot.handle(write.update(number, said))
    outcomes = set()
    for n in range(60):
        url = f"https://jobs.example.test/{n}"
        around.pages[f"/{n}"] = f"<title>Job {n}</title>"
        around.sent.clear()
        is_dead = killed_at(n, start(), write.update(100 + n, f"Save {url}"), around, write, url)
        again(start(), write.update(100 + n, f"Save {url}"), around, write, url)
        with closing(start()) as bot:
            assert [job.url for job in bot.store.jobs(7)].count(url) == 1, n
            assert bot.store.pending(7) == [], n
        assert len(around.sent) <= 1, n
        outcomes.add((is_dead, len(around.sent)))
        if not is_dead:
            break
    # Killed early: answered after all. Killed between "sending" and the message: at most once.
    assert outcomes == {(True, 1), (True, 0), (False, 1)}


def killed_at(n: int, bot: Any, update: Any, around: Any, write: Any, url: str) -> bool:
    """Handle an update and die at a statement; say whether that came."""
    around.model = [write.use("save_job", url=url), write.text("Saved.")]
    with closing(bot):
        bot.store.db = MortalConnection(real := bot.store.db, n)
        try:
            bot.handle(update)
        except Killed:
            return True
        finally:
            bot.store.db = real
    return False


def again(bot: Any, update: Any, around: Any, write: Any, url: str) -> None:
    """Handle an update that comes again."""
    around.model = [write.use("save_job", url=url), write.text("Saved.")]
    with closing(bot):
        bot.handle(update)


@pytest.mark.usefixtures("known")
def test_telegram_that_is_busy_is_asked_again(tell: Tell, around: Any, write: Any) -> None:
    """A message that certainly did not get through is sent again."""
    around.model = [write.text("Hi.")]
    around.telegram = [429, 429]
    assert tell("Hello") == "Hi."


@pytest.mark.usefixtures("known")
def test_reply_that_did_not_get_through_waits_for_the_update(
    copilot: Copilot, around: Any, write: Any
) -> None:
    """It is recorded, so the model is not asked again."""
    around.model = [write.text("Hi.")]
    around.telegram = [429, 429, 429]
    with pytest.raises(NotSent):
        copilot.handle(write.update(99, "Hello"))
    copilot.handle(write.update(99, "Hello"))
    assert around.replies[-1] == "Hi."


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("status", [0, 500, 403])
def test_reply_that_may_have_got_through_is_not_sent_again(
    copilot: Copilot, around: Any, write: Any, status: int
) -> None:
    """Where nobody knows, once is enough."""
    around.model = [write.text("Hi.")]
    around.telegram = [status]
    n_before = len(around.sent)
    copilot.handle(write.update(99, "Hello"))
    copilot.handle(write.update(99, "Hello"))
    assert len(around.sent) == n_before
