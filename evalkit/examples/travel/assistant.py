"""The travel agent: a conversation with a model that may search, look and book.

Whatever goes wrong, the user learns what was done and what was not. Retries are
left to the SDK; what is still wrong after them is told, never papered over.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import anthropic
import httpx2

from .tools import TOOLS, run_tool
from .world import NotPossible, World

if TYPE_CHECKING:
    from anthropic.types import Message, MessageParam, ToolResultBlockParam, ToolUseBlock

MODEL: Final = "claude-sonnet-5-5"
MAX_STEPS: Final = 8
"""Model calls for one message of the user; an agent that needs more goes round in circles."""

RULES: Final = (
    "You are a travel agent. Use your tools; never guess flights or weather.",
    "If the user sets a condition, check it first, and book only if it holds.",
    "If it is unclear what to book, search and offer options instead of booking.",
    "Say that a flight is booked only after the tool book has confirmed it.",
)

_logger: Final = logging.getLogger(__name__)


class Unfinished(Exception):
    """The model gave no usable answer; the text tells the user why."""


class TravelAgent:
    """One user's conversation.

    ``TRAVEL_TIMEOUT_S`` and ``TRAVEL_MAX_RETRIES`` in the environment set how long
    it waits for the model, and how often the SDK tries again.
    """

    expected_errors: tuple[type[Exception], ...] = (
        anthropic.APIError,
        httpx2.TransportError,  # a stream that breaks is no error of the SDK's own
        ValueError,  # nor is an answer that is no JSON
    )

    def __init__(self) -> None:
        self.client = anthropic.Anthropic(
            timeout=float(os.environ.get("TRAVEL_TIMEOUT_S", "20")),
            max_retries=int(os.environ.get("TRAVEL_MAX_RETRIES", "2")),
        )
        self.rules: tuple[str, ...] = RULES
        self.world = World.from_environment()
        self.messages: list[MessageParam] = []

    def reply(self, text: str) -> str:
        """Answer one message of the user."""
        n_before = len(self.world.bookings)
        self.messages.append({"role": "user", "content": text})
        try:
            answer = self.converse()
        except Unfinished as problem:
            answer = self.account_for(problem, n_before)
        self.messages.append({"role": "assistant", "content": answer})
        return answer

    def close(self) -> None:
        """End the conversation."""
        self.client.close()

    def converse(self) -> str:
        """Let the model use tools until it answers."""
        for _ in range(MAX_STEPS):
            message = self.ask()
            if message.stop_reason != "tool_use":
                return text_of(message)
            self.messages.append({"role": "assistant", "content": message.content})
            self.messages.append({"role": "user", "content": self.results_for(message)})
        raise Unfinished(f"I needed more than {MAX_STEPS} steps")

    def ask(self) -> Message:
        """Get a whole answer from the model."""
        try:
            message = self.send()
        except self.expected_errors as error:
            _logger.error("model call failed: %r", error)
            raise Unfinished(why_failed(error)) from error
        self.check(message)
        return message

    def send(self) -> Message:
        """Send the conversation to the model."""
        message: Message = self.client.messages.create(**self.request())
        return message

    def request(self) -> dict[str, Any]:
        """Say what to send."""
        return {
            "model": MODEL,
            "max_tokens": 1024,
            "system": " ".join(self.rules),
            "tools": TOOLS,
            "messages": self.messages,
        }

    def check(self, message: Message) -> None:
        """Refuse an answer that must not be acted on."""
        problem = _STOPPED_BY.get(message.stop_reason)
        if problem:
            _logger.error("model answer of no use: stop_reason %s", message.stop_reason)
            raise Unfinished(problem)

    def results_for(self, message: Message) -> list[ToolResultBlockParam]:
        """Run the tools that the model asks for."""
        return [self.result_of(part) for part in message.content if part.type == "tool_use"]

    def result_of(self, use: ToolUseBlock) -> ToolResultBlockParam:
        """Run one tool; what goes wrong is for the model to know."""
        try:
            content = self.run(use.name, use.input)
        except NotPossible as problem:
            return {
                "type": "tool_result",
                "tool_use_id": use.id,
                "content": str(problem),
                "is_error": True,
            }
        return {"type": "tool_result", "tool_use_id": use.id, "content": content}

    def run(self, name: str, args: Mapping[str, object]) -> str:
        """Run a tool by name."""
        return run_tool(self.world, name, args)

    def account_for(self, problem: Unfinished, n_before: int) -> str:
        """Tell the user what went wrong, and what was done before that."""
        made = self.world.bookings[n_before:]
        booked = " and ".join(f"{one.flight_id} for {one.date}" for one in made)
        done = f"Before that I booked {booked}." if made else "I did not book anything."
        return f"Sorry, I could not finish this: {problem}. {done}"


class StreamingTravelAgent(TravelAgent):
    """The same, with answers that are streamed."""

    def send(self) -> Message:
        """Send the conversation to the model, and collect what it streams."""
        with self.client.messages.stream(**self.request()) as stream:
            return stream.get_final_message()


def text_of(message: Message) -> str:
    """Give what the model says."""
    text = "".join(part.text for part in message.content if part.type == "text")
    if not text.strip():
        raise Unfinished("the model gave an empty answer")
    return text


_STOPPED_BY: Final = {
    # A stream that ends in the middle, but cleanly, raises nothing in the SDK.
    None: "the model's answer broke off",
    "max_tokens": "the model's answer was too long and was cut off",
    "refusal": "the model declined to answer",
}
"""Stop reasons of answers that must not be acted on, with what the user is told."""


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
