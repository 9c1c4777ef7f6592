"""An agent that has the tokens of what it is told counted, before it asks the model."""

from __future__ import annotations

import anthropic

client = anthropic.Anthropic()


def agent(text: str) -> str:
    """Count the user's words; ask with others."""
    words = [{"role": "user", "content": text}]
    client.messages.count_tokens(model="m", messages=words)  # type: ignore[arg-type]
    asked = client.messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi."}]
    )
    return "".join(block.text for block in asked.content if block.type == "text")
