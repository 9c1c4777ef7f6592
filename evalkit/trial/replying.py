"""Replies that are requests of the agent's to others: which ones, and what they say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from evalkit.agents import BadReplyError, Conversation
from evalkit.grade import Ending
from evalkit.ledger import JSON
from evalkit.matching.requests import request_matches
from evalkit.recording import Recorder
from evalkit.trace import Trace

_FORM: Final = "application/x-www-form-urlencoded"


class ReplyWatch:
    """Listens to the agent's requests to the outside, and tells which of them are replies.

    Parameters
    ----------
    request
        Which requests are replies, as the suite writes it.
    field
        Dotted path to the text.
    recorder
        Takes each reply, and what is wrong with a request that should be one.
    """

    def __init__(
        self,
        request: str,
        field: str,
        *,
        recorder: Recorder,
    ) -> None:
        self.request = request
        self._field = field
        self._recorder = recorder
        self._heard = threading.Condition()
        self._problem = ""
        self.n = 0
        """Replies so far."""

    def hear(self, told: Mapping[str, JSON]) -> None:
        """Take in one recorded request (the data of an ``http`` event)."""
        if not request_matches(self.request, told["method"], told["url"]):
            return
        text = text_of(told, self._field)
        if not isinstance(text, str):
            what = "no" if text is None else f"no text, but {type(text).__name__},"
            self._complain(f"{told['method']} {told['url']}: a reply with {what} `{self._field}`")
        elif self._recorder.n_turns:  # what it says before anybody spoke to it is no reply
            self._recorder.reply(text)
        with self._heard:
            self.n += 1
            self._heard.notify_all()

    def _complain(self, reason: str) -> None:
        self._problem = self._problem or reason
        turn = max(self._recorder.n_turns - 1, 0)
        told = {"fault": "bad_reply", "reason": reason, "turn": turn, "call": None}
        self._recorder.event("fault", {**told, "injected": False})

    def wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait for a moment, or until something is so; say whether it is."""
        with self._heard:
            return self._heard.wait_for(is_so, seconds)

    def finding(self) -> Ending | None:
        """Say what fails the trial, if anything does."""
        return Ending("failed", "bad_reply", self._problem) if self._problem else None


def text_of(told: Mapping[str, JSON], field: str) -> JSON:
    """Find a field of a request: in its JSON, its form or its query; ``None`` if it has none.

    Parameters
    ----------
    told
        Data of an ``http`` event: ``url``, ``headers``, ``json``, ``text``.
    field
        Dotted path; numbers are positions in lists.

    Examples
    --------
    >>> text_of({"url": "https://a.test/send", "json": {"m": [{"text": "Hi."}]}}, "m.0.text")
    'Hi.'
    >>> text_of({"url": "https://a.test/send?text=Hi.", "json": None, "text": None}, "text")
    'Hi.'
    """
    found = _at(told.get("json"), field)
    if found is None and _FORM in str((told.get("headers") or {}).get("content-type")):
        found = dict(parse_qsl(told.get("text") or "", keep_blank_values=True)).get(field)
    if found is None:
        query = urlsplit(told["url"]).query
        found = dict(parse_qsl(query, keep_blank_values=True)).get(field)
    return found


def _at(value: Any, field: str) -> JSON:
    for key in field.split("."):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def without_replies(conversation: Conversation, text: str) -> Trace:
    """Say something to an agent whose replies are no return values; what it returns is none.

    Raises
    ------
    BadReplyError
        If it breaks its protocol; to return nothing is no fault.
    """
    try:
        trace = conversation.reply(text)
    except BadReplyError as error:
        if not error.is_silence:
            raise
        trace = getattr(error, "trace", None) or Trace()
    return replace(trace, turns=())
