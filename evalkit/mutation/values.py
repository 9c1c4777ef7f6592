"""Arguments of a call changed by what they look like: an id, a date, a number, a text ..."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final, Literal, TypeAlias

from evalkit.ledger import JSON

Look: TypeAlias = Literal["id", "date", "number", "boolean", "text", "nested", ""]

_ID: Final = re.compile(r"(?=\S*[0-9])(?=\S*[A-Za-z])\S+|[0-9]{3,}")
_ID_NAME: Final = re.compile(r"(?:^|_)(?:id|ids|key|code|ref|uuid|slug|url)$|[a-z]Id$")
_ISO: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)")
_NUMERIC_DATE: Final = re.compile(r"\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:\s*[ap]m)?", re.IGNORECASE)
_DAYS: Final = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_RELATIVE: Final = ("yesterday", "today", "tomorrow")
_DAY_WORD: Final = re.compile(rf"\b({'|'.join((*_DAYS, *_RELATIVE))})\b", re.IGNORECASE)
_MONTH_WORD: Final = re.compile(rf"\b({'|'.join(_MONTHS)})\b", re.IGNORECASE)
_DATE_LENGTH: Final = 40
"""Characters of a text that may be a date; a longer one only mentions a day."""


def look_of(name: str, value: JSON) -> Look:
    """Say what an argument looks like.

    Parameters
    ----------
    name
        Of the argument: ``flight_id`` says that its text is an id.
    value
        Its value. ``null`` and empty lists look like nothing.

    Examples
    --------
    >>> [look_of("x", value) for value in ("AA123", "next Monday", 2, True, "Denver", [1])]
    ['id', 'date', 'number', 'boolean', 'text', 'nested']
    """
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return _look_of_text(name, value)
    return "nested" if isinstance(value, Mapping | list | tuple) and value else ""


def _look_of_text(name: str, text: str) -> Look:
    if len(text) <= _DATE_LENGTH and _is_date(text):
        return "date"
    if _ID.fullmatch(text) or (_ID_NAME.search(name) and text and " " not in text):
        return "id"
    return "text"


def _is_date(text: str) -> bool:
    if _ISO.match(text) or _NUMERIC_DATE.fullmatch(text) or _CLOCK.fullmatch(text):
        return True
    has_month = _MONTH_WORD.search(text) and any(map(str.isdigit, text))
    return bool(_DAY_WORD.search(text) or has_month)


def changed_value(name: str, value: JSON, *, schema: JSON = None) -> JSON:
    """Give another value that looks alike and means something else.

    Parameters
    ----------
    name
        Of the argument.
    value
        What :func:`look_of` finds a look of.
    schema
        Of the argument, where the agent declared it: a text that must be one of an
        ``enum`` becomes another one of it.

    Examples
    --------
    >>> changed_value("flight_id", "AA123"), changed_value("date", "2026-02-28")
    ('AA124', '2026-03-01')
    >>> changed_value("date", "next Sunday"), changed_value("city", "Denver")
    ('next Monday', 'some other city')
    """
    match look_of(name, value):
        case "boolean":
            return not value
        case "number":
            return value + 1
        case "date":
            return _other_date(value)
        case "id":
            return _other_id(value)
        case "nested":
            return _other_inside(name, value)
    return _other_text(name, value, schema)


def _other_date(text: str) -> str:
    found = _ISO.match(text)
    if found:
        return _next_day(found[1]) + text[found.end() :]
    for pattern, words in ((_DAY_WORD, (*_DAYS, *_RELATIVE)), (_MONTH_WORD, _MONTHS)):
        word = pattern.search(text)
        if word:
            return text[: word.start()] + _next_word(word[0], words) + text[word.end() :]
    return _other_id(text)


def _next_day(text: str) -> str:
    try:
        return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):  # no day of a calendar
        return _other_id(text)


def _next_word(word: str, words: tuple[str, ...]) -> str:
    """Give the word that follows, in its own row and as it is written."""
    row = _RELATIVE if word.lower() in _RELATIVE else tuple(w for w in words if w not in _RELATIVE)
    position = [known.lower() for known in row].index(word.lower())
    new = row[(position + 1) % len(row)]
    if word.isupper():
        return new.upper()
    return new.lower() if word.islower() else new.capitalize()


def _other_id(text: str) -> str:
    """Let the last digit count on, or the last letter where there is none."""
    for position in reversed(range(len(text))):
        if text[position] in "0123456789":
            digit = str((int(text[position]) + 1) % 10)
            return text[:position] + digit + text[position + 1 :]
    return text[:-1] + ("b" if text[-1:] == "a" else "a")


def _other_text(name: str, value: str, schema: JSON) -> str:
    known: Any = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(known, list) and value in known:
        others = [each for each in known[known.index(value) + 1 :] + known if each != value]
        if others and isinstance(others[0], str):
            return others[0]
    return f"some other {name.replace('_', ' ')}"


def _other_inside(name: str, value: JSON) -> JSON:
    """Change the first value inside that looks like anything, else leave one part out."""
    is_mapping = isinstance(value, Mapping)
    parts = list(value.items()) if is_mapping else [(name, item) for item in value]
    for position, (key, item) in enumerate(parts):
        if look_of(str(key), item):
            parts[position] = (key, changed_value(str(key), item))
            break
    else:
        parts = parts[:-1]
    return dict(parts) if is_mapping else [item for _, item in parts]
