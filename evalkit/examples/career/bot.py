"""The copilot as a Telegram bot: updates in, by webhook or by polling, and replies out.

One update is handled after the other, each at most once; see
:mod:`~evalkit.examples.career.updates` for what happens when a crash comes between.
"""

from __future__ import annotations

import hmac
import json
import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final, NamedTuple

import httpx2

from . import onboarding
from .analysis import Analyst
from .assistant import Assistant
from .fetching import Fetcher
from .model import Model
from .privacy import redacted
from .resumes import ResumeProblem, ResumeReader
from .saving import Saver
from .settings import Settings
from .storage import Profile, Store
from .telegram import NotSent, Telegram
from .tools import Toolbox
from .turns import Turn
from .updates import OPEN, Ledger

PATH: Final = "/telegram/webhook"
MAX_TEXT_CHARS: Final = 2_000
_MAX_UPDATE_BYTES: Final = 1024 * 1024
_PAUSE_S: Final = 1.0

_logger: Final = logging.getLogger(__name__)


class Incoming(NamedTuple):
    """One message, as it arrives."""

    update_id: int
    user_id: int
    chat_id: int
    text: str
    """Without contact data."""
    file_id: str = ""
    """Of a document; empty if there is none."""
    file_size: int = 0

    @classmethod
    def from_update(cls, update: Mapping[str, Any]) -> Incoming | None:
        """Read an update of Telegram's; ``None`` if it is no message of a user.

        Raises
        ------
        LookupError, TypeError, ValueError
            If it is no update at all.
        """
        update_id, message = int(update["update_id"]), update.get("message")
        if not isinstance(message, dict) or "from" not in message:
            return None
        document = message.get("document") or {}
        return cls(
            update_id,
            message["from"]["id"],
            message["chat"]["id"],
            redacted(message.get("text") or message.get("caption") or "").strip(),
            document.get("file_id", ""),
            document.get("file_size", 0),
        )


class Copilot:
    """All parts of a copilot, put together.

    Parameters
    ----------
    settings
        How it runs.
    """

    store_type: type[Store] = Store
    ledger_type: type[Ledger] = Ledger
    telegram_type: type[Telegram] = Telegram
    fetcher_type: type[Fetcher] = Fetcher
    model_type: type[Model] = Model
    resumes_type: type[ResumeReader] = ResumeReader
    saver_type: type[Saver] = Saver
    analyst_type: type[Analyst] = Analyst
    toolbox_type: type[Toolbox] = Toolbox
    assistant_type: type[Assistant] = Assistant

    def __init__(self, settings: Settings) -> None:
        context = ssl.create_default_context()
        self.settings = settings
        self.store = self.store_type(settings.database)
        self.ledger = self.ledger_type(self.store)
        self.http = httpx2.Client(verify=context)
        self.telegram = self.telegram_type(self.http, settings.token, api_url=settings.api_url)
        self.model = self.model_type(settings, context)
        self.resumes = self.resumes_type()
        self.saver = self.saver_type(self.store, self.make_fetcher())
        self.analyst = self.analyst_type(self.store, self.model)
        self.toolbox = self.toolbox_type(self.store, saver=self.saver, analyst=self.analyst)
        self.assistant = self.assistant_type(self.store, self.model, self.toolbox)

    def make_fetcher(self) -> Fetcher:
        """Make what fetches pages."""
        return self.fetcher_type(
            self.http,
            self.settings.job_hosts,
            max_bytes=self.settings.max_page_bytes,
            timeout_s=self.settings.fetch_timeout_s,
        )

    def close(self) -> None:
        """Close what is open."""
        self.model.close()
        self.http.close()
        self.store.close()

    def handle(self, update: Mapping[str, Any]) -> None:
        """Handle an update, unless that was done before.

        Raises
        ------
        NotSent
            If the reply did not get through; the update should come again.
        LookupError, TypeError, ValueError
            If it is no update at all.
        """
        incoming = Incoming.from_update(update)
        if incoming is None:
            return
        entry = self.ledger.take(incoming.update_id, incoming.chat_id)
        if entry.state not in OPEN:
            _logger.info("update %d: came again, was %s", incoming.update_id, entry.state)
            if entry.state == "sending":
                self.ledger.move(incoming.update_id, "unsure")
            return
        reply = entry.reply if entry.state == "ready" else self.work(incoming)
        self.send(incoming, reply or "")

    def work(self, incoming: Incoming) -> str:
        """Find the reply to a message, and record it together with its effects."""
        turn = Turn(incoming.user_id, incoming.chat_id, incoming.text)
        try:
            reply = self.reply(turn, incoming)
        except Exception as error:  # a mistake of ours must not make the update come for ever
            # Only the name: messages of errors quote what users said.
            _logger.error("update %d: %s", incoming.update_id, type(error).__name__)
            turn.effects.clear()
            reply = "Sorry, something went wrong on my side, and I could not finish this."
        with self.store.transaction():
            for effect in turn.effects:
                effect()
            self.ledger.record(incoming.update_id, reply)
        return reply

    def send(self, incoming: Incoming, reply: str) -> None:
        """Send a recorded reply, at most once."""
        self.ledger.move(incoming.update_id, "sending")
        try:
            state = self.telegram.send_message(incoming.chat_id, reply)
        except NotSent:
            self.ledger.move(incoming.update_id, "ready")
            raise
        self.ledger.move(incoming.update_id, state)
        _logger.info("update %d: %s", incoming.update_id, state)

    # --- what is said -----------------------------------------------------------------------

    def reply(self, turn: Turn, incoming: Incoming) -> str:
        """Choose who answers: commands, the four questions, the resume reader, the model."""
        profile = self.store.profile(turn.user_id)
        if turn.text == "/delete":
            self.toolbox.delete_my_data(turn)
            return "I deleted everything that I knew about you."
        if profile is None:
            return self.take(turn, onboarding.begin(turn.user_id))
        if profile.stage != onboarding.DONE:
            return self.onboard(turn, profile)
        if incoming.file_id:
            return self.read_resume(turn, profile, incoming)
        if not turn.text or len(turn.text) > MAX_TEXT_CHARS:
            return f"I can read texts of up to {MAX_TEXT_CHARS} characters, and resumes as PDF."
        return self.assistant.reply(turn, profile)

    def onboard(self, turn: Turn, profile: Profile) -> str:
        """Go on with the questions; a link that comes too early is kept."""
        link = onboarding.link_in(turn.text)
        if link:
            self.saver.intend(turn, link)
            why = "I keep the link, and save it when we are done here."
            return self.take(turn, onboarding.ask_again(profile, why))
        if not turn.text or turn.text.startswith("/"):
            return self.take(turn, onboarding.ask_again(profile, "We are not done yet."))
        step = onboarding.advance(profile, turn.text)
        reply = self.take(turn, step)
        if step.profile.stage != onboarding.DONE:
            return reply
        return "\n".join((reply, *self.saver.save_pending(turn)))

    def take(self, turn: Turn, step: onboarding.Step) -> str:
        """Go on to where a step leads."""
        turn.later(partial(self.store.put_profile, step.profile))
        return step.reply

    def read_resume(self, turn: Turn, profile: Profile, incoming: Incoming) -> str:
        """Read a document, and keep its text."""
        most = self.settings.max_resume_bytes
        try:
            if incoming.file_size > most:
                raise ResumeProblem("too_large")
            data = self.telegram.download(incoming.file_id, max_bytes=most)
            resume = self.resumes.read(data)
        except ResumeProblem as problem:
            _logger.warning("resume: %s", problem.category)
            return f"I could not read your resume: {problem}. I did not keep anything of it."
        turn.later(partial(self.store.put_profile, replace(profile, resume=resume.text)))
        part = f"the first {resume.n_pages} pages of " if resume.is_cut else ""
        return f"I have read {part}your resume, and left out addresses and numbers."


