"""What a ledger tells of a request: its head and its body, as far as they are kept."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from evalkit.ledger import JSON
from evalkit.serving.jsontext import parse

MAX_TEXT: Final = 100_000
"""Bytes of a body that are kept."""
_KEPT: Final = frozenset({"content-type", "authorization"})
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PACKED: Final = frozenset({b"gzip", b"x-gzip", b"deflate"})


class Sent(NamedTuple):
    """A request, as it came."""

    method: str
    url: str
    """Absolute, written as :func:`~evalkit.matching.requests.plain_url` writes it."""
    headers: Mapping[bytes, bytes]
    body: bytes


def told_of(sent: Sent) -> dict[str, JSON]:
    """Say what a request said.

    Returns
    -------
    dict
        ``method``, ``url``, ``headers`` (only content-type, authorization and x-*),
        ``json`` or ``text`` (``None`` for what is binary or too large) and ``size``.

    Examples
    --------
    >>> told_of(Sent("POST", "https://a.test/", {}, b'{"a": 1}'))["json"]
    {'a': 1}
    """
    found: dict[str, JSON] = {
        "method": sent.method.upper(),
        "url": sent.url,
        "headers": _headers(sent.headers),
        "json": None,
        "text": None,
        "size": len(sent.body),
    }
    body = _unpacked(sent)
    if len(body) > MAX_TEXT:
        return found
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return found
    if "\0" in text:  # no text, though it reads as one
        return found
    if _may_be_json(sent, text):
        with suppress(ValueError):
            found["json"] = parse(body)
    if found["json"] is None and text:
        found["text"] = text
    return found


def _headers(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    texts = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
    return {name: value for name, value in texts.items() if name in _KEPT or name.startswith("x-")}


def _may_be_json(sent: Sent, text: str) -> bool:
    """Say whether a body is meant as JSON: a number alone may be any text."""
    return b"json" in sent.headers.get(b"content-type", b"") or text.lstrip()[:1] in ("{", "[")


def _unpacked(sent: Sent) -> bytes:
    """Unpack a body that was compressed, but no more of it than is kept."""
    if sent.headers.get(b"content-encoding", b"").lower() not in _PACKED:
        return sent.body
    try:
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(sent.body, MAX_TEXT + 1)
    except zlib.error:
        return sent.body
