"""Which wire format a request speaks: decided by the end of its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote

from evalkit.gateway import anthropic, gemini, openai_chat, openai_responses
from evalkit.gateway.delivery import Wire
from evalkit.ledger import JSON


class Route(NamedTuple):
    """What a path asks for, and in which format."""

    wire: Wire
    counted_as: str = ""
    """What an answer calls the number of tokens, where it is all that is asked for."""
    told: Mapping[str, JSON] = MappingProxyType({})
    """What the path says of the request, that other formats say in the body."""


_ROUTES: Final[tuple[tuple[str, Route], ...]] = (
    ("/messages", Route(anthropic)),
    ("/chat/completions", Route(openai_chat)),
    ("/responses", Route(openai_responses)),
    ("/messages/count_tokens", Route(anthropic, counted_as="input_tokens")),
)
_GEMINI: Final = re.compile(
    r"/(?:models/|(?=tunedModels/))([^:]+):(generateContent|streamGenerateContent|countTokens)$"
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
    >>> route_of("POST", "/v1beta/models/gemini-x:generateContent").told["model"]
    'gemini-x'
    >>> route_of("POST", "/v1/embeddings") is None
    True
    """
    if method != "POST":
        return None
    path = target.partition("?")[0].rstrip("/")
    if found := _GEMINI.search(path):
        return _gemini(unquote(found[1]), found[2], target)
    return next((route for end, route in _ROUTES if path.endswith(end)), None)


def _gemini(model: str, method: str, target: str) -> Route:
    """Read the model and the way of answering from a path."""
    if method == "countTokens":
        return Route(gemini, "totalTokens", {"model": model})
    if method == "generateContent":
        return Route(gemini, told={"model": model, "stream": False})
    alt = parse_qs(target.partition("?")[2]).get("alt")
    return Route(gemini, told={"model": model, "stream": True if alt == ["sse"] else "array"})


def wire_for_errors(target: str) -> Wire:
    """Guess whose client is on the line, to tell it an error in its own shape."""
    if re.search(r"/models/[^/]+:", target):
        return gemini
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
