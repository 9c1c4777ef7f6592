"""How updates come in: by webhook or by polling; and what is set from outside."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import HTTPServer
from typing import Any

import httpx2
import pytest

from evalkit.examples.career import bot as bots
from evalkit.examples.career.bot import PATH, Copilot
from evalkit.examples.career.settings import Settings
from evalkit.examples.career.storage import Store
from evalkit.examples.career.telegram import NotSent


@pytest.fixture
def hook(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve the webhook, with a secret; give its address."""
    made: list[HTTPServer] = []
    ready = threading.Event()

    class Server(HTTPServer):
        def server_activate(self) -> None:
            super().server_activate()
            made.append(self)
            ready.set()

    monkeypatch.setattr(bots, "HTTPServer", Server)
    env = {
        "TELEGRAM_BOT_TOKEN": settings.token, "TELEGRAM_API_URL": settings.api_url,
        "COPILOT_DB": settings.database, "COPILOT_PORT": "0", "TELEGRAM_WEBHOOK_SECRET": "s3cret",
    }  # fmt: skip
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    opened: list[Copilot] = []

    class Watched(Copilot):
        def __init__(self, settings: Settings) -> None:
            super().__init__(settings)
            opened.append(self)

    def run() -> None:
        bots.serve(Watched)
        opened[0].close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    yield f"http://127.0.0.1:{made[0].server_port}"
    made[0].shutdown()
    thread.join(10)


@pytest.mark.parametrize(
    ("path", "secret", "body", "status"),
    [
        (PATH, "s3cret", {"update_id": 1, "message": {"from": {"id": 7}, "chat": {"id": 7}}}, 200),
        (PATH, "s3cret", {"update_id": 1, "edited_message": {}}, 200),
        (PATH, "s3cret", {"update_id": 1, "message": {"chat": {"id": 7}}}, 200),
        (PATH, "s3cret", [], 400),
        (PATH, "s3cret", {}, 400),
        (PATH, "s3cret", b"{", 400),
        (PATH, "s3cret", b" " * 2_000_000, 413),
        (PATH, "guess", {"update_id": 1}, 403),
        (PATH, "", {"update_id": 1}, 403),
        ("/", "s3cret", {"update_id": 1}, 404),
    ],
)
def test_webhook_answers_as_telegram_expects(
    hook: str, around: Any, path: str, secret: str, body: Any, status: int
) -> None:
    """200 for what is done with; what is refused was not even looked at."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"X-Telegram-Bot-Api-Secret-Token": secret}
    try:
        answer = httpx2.post(f"{hook}{path}", content=content, headers=headers)
    except httpx2.WriteError:  # it was refused before it was sent whole
        assert status == 413
        return
    assert answer.status_code == status
    assert len(around.sent) == (1 if status == 200 and "from" in body.get("message", {}) else 0)


def test_polling_goes_on_behind_what_was_handled(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    """An update that was handled is acknowledged by the next request; one that failed is not."""
    asked: list[int] = []
    handled: list[int] = []

    class Bot:
        def __init__(self, _: Settings) -> None:
            self.telegram = self

        def get_updates(self, offset: int) -> list[Any]:
            asked.append(offset)
            if len(asked) > 3:
                raise KeyboardInterrupt
            return [write.update(4), write.update(5)][offset == 5 :]

        def handle(self, update: Any) -> None:
            handled.append(update["update_id"])
            if handled == [4, 5]:
                raise NotSent(0)

    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", settings.token)
    monkeypatch.setattr(bots, "_PAUSE_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        bots.poll(partial(Bot))  # type: ignore[arg-type]
    assert asked == [0, 5, 6, 6]


def test_settings_come_from_the_environment() -> None:
    """What is not set has its default, and a token is needed."""
    env = {
        "TELEGRAM_BOT_TOKEN": "1:T",
        "COPILOT_JOB_HOSTS": " A.test, b.test,",
        "COPILOT_PORT": "9",
    }
    given = Settings.from_environment(env)
    assert (given.job_hosts, given.port) == (("a.test", "b.test"), 9)
    assert given.max_page_bytes == Settings("1:T").max_page_bytes
    with pytest.raises(KeyError, match="TELEGRAM_BOT_TOKEN"):
        Settings.from_environment({})


def test_store_is_made_where_the_settings_say(settings: Settings) -> None:
    """A copilot begins with an empty database."""
    with closing(Store(settings.database)) as store:
        assert store.profile(7) is None
