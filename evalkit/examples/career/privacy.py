"""Keep contact data out: nothing that the copilot does needs an address or a number.

What users write and what their resumes say is redacted before it is stored, sent to
a model or logged.
"""

from __future__ import annotations

import re
from typing import Final

_EMAIL: Final = re.compile(r"[\w.+%-]+\s?@\s?[\w-]+(?:\s?\.\s?[\w-]+)+")
# Not within words, paths and queries: the numbers of postings are no telephones.
_PHONE: Final = re.compile(r"(?<![\w/=.-])\+?\(?\d[\d ()/.-]{7,}\d(?![\w/])")
_PHONE_DIGITS: Final = 9


def redacted(text: str) -> str:
    """Replace e-mail addresses and telephone numbers.

    Examples
    --------
    >>> redacted("Ada, ada@example.com, +44 20 7946 0018, at A Corp. 2019 - 2024")
    'Ada, [e-mail removed], [phone removed], at A Corp. 2019 - 2024'
    """
    return _PHONE.sub(_without_phone, _EMAIL.sub("[e-mail removed]", text))


def _without_phone(found: re.Match[str]) -> str:
    n_digits = sum(char.isdigit() for char in found[0])
    return "[phone removed]" if n_digits >= _PHONE_DIGITS else found[0]
