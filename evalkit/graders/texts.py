"""Texts: what is in them that must be, and what must not, for every grader that reads some.

``contains`` and ``not_contains`` compare texts in Unicode's composed form (NFC) and
without case; ``equals`` and ``regex`` (searched anywhere) take them as they stand.
Several texts are looked at together: each check may be met by any one of them.

Where texts come from, and how much of them was seen, is the graders' to say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from evalkit.graders.base import Trial
from evalkit.graders.findings import Finding, fault, gap
from evalkit.matching import show
from evalkit.suite import ForbiddenText, TextExpect

SHOWN: Final = 160
"""Characters of a text that a reason quotes."""

_AROUND: Final = 30
"""Characters on either side of a forbidden text."""


def said(texts: Iterable[str], where: Iterable[str]) -> list[str]:
    """List the texts that some other text contains, whatever their case and composition.

    Examples
    --------
    >>> said(["BOOKED", "sorry"], ["I have booked it."])
    ['BOOKED']
    """
    wanted = list(texts)
    folded = [_folded(text) for text in where] if wanted else []
    return [text for text in wanted if any(_folded(text) in other for other in folded)]


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Folding may decompose (U+0390 becomes three characters), so it is composed again.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


class Match(NamedTuple):
    """A regular expression that was found."""

    pattern: str
    around: str
    """What was found, with a little of what stands around it."""


def matched(patterns: Iterable[str], where: Sequence[str]) -> Iterator[Match]:
    """Give the regular expressions that are found in some text, each once.

    Examples
    --------
    >>> list(matched(["AA[0-9]+", "x"], ["Booked AA123."]))
    [Match(pattern='AA[0-9]+', around='Booked AA123.')]
    """
    for pattern in patterns:
        for text in where:
            found = re.search(pattern, text)
            if found:
                yield Match(pattern, _around(text, found.start(), found.end()))
                break


def _around(text: str, start: int, end: int) -> str:
    return text[max(start - _AROUND, 0) : end + _AROUND]


class Miss(NamedTuple):
    """One thing that is not as expected."""

    text: str
    """The rest of a sentence: ``does not contain 'x'``."""
    is_lack: bool
    """Whether something is not there, rather than there against the rules."""


def text_misses(expect: TextExpect, where: Sequence[str]) -> Iterator[Miss]:
    """Say what some texts are not, each as the rest of a sentence about them.

    Examples
    --------
    >>> expect = TextExpect(contains=("booked",), not_contains=("sorry",))
    >>> [miss.text for miss in text_misses(expect, ["Sorry, no."])]
    ["does not contain 'booked'", "contains 'sorry'"]
    """
    there = set(said(expect.contains, where))
    for text in expect.contains:
        if text not in there:
            yield Miss(f"does not contain {text!r}", is_lack=True)
    for text in said(expect.not_contains, where):
        yield Miss(f"contains {text!r}", is_lack=False)
    found = {match.pattern for match in matched(expect.regex, where)}
    for pattern in expect.regex:
        if pattern not in found:
            yield Miss(f"does not match /{pattern}/", is_lack=True)
    if expect.equals is not None and expect.equals not in where:
        yield Miss(f"is not {show(expect.equals)}", is_lack=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """The texts that a place's checks look at, and how much of them was seen."""

    name: str
    """How a sentence calls them, in the singular."""
    texts: Sequence[str]
    turn: int | None = None
    is_over: bool = True
    """Whether no more can come."""
    unseen: str = ""
    """Why there may be more than these; empty if these are all."""
    foreign: str = ""
    """Why some of these may belong to another turn; empty if none does."""
    note: str = ""
    """What a sentence about them ends with."""


def text_findings(
    seen: Seen, *, expect: TextExpect | None, forbid: ForbiddenText | None
) -> Iterator[Finding]:
    """Hold texts against what is expected of them and forbidden.

    Parameters
    ----------
    seen
        What is not there is a fault if all of it was seen and no more can come;
        what is there against the rules, if it surely belongs there.
    expect, forbid
        What one place says.
    """
    misses = [] if expect is None else list(text_misses(expect, seen.texts))
    lacks = [miss for miss in misses if miss.is_lack]
    certain = [miss for miss in misses if _is_certain(miss, seen)]
    if certain:
        told = [miss.text for miss in certain]
        yield fault(f"{seen.name} {', '.join(told)}{seen.note}", turn=seen.turn, misses=told)
    banned = [] if forbid is None else list(_banned(forbid, seen))
    if not seen.foreign:
        yield from (fault(text, turn=seen.turn) for text in banned)
    n_excess = len(misses) - len(lacks) + len(banned)
    if seen.unseen and (lacks or _refuses(expect, forbid)):
        yield gap(seen.unseen, turn=seen.turn)
    elif seen.foreign and (n_excess or (_demands(expect) and not lacks)):
        yield gap(seen.foreign, turn=seen.turn)


def _is_certain(miss: Miss, seen: Seen) -> bool:
    return seen.is_over and not seen.unseen if miss.is_lack else not seen.foreign


def _banned(forbid: ForbiddenText, seen: Seen) -> Iterator[str]:
    for text in said(forbid.contains, seen.texts):
        yield f"{seen.name} contains {text!r}, which is forbidden{_quoted(text, seen.texts)}"
    for pattern, around in matched(forbid.regex, seen.texts):
        yield f"{seen.name} matches /{pattern}/, which is forbidden: {show(around, SHOWN)}"


def _quoted(text: str, where: Sequence[str]) -> str:
    """Quote what stands around a text, where it stands in a text as it is but for its case."""
    found = next(matched([f"(?i){re.escape(text)}"], where), None)
    return "" if found is None else f": {show(found.around, SHOWN)}"


def _demands(expect: TextExpect | None) -> bool:
    """Say whether something must be there."""
    if expect is None:
        return False
    return bool(expect.contains or expect.regex) or expect.equals is not None


def _refuses(expect: TextExpect | None, forbid: ForbiddenText | None) -> bool:
    """Say whether something must not be there."""
    return forbid is not None or bool(expect is not None and expect.not_contains)


def is_over(trial: Trial, turn: int | None) -> bool:
    """Say whether nothing more can come in a turn, or in the whole trial (``None``)."""
    return trial.whole or (turn is not None and turn < len(trial.trace.turns) - 1)
