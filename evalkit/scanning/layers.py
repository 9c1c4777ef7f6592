"""What a text wraps: the text behind its escapes, and what its base64 and hex runs hold.

Everything is bounded: a layer takes from the :class:`Room` that a whole scan has, and
what there was no room for is told, because it was not searched.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from evalkit.scanning.escapes import unescaped

MIN_RUN: Final = 22
"""Characters of a run that may hold a value in a further encoding."""
_MAX_INFLATED: Final = 1 << 20
"""Bytes that one packed stream may become."""
_ATTEMPT: Final = 500
"""Characters of room that a look at what may be a packed stream takes."""
_LEAST_TOLD: Final = 1024
"""Bytes that a stream must have given before it counts as one; chance gives a few."""

_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_HEX: Final = b"0123456789abcdefABCDEF"
_ONE_ALPHABET: Final = bytes.maketrans(b"-_", b"+/")
"""Both alphabets of base64 as one."""
_IN_BASE64: Final = bytes(code in _BASE64 for code in range(256))
_IN_HEX: Final = bytes(code in _HEX for code in range(256))
_PACKED: Final = (b"\x1f\x8b\x08", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""How streams of gzip and zlib begin."""

_NO_TEXT: Final = frozenset({*range(1, 9), *range(14, 27), *range(28, 32), 127, 0xC0, 0xC1}) | {
    *range(0xF5, 0x100)
}
"""Bytes that are in no text, be it UTF-8 or, of ASCII, UTF-16."""
_IS_NO_TEXT: Final = bytes(code in _NO_TEXT for code in range(256))
_BLOCK: Final = 64
"""Bytes without a single one of those that count as text, also inside of what is none."""


class Layer(NamedTuple):
    """A text inside another."""

    name: str
    text: str


class Room:
    """How much a scan may still unwrap, and what it has unwrapped before.

    Parameters
    ----------
    size
        Characters.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self._seen: set[bytes] = set()
        self.is_spent = False
        """Whether something was not unwrapped for want of room."""

    def take(self, size: int) -> bool:
        """Take room for a text, or note that there is none."""
        if size > self._left:
            self.is_spent = True
            return False
        self._left -= size
        return True

    def unseen(self, runs: Sequence[bytes]) -> list[bytes]:
        """Give the runs that come for the first time."""
        new = [run for run in dict.fromkeys(runs) if run not in self._seen]
        self._seen.update(new)
        return new


def layers_of(text: str, room: Room) -> Iterator[Layer]:
    """Give the texts that a text wraps, as far as there is room for them."""
    if room.take(len(text)):
        bare = unescaped(text)
        if bare is not text and bare != text:
            yield Layer("escapes", bare)
    runs = room.unseen(_runs(text))
    if runs:
        yield from _unpacked(runs, room)


def _runs(text: str) -> list[bytes]:
    """Give the runs of letters that may be base64 or hex; line ends do not part them."""
    content = text.encode("ascii", "replace").replace(b"\r", b"").replace(b"\n", b"")
    return _stretches(content.translate(_ONE_ALPHABET), _IN_BASE64, least=MIN_RUN)


def _stretches(content: bytes, letters: bytes, *, least: int) -> list[bytes]:
    """Give the stretches of certain letters that are long enough."""
    found: list[bytes] = []
    is_in = content.translate(letters)
    wanted = b"\1" * least
    start = is_in.find(wanted)
    while start >= 0:
        end = is_in.find(0, start)
        end = len(content) if end < 0 else end
        found.append(content[start:end])
        start = is_in.find(wanted, end)
    return found


def _unpacked(runs: Sequence[bytes], room: Room) -> Iterator[Layer]:
    """Decode runs, wherever in them the encoded part begins."""
    hex_runs = _stretches(b" ".join(runs), _IN_HEX, least=2 * MIN_RUN)
    # A long run of hex digits alone is no base64.
    others = [run for run in runs if len(run) < 2 * MIN_RUN or run.translate(None, _HEX)]
    for codec, found in ((_BASE64_CODEC, others), (_HEX_CODEC, hex_runs)):
        size = sum(map(len, found))
        for start in range(codec.n_characters if found else 0):
            if room.take(size):
                yield from _contents(codec.name, _decoded(found, start, codec), room)


class _Codec(NamedTuple):
    """How groups of characters become bytes."""

    name: str
    decode: Callable[[bytes], bytes]
    n_characters: int
    n_bytes: int
    filler: bytes
    """Completes the last group."""


_BASE64_CODEC: Final = _Codec("base64", binascii.a2b_base64, 4, 3, b"A")
_HEX_CODEC: Final = _Codec("hex", binascii.unhexlify, 2, 1, b"0")


class _Decoded(NamedTuple):
    content: bytes
    ends: list[int]
    """Where the content of each run ends."""


def _decoded(runs: Sequence[bytes], start: int, codec: _Codec) -> _Decoded:
    """Decode all runs at once, each from one of its first characters on."""
    size = codec.n_characters
    fillers = [codec.filler * (-(length - start) % size) for length in range(size)]
    groups = [run[start:] + fillers[len(run) % size] for run in runs]
    ends = [end // size * codec.n_bytes for end in accumulate(map(len, groups))]
    return _Decoded(codec.decode(b"".join(groups)), ends)


def _contents(name: str, decoded: _Decoded, room: Room) -> Iterator[Layer]:
    """Give what was decoded as text, where it is some, and what is packed in it."""
    content = decoded.content
    text = _as_text(b" ".join(content[start:end] for start, end in _texts(decoded)))
    if text:
        yield Layer(name, text)
    for mark in _PACKED:
        start = content.find(mark)
        while start >= 0:
            inflated = _inflated(memoryview(content)[start:], room)
            if inflated:
                yield Layer(f"gzip in {name}", _as_text(inflated))
            start = content.find(mark, start + 1)


def _texts(decoded: _Decoded) -> Iterator[tuple[int, int]]:
    """Give the places of what may be text: chance does not write so much without a slip."""
    slips = decoded.content.translate(_IS_NO_TEXT)
    start = 0
    for end in decoded.ends:
        if slips.count(1, start, end) <= (end - start) // 16:
            yield start, end
        elif end - start >= _BLOCK:
            yield from _clean_parts(slips, start, end)
        start = end


def _clean_parts(slips: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Give the parts of a long run that are text, with a little before and behind."""
    clean = b"\0" * _BLOCK
    first = slips.find(clean, start, end)
    while first >= 0:
        last = slips.find(1, first, end)
        last = end if last < 0 else last
        yield max(first - _BLOCK, start), min(last + _BLOCK, end)
        first = slips.find(clean, last, end)


def _as_text(content: bytes) -> str:
    """Read bytes as UTF-8; without zeros, UTF-16 of ASCII reads the same."""
    return content.replace(b"\0", b"").decode("utf-8", "ignore")


def _inflated(content: memoryview, room: Room) -> bytes:
    """Unpack what may be a stream of gzip or zlib; nothing, if it is none."""
    if not room.take(_ATTEMPT):
        return b""
    stream = zlib.decompressobj(wbits=47)
    try:
        inflated = stream.decompress(content, _MAX_INFLATED)
    except zlib.error:
        return b""
    if not stream.eof and len(inflated) >= _LEAST_TOLD:
        room.is_spent = True
    return inflated if room.take(len(inflated)) else b""
