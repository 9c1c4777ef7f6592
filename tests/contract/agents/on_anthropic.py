"""Agents on the anthropic SDK: plain, async, streaming, with a client of the module's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import tools

_BUILT_AT_IMPORT = anthropic.Anthropic()


def sync(text: str) -> str:
    """Call the API and wait."""
    return _converse(text, anthropic.Anthropic())


def built_at_import(text: str) -> str:
    """Do so with a client that existed before the trial did."""
    return _converse(text, _BUILT_AT_IMPORT)


def streaming(text: str) -> str:
    """Stream every answer."""
    client, conversation = anthropic.Anthropic(), _Conversation(text)
    while not conversation.answer:
        with client.messages.stream(**conversation.request()) as stream:
            conversation.take(stream.get_final_message())
    return conversation.answer


async def asynchronous(text: str) -> str:
    """Await every answer."""
    conversation = _Conversation(text)
    async with anthropic.AsyncAnthropic() as client:
        while not conversation.answer:
            conversation.take(await client.messages.create(**conversation.request()))
    return conversation.answer


async def async_streaming(text: str) -> str:
    """Await every event of every answer."""
    conversation = _Conversation(text)
    async with anthropic.AsyncAnthropic() as client:
        while not conversation.answer:
            async with client.messages.stream(**conversation.request()) as stream:
                conversation.take(await stream.get_final_message())
    return conversation.answer


def _converse(text: str, client: anthropic.Anthropic) -> str:
    conversation = _Conversation(text)
    while not conversation.answer:
        conversation.take(client.messages.create(**conversation.request()))
    return conversation.answer


class _Conversation:
    """Messages, and what the next request is."""

    def __init__(self, text: str) -> None:
        self.answer = ""
        self._messages: list[Any] = [{"role": "user", "content": text}]

    def request(self) -> dict[str, Any]:
        return {
            "model": tools.MODEL["anthropic"],
            "max_tokens": 1024,
            "system": tools.SYSTEM,
            "tools": [
                {
                    "name": name,
                    "description": function.__doc__,
                    "input_schema": tools.parameters(name),
                }
                for name, function in tools.TOOLS.items()
            ],
            "messages": self._messages,
        }

    def take(self, message: anthropic.types.Message) -> None:
        """Run what the model asks for, or take its answer."""
        if message.stop_reason != "tool_use":
            self.answer = "".join(part.text for part in message.content if part.type == "text")
            return
        self._messages.append({"role": "assistant", "content": message.content})
        self._messages.append({"role": "user", "content": list(_results(message))})


def _results(message: anthropic.types.Message) -> Iterator[dict[str, Any]]:
    for part in message.content:
        if part.type == "tool_use":
            content = tools.run(part.name, part.input)
            yield {"type": "tool_result", "tool_use_id": part.id, "content": content}
