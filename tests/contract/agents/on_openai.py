"""Agents on the openai SDK: Chat Completions and Responses, streaming and not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import tools

_BUILT_AT_IMPORT = openai.OpenAI()


def chat(text: str) -> str:
    """Use Chat Completions."""
    client = openai.OpenAI()

    def ask(messages: list[Any]) -> Any:
        completion = client.chat.completions.create(**_chat_request(messages))
        return completion.choices[0].message

    return _chat(text, ask)


def chat_streaming(text: str) -> str:
    """Use Chat Completions, streamed."""
    client = openai.OpenAI()

    def ask(messages: list[Any]) -> Any:
        with client.chat.completions.stream(**_chat_request(messages)) as stream:
            return stream.get_final_completion().choices[0].message

    return _chat(text, ask)


async def chat_asynchronous(text: str) -> str:
    """Use Chat Completions, awaited."""
    messages = _first(text)
    async with openai.AsyncOpenAI() as client:
        while True:
            completion = await client.chat.completions.create(**_chat_request(messages))
            message = completion.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages += _chat_results(message)


def responses(text: str) -> str:
    """Use Responses."""
    client = openai.OpenAI()
    return _responses(text, lambda items: client.responses.create(**_response_request(items)))


def built_at_import(text: str) -> str:
    """Use Responses, with a client that existed before the trial did."""
    create = _BUILT_AT_IMPORT.responses.create
    return _responses(text, lambda items: create(**_response_request(items)))


def responses_streaming(text: str) -> str:
    """Use Responses, streamed."""
    client = openai.OpenAI()

    def ask(items: list[Any]) -> Any:
        with client.responses.stream(**_response_request(items)) as stream:
            return stream.get_final_response()

    return _responses(text, ask)


def _chat(text: str, ask: Callable[[list[Any]], Any]) -> str:
    messages = _first(text)
    while True:
        message = ask(messages)
        if not message.tool_calls:
            return str(message.content)
        messages += _chat_results(message)


def _first(text: str) -> list[Any]:
    return [{"role": "system", "content": tools.SYSTEM}, {"role": "user", "content": text}]


def _chat_request(messages: list[Any]) -> dict[str, Any]:
    told = [
        {"type": "function", "function": {**_told(name), "strict": True}} for name in tools.TOOLS
    ]
    return {"model": tools.MODEL["openai"], "messages": messages, "tools": told}


def _chat_results(message: Any) -> list[Any]:
    results = [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": tools.run(call.function.name, call.function.arguments),
        }
        for call in message.tool_calls
    ]
    return [message, *results]


def _responses(text: str, ask: Callable[[list[Any]], Any]) -> str:
    items: list[Any] = [{"role": "user", "content": text}]
    while True:
        response = ask(items)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return str(response.output_text)
        items += response.output
        items += [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": tools.run(call.name, call.arguments),
            }
            for call in calls
        ]


def _response_request(items: list[Any]) -> dict[str, Any]:
    told = [{"type": "function", **_told(name)} for name in tools.TOOLS]
    return {
        "model": tools.MODEL["openai"],
        "instructions": tools.SYSTEM,
        "input": items,
        "tools": told,
    }


def _told(name: str) -> dict[str, Any]:
    description = tools.TOOLS[name].__doc__
    return {
        "name": name,
        "description": description,
        "parameters": tools.parameters(name),
        "strict": True,
    }