# --- webhook and polling ---------------------------------------------------------------------


def serve(copilot: type[Copilot] = Copilot) -> None:
    """Serve Telegram's webhook until the process ends."""
    settings = _start()
    handler = partial(_Handler, copilot(settings))
    with HTTPServer((settings.host, settings.port), handler) as server:
        server.serve_forever()


def poll(copilot: type[Copilot] = Copilot) -> None:
    """Ask Telegram for updates until the process ends."""
    bot, offset = copilot(_start()), 0
    while True:
        try:
            for update in bot.telegram.get_updates(offset):
                bot.handle(update)
                offset = update["update_id"] + 1
        except (httpx2.HTTPError, NotSent, ValueError, LookupError, TypeError) as error:
            _logger.error("poll: %s", type(error).__name__)
            time.sleep(_PAUSE_S)


def _start() -> Settings:
    """Read the settings, and log what may be logged."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    for name in ("httpx2", "httpcore2", "anthropic", "pypdf"):  # they log addresses, token included
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return Settings.from_environment()


class _Handler(BaseHTTPRequestHandler):
    """One request to the webhook."""

    timeout = 10

    def __init__(self, copilot: Copilot, *args: Any) -> None:
        self._copilot = copilot
        super().__init__(*args)

    def do_POST(self) -> None:
        """Handle the update; it comes again unless the status is 200."""
        self.send_response(self._status())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _status(self) -> int:
        secret = self._copilot.settings.secret.encode()
        given = self.headers.get("X-Telegram-Bot-Api-Secret-Token", "").encode()
        if self.path != PATH:
            return 404
        if secret and not hmac.compare_digest(given, secret):
            return 403
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_UPDATE_BYTES:
            return 413
        try:
            self._copilot.handle(json.loads(self.rfile.read(int(length))))
        except NotSent:
            return 503
        except (ValueError, LookupError, TypeError) as error:
            _logger.error("webhook: %s", type(error).__name__)
            return 400
        return 200

    def log_message(self, *_: object) -> None:
        """Log nothing: what matters is logged elsewhere."""
