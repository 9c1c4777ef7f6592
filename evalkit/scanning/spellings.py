"""How a value may be spelled: encodings of it, as they look once they are squashed.

An encoding that packs several bytes into a few characters depends on what stands before
and behind, so it is spelled for each place in which a value may begin, without the
characters that its neighbours have a part in.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from evalkit.scanning.squashing import squash

MIN_CHARS: Final = 16
"""Letters and digits that a value must have, so that chance does not write it."""
PLAIN: Final = "plain"
"""The form whose spelling is the value itself."""

Spelling: TypeAlias = tuple[str, str]
"""The name of a form, and how the value reads in it."""

_BYTE_FORMS: Final[tuple[tuple[str, Callable[[int], str]], ...]] = (
    ("hex", "{:02x}".format),
    ("hex escapes", "x{:02x}".format),
    ("hex escapes", "0x{:02x}".format),
    ("hex escapes", "x{:04x}".format),
    ("unicode escapes", "u{:04x}".format),
    ("unicode escapes", "U{:08x}".format),
    ("unicode escapes", "u{:x}".format),
    ("decimal", "{:d}".format),
    ("decimal", "{:03d}".format),
    ("octal", "{:03o}".format),
    ("octal", "0o{:o}".format),
    ("binary", "{:08b}".format),
)
"""Forms that write one character after the other."""

_WORDS: Final = {"@": " at ", ".": " dot ", "_": " underscore ", "-": " dash "}


def spellings(value: str) -> dict[bytes, str]:
    """Give every spelling of a value, squashed, with the name of its form.

    Examples
    --------
    >>> found = spellings("canary@example.test")
    >>> found[b"canaryexampletest"], found[b"tsetelpmaxeyranac"]
    ('plain', 'reversed')
    >>> found[squash(b"canary@example.test".hex())]
    'hex'
    """
    found: dict[bytes, str] = {}
    for form, text in _all(value):
        spelling = squash(text)
        if len(spelling) >= MIN_CHARS:
            found.setdefault(spelling, form)
    return found


def _all(value: str) -> Iterator[Spelling]:
    yield PLAIN, value
    # What unpacks bytes may lose all that is no ASCII.
    yield PLAIN, value.encode("ascii", "ignore").decode("ascii")
    yield "spelled out", "".join(_WORDS.get(letter, letter) for letter in value)
    yield "reversed", value[::-1]
    yield "rot13", codecs.encode(value, "rot13")
    # Encoders see case; what is squashed no longer does.
    for cased in dict.fromkeys((value, value.lower(), value.upper())):
        packed = [*_packed(cased), *_by_byte(cased)]
        yield from packed
        yield from ((f"{form} reversed", text[::-1]) for form, text in packed)
        for form, text in packed:
            if form == "base64":
                yield "base64 with rot13", codecs.encode(text, "rot13")


def _packed(value: str) -> Iterator[Spelling]:
    content = value.encode("utf-8", "surrogatepass")
    for n_before in range(3):
        yield "base64", _inner(content, n_before, encode=base64.b64encode, bits=6)
    for n_before in range(5):
        yield "base32", _inner(content, n_before, encode=base64.b32encode, bits=5)


def _inner(content: bytes, n_before: int, *, encode: Callable[[bytes], bytes], bits: int) -> str:
    """Encode bytes behind some others; give the characters that they alone decide."""
    first = -(-8 * n_before // bits)
    last = 8 * (n_before + len(content)) // bits
    return encode(b"\0" * n_before + content)[first:last].decode("ascii")


def _by_byte(value: str) -> Iterator[Spelling]:
    content = value.encode("utf-8", "surrogatepass")
    for form, write in _BYTE_FORMS:
        yield form, "".join(map(write, content))
