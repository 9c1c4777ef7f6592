"""Text without its disguise: ASCII letters and digits only, in lower case.

Case, spaces, punctuation, line ends, markup of a character's width or weight, accents,
invisible characters and letters that only look Latin say nothing about a value, and
encoders differ in them. What is left of two spellings of one value is the same.
"""

from __future__ import annotations

import codecs
import unicodedata
from functools import lru_cache
from typing import Final

_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz"
_KEPT: Final = _LETTERS + _LETTERS.upper() + b"0123456789"
_DROPPED: Final = bytes(set(range(256)) - set(_KEPT))
_LOWER: Final = bytes.maketrans(_LETTERS.upper(), _LETTERS)
_AS_PLAIN: Final = "evalkit.plain"
"""Name of what encodes foreign characters; a codec skips all others fast."""

_LOOK_ALIKES: Final = (
    # Cyrillic, Greek, Armenian and others, beside the Latin letters that they pass for.
    ("АаӐӑ", "a"), ("ВвЬ", "b"), ("СсҪҫϲСⅽ", "c"), ("ԁԀժ", "d"), ("ЕеЁёҽєε", "e"), ("ғϝ", "f"),
    ("ɡԌցɢ", "g"), ("НнһҺհ", "h"), ("ІіΙιїЇӀӏıɩ", "i"), ("ЈјͿϳ", "j"), ("КкΚκҚқ", "k"),
    ("Ⅼʟɭӏ", "l"), ("МмΜϺ", "m"), ("ΝոռпП", "n"), ("ОоΟοσΟօՕӨө", "o"), ("РрΡρ", "p"),
    ("ԛԚզ", "q"), ("гГʀ", "r"), ("ЅѕՏ", "s"), ("ТтΤτ", "t"), ("υսΥμ", "u"), ("ѵѴνט", "v"),
    ("ԝԜωѡ", "w"), ("ХхΧχҲҳ", "x"), ("УуүҮγΥ", "y"), ("ΖᴢʐƵƶ", "z"), ("ΑαᴀÅ", "a"), ("Ββ", "b"),
    ("Εɛ", "e"), ("Ηʜ", "h"), ("øØ", "o"), ("łŁ", "l"), ("đĐ", "d"), ("ß", "ss"), ("æÆ", "ae"),
)  # fmt: skip
_TAGS: Final = {0xE0000 + code: code for code in range(0x20, 0x7F)}
"""Invisible copies of ASCII."""


def _plain_letters() -> dict[int, str | int]:
    found: dict[int, str | int] = dict(_TAGS)
    for foreign, latin in _LOOK_ALIKES:
        for letter in foreign:
            found.setdefault(ord(letter), latin)
    return found


_PLAIN_LETTERS: Final = _plain_letters()
_FEW: Final = 2


def squash(text: str | bytes) -> bytes:
    r"""Give the ASCII letters and digits of a text, in lower case.

    Examples
    --------
    >>> squash("C-a.n a\u200bry\N{FULLWIDTH DIGIT SEVEN}")
    b'canary7'
    >>> squash("\N{CYRILLIC SMALL LETTER ES}\N{LATIN SMALL LETTER A WITH ACUTE}nary")
    b'canary'
    """
    if isinstance(text, bytes):
        return text.translate(_LOWER, _DROPPED)
    return text.encode("ascii", _AS_PLAIN).translate(_LOWER, _DROPPED)


def _as_plain(error: UnicodeError) -> tuple[bytes, int]:
    """Write foreign characters in ASCII as far as they stand for it; the others are dropped."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    foreign = error.object[error.start : error.end]
    plain = _few_plain if len(foreign) <= _FEW else _plain
    return plain(foreign), error.end


def _plain(foreign: str) -> bytes:
    # Decomposed, an accent is a character of its own, which is dropped as well.
    written = unicodedata.normalize("NFKD", foreign.translate(_PLAIN_LETTERS))
    return written.translate(_PLAIN_LETTERS).encode("ascii", "ignore")


_few_plain: Final = lru_cache(maxsize=4096)(_plain)
"""Noise is full of single foreign characters, and they come again."""


codecs.register_error(_AS_PLAIN, _as_plain)
