"""Which wire format a request speaks: decided by the end of its path."""

from __future__ import annotations

from typing import Final, NamedTuple

from evalkit.gateway import anthropic, openai_chat, openai_responses
from evalkit.gateway.delivery import Wire


class Route(NamedTuple):
    """What a path asks for, and in which format."""

    wire: Wire
    counts_only: bool = False
    """Whether it asks for the number of tokens, not for an answer."""


_ROUTES: Final[tuple[tuple[str, Route], ...]] = (
    ("/messages", Route(anthropic)),
    ("/chat/completions", Route(openai_chat)),
    ("/responses", Route(openai_responses)),
    ("/messages/count_tokens", Route(anthropic, counts_only=True)),
)


def route_of(method: str, target: str) -> Route | None:
    """Find what answers a request; ``None`` if nothing does.

    Clients differ in what they hold for the base of an address, so only the end
    of the path counts.

    Examples
    --------
    >>> route_of("POST", "/v1/messages?beta=true").wire.name
    'anthropic'
    >>> route_of("POST", "/openai/deployments/d/chat/completions?api-version=1").wire.name
    'openai-chat'
    >>> route_of("POST", "/v1/embeddings") is None
    True
    """
    if method != "POST":
        return None
    path = target.partition("?")[0].rstrip("/")
    return next((route for end, route in _ROUTES if path.endswith(end)), None)


def wire_for_errors(target: str) -> Wire:
    """Guess whose client is on the line, to tell it an error in its own shape."""
    return anthropic if "/messages" in target or "anthropic" in target else openai_chat


def base_urls(port: int, host: str = "127.0.0.1") -> dict[str, str]:
    """Give the environment variables that lead the usual clients to a gateway.

    Examples
    --------
    >>> base_urls(8000)["OPENAI_BASE_URL"]
    'http://127.0.0.1:8000/v1'
    """
    root = f"http://{host}:{port}"
    return {
        "ANTHROPIC_BASE_URL": root,
        "ANTHROPIC_API_BASE": root,
        "OPENAI_BASE_URL": f"{root}/v1",
        "OPENAI_API_BASE": f"{root}/v1",
        "AZURE_OPENAI_ENDPOINT": root,
        "GOOGLE_GEMINI_BASE_URL": root,
        "GEMINI_API_BASE": root,
    }
