"""Tokens, counted simply and always alike.

Four bytes of JSON are one token, rounded up. The prompt is the system prompt,
the tools and the messages; the output is the text, the thinking and the tool uses
(name and arguments). A prompt of 1,024 tokens or more is cached as far as its
request asks (OpenAI and Gemini: all of it), and what an earlier request of the trial has
cached, in whole messages, is read from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from evalkit.gateway.canonical import ModelAnswer, ModelRequest, Tokens
from evalkit.ledger import JSON
from evalkit.serving.jsontext import to_bytes

_BYTES_PER_TOKEN: Final = 4
_LEAST_CACHED: Final = 1024
"""Tokens of the shortest prompt that providers cache."""
_CACHE_MARK: Final = re.compile(rb',?"cache_control":(?:null|\{[^}]*\})')


def n_tokens(n_bytes: int) -> int:
    """Count tokens.

    Examples
    --------
    >>> n_tokens(0), n_tokens(1), n_tokens(8)
    (0, 1, 2)
    """
    return -(-n_bytes // _BYTES_PER_TOKEN)


def prompt_tokens(request: ModelRequest) -> int:
    """Count a prompt."""
    return n_tokens(sum(map(len, _encoded(request))))


def _encoded(request: ModelRequest) -> list[bytes]:
    """Encode the prompt piece by piece, without the marks that say what to cache."""
    return [_CACHE_MARK.sub(b"", _piece(piece)) for piece in request.pieces]


def _piece(piece: JSON) -> bytes:
    return b"" if piece is None else to_bytes(piece)


class Meter:
    """Counts the calls of one trial, and remembers which prompts are cached."""

    def __init__(self) -> None:
        self._cached: set[int] = set()

    def tokens(self, request: ModelRequest, answer: ModelAnswer) -> Tokens:
        """Count a request and its answer."""
        pieces = _encoded(request)
        sizes = list(map(n_tokens, accumulate(map(len, pieces))))
        prefixes = _prefixes(pieces[: request.n_cached], model=request.model)
        read, write = self._cache(prefixes, sizes)
        reasoning = n_tokens(len(answer.thinking.encode("utf-8", "replace")))
        output = max(1, n_tokens(_output_bytes(answer)) + reasoning)
        return Tokens(sizes[-1] if sizes else 0, read, write, output, reasoning)

    def _cache(self, prefixes: list[int], sizes: list[int]) -> tuple[int, int]:
        """Say how many tokens are read from the cache, and how many are added to it."""
        if not prefixes or sizes[len(prefixes) - 1] < _LEAST_CACHED:
            return 0, 0
        n_known = sum(prefix in self._cached for prefix in prefixes)  # they only grow longer
        read = sizes[n_known - 1] if n_known else 0
        self._cached.update(prefixes)
        return read, sizes[len(prefixes) - 1] - read


def _prefixes(pieces: Iterable[bytes], *, model: str) -> list[int]:
    """Give a number for each beginning of a prompt to a model, the shortest first."""
    first = hash(model)
    return list(accumulate(pieces, lambda before, one: hash((before, one)), initial=first))[1:]


def _output_bytes(answer: ModelAnswer) -> int:
    uses = sum(len(use.name) + len(use.raw.encode("utf-8", "replace")) for use in answer.tool_uses)
    return uses + len((answer.refusal or answer.text).encode("utf-8", "replace"))
