"""An agent that asks two models at once, in threads of its own, and waits for both."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anthropic
import tools

_ROLES = ("You look for flights.", "You watch the weather.")


def threads(text: str) -> str:
    """Put one question to both, and their answers together."""
    client = anthropic.Anthropic()

    def ask(role: str) -> str:
        message = client.messages.create(
            model=tools.MODEL["anthropic"],
            max_tokens=1024,
            system=role,
            messages=[{"role": "user", "content": text}],
        )
        return "".join(part.text for part in message.content if part.type == "text")

    with ThreadPoolExecutor(len(_ROLES)) as pool:
        return " ".join(pool.map(ask, _ROLES))
