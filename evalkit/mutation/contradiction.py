"""A reply turned into its opposite by rule: "booked" becomes "did not book", and back.

The rules know English only. A reply that no rule fits has no opposite here.
"""

from __future__ import annotations

import re
from typing import Final

_VERBS: Final = (
    "add", "approve", "book", "cancel", "change", "close", "complete", "confirm", "create",
    "delete", "deliver", "deploy", "fix", "install", "move", "open", "order", "reserve",
    "refund", "register", "remove", "rename", "save", "schedule", "ship", "solve", "store",
    "submit", "transfer", "update", "upgrade", "upload",
)  # fmt: skip
_IRREGULAR: Final = {
    "do": "did", "find": "found", "get": "got", "give": "gave", "make": "made", "pay": "paid",
    "send": "sent", "submit": "submitted", "take": "took", "transfer": "transferred",
    "cancel": "cancelled", "write": "wrote", "ship": "shipped",
}  # fmt: skip
_AUXILIARIES: Final = (
    "is", "are", "was", "were", "can", "could", "will", "would", "should", "has", "have", "had",
    "may", "must",
)  # fmt: skip
_SHORT: Final = {"can't": "can", "won't": "will", "cannot": "can", "shan't": "shall"}


def _past(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}ed"


_VERB_OF: Final = {_past(verb): verb for verb in (*_VERBS, *_IRREGULAR)} | {"canceled": "cancel"}

_DID_NOT: Final = re.compile(r"\bdid(?: not|n't) (?:yet |actually )?([a-z]+)\b", re.IGNORECASE)
_NOT: Final = re.compile(
    rf"\b({'|'.join(_SHORT)})(?!\w)|\b({'|'.join(_AUXILIARIES)})(?: not|n't)\b|\b(is|are) no\b",
    re.IGNORECASE,
)
_DONE: Final = re.compile(rf"\b({'|'.join(_VERB_OF)})\b", re.IGNORECASE)
_AUXILIARY: Final = re.compile(rf"\b({'|'.join(_AUXILIARIES)})\b", re.IGNORECASE)
_PASSIVE: Final = re.compile(
    r"\b(?:is|are|was|were|be|been|being|has|have|had|still|already)\s+$", re.IGNORECASE
)


def contradicted(text: str) -> str | None:
    """Give the opposite of a reply, or nothing where no rule fits.

    Parameters
    ----------
    text
        A denial (``did not``, ``cannot``, ``is no`` ...) becomes a claim, wherever it
        stands. Where there is none, the first claim becomes a denial: a verb in the
        past (``booked``), else an auxiliary (``is``, ``can`` ...).

    Examples
    --------
    >>> contradicted("It is raining, so I did not book AA200.")
    'It is raining, so I booked AA200.'
    >>> contradicted("Booked AA123 for Friday.")
    'Did not book AA123 for Friday.'
    >>> contradicted("AA123 is booked.")
    'AA123 is not booked.'
    >>> contradicted("Hello!") is None
    True
    """
    claimed = _NOT.sub(_claim, _DID_NOT.sub(_past_claim, text))
    if claimed != text:
        return claimed
    for found in _DONE.finditer(text):
        if not _PASSIVE.search(text[: found.start()]):
            return text[: found.start()] + _denial(found[0]) + text[found.end() :]
    auxiliary = _AUXILIARY.search(text)
    if auxiliary is None:
        return None
    return f"{text[: auxiliary.end()]} not{text[auxiliary.end() :]}"


def _past_claim(found: re.Match[str]) -> str:
    return _cased(_past(found[1].lower()), like=found[0])


def _claim(found: re.Match[str]) -> str:
    short, auxiliary, before_no = found[1], found[2], found[3]
    if short:
        return _cased(_SHORT[short.lower()], like=short)
    return auxiliary or f"{before_no} a"


def _denial(claim: str) -> str:
    return _cased(f"did not {_VERB_OF[claim.lower()]}", like=claim)


def _cased(text: str, *, like: str) -> str:
    """Begin with a capital letter where the other text does."""
    return text[:1].upper() + text[1:] if like[:1].isupper() else text
