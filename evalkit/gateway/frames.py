"""One frame of a stream: a server-sent event, or a piece of a JSON array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from evalkit.ledger import JSON
from evalkit.serving.jsontext import to_bytes

Framing = Literal["sse", "array"]

_PIECES: Final = 3
"""Into how many deltas a text is split."""


class Frame(NamedTuple):
    """One event of a stream."""

    data: Mapping[str, JSON] | str
    event: str = ""
    is_delta: bool = False
    """Whether it carries a piece of the content."""
    framing: Framing = "sse"
    """In an array, a frame brings its own brackets and commas."""

    def encode(self) -> bytes:
        r"""Write the event down.

        Examples
        --------
        >>> Frame({"type": "ping"}, "ping").encode()
        b'event: ping\ndata: {"type":"ping"}\n\n'
        """
        data = self.data.encode() if isinstance(self.data, str) else to_bytes(self.data)
        if self.framing == "array":
            return data + b"\r\n"
        head = f"event: {self.event}\n".encode() if self.event else b""
        return b"%bdata: %b\n\n" % (head, data)


def pieces(text: str) -> Iterator[str]:
    """Split a text into a few pieces; an empty one has none.

    Examples
    --------
    >>> list(pieces("abcdefgh"))
    ['abc', 'def', 'gh']
    """
    size = max(1, -(-len(text) // _PIECES))
    return (text[at : at + size] for at in range(0, len(text), size))
