"""Agents on the google-genai SDK: calling functions by hand or by itself, streaming and not."""

from __future__ import annotations

from typing import Any

import tools
from google import genai
from google.genai import types

_BUILT_AT_IMPORT = genai.Client()
_MODEL = tools.MODEL["gemini"]
_DECLARED: Any = [
    {
        "name": name,
        "description": function.__doc__,
        "parameters_json_schema": tools.parameters(name),
    }
    for name, function in tools.TOOLS.items()
]
_BY_HAND: Any = {
    "system_instruction": tools.SYSTEM,
    "tools": [{"function_declarations": _DECLARED}],
}
_BY_ITSELF: Any = {"system_instruction": tools.SYSTEM, "tools": list(tools.TOOLS.values())}


def by_hand(text: str) -> str:
    """Run the functions that the model asks for."""
    return _loop(genai.Client(), text)


def built_at_import(text: str) -> str:
    """Run them, with a client that existed before the trial did."""
    return _loop(_BUILT_AT_IMPORT, text)


def calling_by_itself(text: str) -> str:
    """Have the SDK run them."""
    client = genai.Client()
    answer = client.models.generate_content(model=_MODEL, contents=text, config=_BY_ITSELF)
    return str(answer.text)


def chat(text: str) -> str:
    """Have a chat of the SDK run them."""
    client = genai.Client()  # a chat does not keep its client open
    chat = client.chats.create(model=_MODEL, config=_BY_ITSELF)
    return str(chat.send_message(text).text)


def chat_streaming(text: str) -> str:
    """Have a chat run them, streamed."""
    client = genai.Client()
    chat = client.chats.create(model=_MODEL, config=_BY_ITSELF)
    return "".join(chunk.text or "" for chunk in chat.send_message_stream(text))


async def asynchronous(text: str) -> str:
    """Run them, awaited."""
    contents = _first(text)
    async with genai.Client().aio as client:
        while True:
            answer = await client.models.generate_content(
                model=_MODEL, contents=contents, config=_BY_HAND
            )
            if not answer.function_calls:
                return str(answer.text)
            contents += _next(answer)


async def async_streaming(text: str) -> str:
    """Have the SDK run them, streamed and awaited."""
    async with genai.Client().aio as client:
        chat = client.chats.create(model=_MODEL, config=_BY_ITSELF)
        stream = await chat.send_message_stream(text)
        return "".join([chunk.text or "" async for chunk in stream])


def _loop(client: genai.Client, text: str) -> str:
    contents = _first(text)
    while True:
        answer = client.models.generate_content(model=_MODEL, contents=contents, config=_BY_HAND)
        if not answer.function_calls:
            return str(answer.text)
        contents += _next(answer)


def _first(text: str) -> list[Any]:
    return [types.UserContent(parts=[types.Part(text=text)])]


def _next(answer: types.GenerateContentResponse) -> list[Any]:
    """Give what the model said, and what its functions gave: responses bear no ids."""
    results = [
        types.Part.from_function_response(
            name=str(call.name), response={"result": tools.run(str(call.name), call.args or {})}
        )
        for call in answer.function_calls or []
    ]
    said = (answer.candidates or [])[0].content
    return [said, types.UserContent(parts=results)]
