"""The agent of the contract lane's benchmark: a plain loop on the real anthropic SDK."""

from __future__ import annotations

from typing import Any

import anthropic
from turns import CALLS, MODEL, result_text

_RESULTS = {call.name: result_text(call) for call in CALLS}
_TOOLS: list[Any] = [
    {
        "name": call.name,
        "description": call.name.replace("_", " "),
        "input_schema": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in call.args},
            "required": list(call.args),
        },
    }
    for call in CALLS
]


def agent(text: str) -> str:
    """Let the model use tools until it answers."""
    client = anthropic.Anthropic()
    messages: list[Any] = [{"role": "user", "content": text}]
    while True:
        message = client.messages.create(
            model=MODEL, max_tokens=1024, tools=_TOOLS, messages=messages
        )
        if message.stop_reason != "tool_use":
            return "".join(part.text for part in message.content if part.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": part.id, "content": _RESULTS[part.name]}
            for part in message.content
            if part.type == "tool_use"
        ]
        messages += [
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": results},
        ]
