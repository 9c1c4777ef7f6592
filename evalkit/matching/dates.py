"""Days and instants in the spellings that ``$date`` accepts.

Accepted: ISO 8601 days and date-times (``2026-01-05``, ``20260105``,
``2026-01-05T09:00:00Z``, ``2026-01-05 09:00+01:00``), e-mail dates
(``Mon, 05 Jan 2026 09:00:00 +0000``) and days in English words
(``5 January 2026``, ``Jan 5, 2026``) or as ``2026/01/05``. Refused, because two
people read them differently: ``01/05/2026``, days without a year, bare numbers.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from email.utils import parsedate_to_datetime

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?"
    r"|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)\.?"
)
_DAY = r"(?P<day>\d{1,2})(st|nd|rd|th)?"
_WORDED = (
    re.compile(rf"{_DAY} {_MONTH},? (?P<year>\d{{4}})", re.ASCII | re.IGNORECASE),
    re.compile(rf"{_MONTH} {_DAY},? (?P<year>\d{{4}})", re.ASCII | re.IGNORECASE),
)
_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})", re.ASCII)
_EMAIL = re.compile(r"([a-z]{3}, *)?\d{1,2} [a-z]{3} \d{4} \d", re.ASCII | re.IGNORECASE)


def parse_moment(text: str) -> date | datetime | None:
    """Read a day or a date-time, ``None`` where the text is neither.

    Examples
    --------
    >>> parse_moment("5 January 2026"), parse_moment("01/05/2026")
    (datetime.date(2026, 1, 5), None)
    """
    text = text.strip()
    try:
        return _iso(text) or _slashed(text) or _worded(text) or _email(text)
    except (ValueError, OverflowError):  # the shape of a date, but no such day
        return None


def same_moment(expected: date | datetime, actual: date | datetime) -> bool:
    """Compare a moment with the one that was asked for.

    A day matches that day, also with a time of day (the day as written, in its
    own zone). A date-time with a zone matches the same instant in any zone, one
    without a zone the same wall clock without a zone; neither matches a bare day.

    Examples
    --------
    >>> at_nine, at_ten = "2026-01-05T09:00:00Z", "2026-01-05 10:00+01:00"
    >>> same_moment(parse_moment(at_nine), parse_moment(at_ten))
    True
    """
    if not isinstance(expected, datetime):
        return expected == (actual.date() if isinstance(actual, datetime) else actual)
    if not isinstance(actual, datetime):
        return False
    both_known = (expected.utcoffset() is None) == (actual.utcoffset() is None)
    return both_known and expected == actual


def _iso(text: str) -> date | datetime | None:
    """Read ISO 8601, a day before a date-time."""
    for read in (date.fromisoformat, datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _slashed(text: str) -> date | None:
    """Read ``2026/01/05``."""
    found = _SLASHED.fullmatch(text)
    return date(*map(int, found.groups())) if found else None


def _worded(text: str) -> date | None:
    """Read a day with an English month, independent of the locale."""
    for form in _WORDED:
        if found := form.fullmatch(text):
            month = _MONTHS.index(found["month"][:3].lower()) + 1
            return date(int(found["year"]), month, int(found["day"]))
    return None


def _email(text: str) -> datetime | None:
    """Read the date of an e-mail or of an HTTP header."""
    return parsedate_to_datetime(text) if _EMAIL.match(text) else None
