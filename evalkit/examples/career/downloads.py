"""Reading what others send, piece by piece and never more than wanted.

No length that the sender declares is believed: it may end a download early, but only
the bytes that have come decide how far it goes. Nothing is unpacked.
"""

from __future__ import annotations

import time
from typing import Final

import httpx2

PIECE: Final = 16 * 1024
AS_IT_IS: Final = {"Accept-Encoding": "identity"}
"""Headers of a request for a body that is not packed."""


class TooLarge(Exception):
    """There is more than is wanted; what had come was thrown away."""

    def __init__(self, n_read: int) -> None:
        super().__init__(f"stopped after {n_read} bytes")
        self.n_read = n_read


class TooSlow(Exception):
    """It takes longer than anybody waits."""


class Packed(Exception):
    """The body is packed, although nobody asked for that."""


def read_bounded(response: httpx2.Response, *, most: int, due: float) -> bytes:
    """Read the body of a response that is being streamed.

    Parameters
    ----------
    response
        With its headers, and nothing read yet.
    most
        Bytes that it may have.
    due
        When it must have come, as ``time.monotonic()`` tells.

    Raises
    ------
    TooLarge, TooSlow, Packed
        As their names say.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise Packed
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise TooLarge(0)
    body = bytearray()
    for piece in response.iter_raw(PIECE):
        body += piece
        if len(body) > most:
            raise TooLarge(len(body))
        if time.monotonic() > due:
            raise TooSlow
    return bytes(body)
