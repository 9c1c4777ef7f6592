"""Asking the model: whole answers only. Half of one is never acted on, nor passed on.

Retries are the SDK's. It does not notice all that can go wrong: a stream that ends
early and cleanly raises nothing, and arguments of a tool that break off become ``{}``.
"""

from __future__ import annotations

import json
import logging
import ssl
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anthropic
import httpx2

from .settings import Settings

if TYPE_CHECKING:
    from anthropic.lib.streaming import MessageStream
    from anthropic.types import Message

MODEL: Final = "claude-sonnet-5-5"
MAX_TOKENS: Final = 1024

_logger: Final = logging.getLogger(__name__)


class Unfinished(Exception):
    """The model gave no usable answer; the text tells the user why."""


class Answer(NamedTuple):
    """A whole answer."""

    message: Message
    broken: frozenset[str]
    """Ids of tool uses whose arguments broke off."""

    @property
    def text(self) -> str:
        """What the model says.

        Raises
        ------
        Unfinished
            If that is nothing.
        """
        text = "".join(part.text for part in self.message.content if part.type == "text").strip()
        if not text:
            raise Unfinished("the model gave an empty answer")
        return text


class Model:
    """The way to the model; one client for all that is asked.

    Parameters
    ----------
    settings
        How long to wait, and how often to try.
    context
        Which certificates are trusted.
    """

    expected_errors: tuple[type[Exception], ...] = (
        anthropic.APIError,
        httpx2.TransportError,  # a stream that breaks is no error of the SDK's own
        ValueError,  # nor is an answer that is no JSON
    )

    def __init__(self, settings: Settings, context: ssl.SSLContext) -> None:
        self.client = anthropic.Anthropic(
            timeout=settings.model_timeout_s,
            max_retries=settings.model_retries,
            http_client=anthropic.DefaultHttpxClient(verify=context),
        )

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def ask(self, **request: Any) -> Answer:
        """Get a whole answer.

        Raises
        ------
        Unfinished
            If there is none.
        """
        try:
            answer = self.send(request)
        except self.expected_errors as error:
            _logger.error("model: %s", type(error).__name__)
            raise Unfinished(why_failed(error)) from error
        self.check(answer.message)
        return answer

    def send(self, request: Mapping[str, Any]) -> Answer:
        """Send a request, and collect what is streamed."""
        told = {"model": MODEL, "max_tokens": MAX_TOKENS, **request}
        with self.client.messages.stream(**told) as stream:
            raw = self.collect(stream)
            message = stream.get_final_message()
        broken = (message.content[index] for index, text in raw.items() if not _is_whole(text))
        return Answer(message, frozenset(part.id for part in broken if part.type == "tool_use"))

    def collect(self, stream: MessageStream[None]) -> Mapping[int, str]:
        """Read a stream to its end; give the arguments of tools as they came, by block."""
        raw: dict[int, str] = defaultdict(str)
        last = ""
        for event in stream:
            last = event.type
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                raw[event.index] += event.delta.partial_json
        if last != "message_stop":
            _logger.error("model: the stream ended without an end")
            raise Unfinished("the model's answer broke off")
        return raw

    def check(self, message: Message) -> None:
        """Refuse an answer that must not be acted on."""
        problem = _STOPPED_BY.get(message.stop_reason)
        if problem:
            _logger.error("model: stop_reason %s", message.stop_reason)
            raise Unfinished(problem)


_STOPPED_BY: Final = {
    None: "the model's answer broke off",
    "max_tokens": "the model's answer was too long and was cut off",
    "refusal": "the model declined to answer",
}
"""Stop reasons of answers that must not be acted on, with what the user is told."""


def _is_whole(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def why_failed(error: Exception) -> str:
    """Say in the user's words why there was no answer."""
    match error:
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            return "the model did not answer in time"
        case anthropic.APIConnectionError() | httpx2.TransportError():
            return "the connection to the model was lost"
        case anthropic.APIStatusError(status_code=status):
            return _refused(status)
    return "the model's answer could not be read"


def _refused(status: int) -> str:
    """Say what a status of the model's service means."""
    if status == 429:
        return "the model gets too many requests at the moment"
    if status in (503, 529):
        return "the model is overloaded at the moment"
    return f"the model's service reported an error ({status})"
