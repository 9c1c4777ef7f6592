"""Escapes, as addresses, markup, programs and mail write them, and what they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html.entities import html5
from typing import Final

# Each pattern begins with the one character that it is about, which makes it fast.
_HEX: Final = "[0-9a-fA-F]"
_PERCENT: Final = re.compile(f"%(?:u{_HEX}{{4}}|{_HEX}{{2}})(?:%(?:u{_HEX}{{4}}|{_HEX}{{2}}))*")
_QUOTED: Final = re.compile(rf"={_HEX}{{2}}(?:={_HEX}{{2}})*|=[ \t]{{0,20}}\r?\n")
_BACKSLASHED: Final = (
    rf"(?:x{_HEX}{{2}}|u{_HEX}{{4}}|u\{{{_HEX}{{1,6}}\}}|U{_HEX}{{8}}|[0-3][0-7]{{2}})"
)
_MANY_BACKSLASHES: Final = re.compile(r"\\\\+")
_BACKSLASH: Final = re.compile(rf"\\{_BACKSLASHED}(?:\\{_BACKSLASHED})*")
_CONTROL: Final = re.compile(r"\\[abfnrtv]")
_REFERENCE: Final = r"&#(?:[0-9]{1,8}|[xX][0-9a-fA-F]{1,8});?"
_REFERENCES: Final = re.compile(f"{_REFERENCE}(?:{_REFERENCE})*")
_ENTITY: Final = re.compile(r"&([a-zA-Z][a-zA-Z0-9]{1,31};)")
_TAG: Final = re.compile(r"<[^<>]{1,200}>")
_TERMINAL: Final = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")

_NUMBER: Final = re.compile(r"&#(?:([0-9]+)|[xX]([0-9a-fA-F]+))")
_SIGN: Final = re.compile(r"\\([0-3][0-7]{2})|[xuU]\{?([0-9a-fA-F]+)")
_PERCENT_SIGN: Final = re.compile(f"%(?:u({_HEX}{{4}})|({_HEX}{{2}}))")
_LAST_CHARACTER: Final = 0x10FFFF


def unescaped(text: str) -> str:
    r"""Take away one layer of escapes, and markup inside words.

    Examples
    --------
    >>> unescaped("%63a&#110;\\u0061&#x72;=79<b>!</b>")
    'canary!'
    """
    for mark, take_away in _BY_MARK:
        if mark in text:
            text = take_away(text)
    return text


def _percents(text: str) -> str:
    return _PERCENT.sub(_of_percents, text)


def _of_percents(found: re.Match[str]) -> str:
    run = found[0]
    if "u" not in run:
        return _bytes(run.replace("%", ""))
    pairs = _PERCENT_SIGN.findall(run)
    return _characters(int(wide or narrow, 16) for wide, narrow in pairs)


def _quoted(text: str) -> str:
    return _QUOTED.sub(_of_quoted, text)


def _of_quoted(found: re.Match[str]) -> str:
    run = found[0]
    return "" if run[-1] == "\n" else _bytes(run.replace("=", ""))


def _bytes(digits: str) -> str:
    content = bytes.fromhex(digits)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _backslashes(text: str) -> str:
    # JSON inside of JSON doubles them.
    text = _BACKSLASH.sub(_of_signs, _MANY_BACKSLASHES.sub(r"\\", text))
    return _CONTROL.sub(" ", text).replace("\\/", "/")


def _of_signs(found: re.Match[str]) -> str:
    signs = _SIGN.findall(found[0])
    return _characters(int(octal, 8) if octal else int(code, 16) for octal, code in signs)


def _entities(text: str) -> str:
    text = _REFERENCES.sub(_of_numbers, text)
    return _ENTITY.sub(lambda found: html5.get(found[1], found[0]), text)


def _of_numbers(found: re.Match[str]) -> str:
    numbers = _NUMBER.findall(found[0])
    return _characters(int(decimal) if decimal else int(code, 16) for decimal, code in numbers)


def _characters(codes: Iterable[int]) -> str:
    """Write characters by their numbers; where these are bytes of UTF-8, what they mean."""
    text = "".join(chr(code) for code in codes if code <= _LAST_CHARACTER)
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except ValueError:
        return text


_BY_MARK: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("<", lambda text: _TAG.sub("", text)),
    ("\x1b", lambda text: _TERMINAL.sub("", text)),
    ("=", _quoted),
    ("%", _percents),
    ("\\", _backslashes),
    ("&", _entities),
)
