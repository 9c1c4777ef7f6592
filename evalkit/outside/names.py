"""The name server of a trial: every name is there, at one address.

Only messages; sockets are :mod:`evalkit.outside.server`'s. RFC 1035.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, NamedTuple

_HEAD: Final = struct.Struct("!6H")
_QUESTION_END: Final = struct.Struct("!2H")
_RECORD: Final = struct.Struct("!3HIH")
_RESPONSE: Final = 0x8180  # an answer, as asked for recursively, recursion available
_NO_SUCH_NAME: Final = 3
_FORMAT_ERROR: Final = 1
_IPV4: Final = 1
_REVERSED: Final = 12
_INTERNET: Final = 1
_TTL_S: Final = 60
_TO_NAME: Final = 0xC000 | _HEAD.size
_MAX_LABEL: Final = 63


class Question(NamedTuple):
    """One question."""

    name: str
    """In small letters, without the last dot."""
    kind: int
    """Number of the record's type."""

    @property
    def is_of_a_host(self) -> bool:
        """Whether it asks where a host is, and not which host is somewhere."""
        return self.kind != _REVERSED


def question_of(message: bytes) -> Question | None:
    r"""Read the question of a message; ``None`` if it has none.

    Examples
    --------
    >>> asked = _HEAD.pack(7, 0x100, 1, 0, 0, 0) + b"\1a\4test\0" + _QUESTION_END.pack(1, 1)
    >>> question_of(asked)
    Question(name='a.test', kind=1)
    """
    found = _parsed(message)
    return None if found is None else found[0]


def answer_to(message: bytes, address: str) -> bytes:
    """Answer a message: where a host is (IPv4 only), or that there is nothing.

    Parameters
    ----------
    message
        What was asked.
    address
        Where every host is.

    Returns
    -------
    bytes
        Empty for what is too short to be answered.
    """
    if len(message) < _HEAD.size:
        return b""
    number = int.from_bytes(message[:2], "big")
    found = _parsed(message)
    if found is None:
        return _HEAD.pack(number, _RESPONSE | _FORMAT_ERROR, 0, 0, 0, 0)
    question, end = found
    asked = message[_HEAD.size : end]
    if not question.is_of_a_host:
        return _HEAD.pack(number, _RESPONSE | _NO_SUCH_NAME, 1, 0, 0, 0) + asked
    is_there = question.kind == _IPV4
    head = _HEAD.pack(number, _RESPONSE, 1, int(is_there), 0, 0)
    if not is_there:
        return head + asked
    place = socket.inet_aton(address)
    return head + asked + _RECORD.pack(_TO_NAME, _IPV4, _INTERNET, _TTL_S, len(place)) + place


def _parsed(message: bytes) -> tuple[Question, int] | None:
    """Read the question, and where it ends; questions are never compressed."""
    labels: list[str] = []
    place = _HEAD.size
    while place < len(message) and (size := message[place]):
        if size > _MAX_LABEL:
            return None
        labels.append(message[place + 1 : place + 1 + size].decode("ascii", "backslashreplace"))
        place += 1 + size
    end = place + 1 + _QUESTION_END.size
    if not labels or len(message) < end:
        return None
    kind, _ = _QUESTION_END.unpack_from(message, place + 1)
    return Question(".".join(labels).lower(), kind), end
