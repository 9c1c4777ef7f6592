"""What the two wire formats of OpenAI share: errors and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evalkit.gateway.canonical import Stamp, Tokens
from evalkit.ledger import JSON

tool_prefix: Final = "call"
request_header: Final = "x-request-id"
overloaded_status: Final = 503
carries_cut_args: Final = True

_CACHED_IN_STEPS_OF: Final = 128

_ERRORS: Final[Mapping[int, tuple[str, str | None]]] = {
    400: ("invalid_request_error", None),
    404: ("invalid_request_error", None),
    413: ("invalid_request_error", None),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("service_unavailable_error", "server_is_overloaded"),
}


def error(status: int, message: str, stamp: Stamp) -> dict[str, JSON]:
    """Write an error as a body."""
    kind, code = _ERRORS.get(status, ("server_error", None))
    del stamp  # errors of this provider have no id in their body
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def cached_tokens(tokens: Tokens) -> int:
    """Count what was read from the cache; the provider does so in whole steps."""
    return tokens.cache_read // _CACHED_IN_STEPS_OF * _CACHED_IN_STEPS_OF


def usage(tokens: Tokens) -> dict[str, int]:
    """Count what a call used; input tokens include what is cached."""
    return {
        "input_tokens": tokens.prompt,
        "output_tokens": tokens.output,
        "cache_read_tokens": cached_tokens(tokens),
    }
