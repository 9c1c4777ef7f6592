"""Expectations of replies that may notice a mutant: what they must say, and must not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from evalkit.ledger import JSON
from evalkit.mutation.pasting import suggestion
from evalkit.mutation.records import Mutant, Subject, Suggestion

_EDGES = " \t\n.,;:!?()[]{}\"'“”‘’—–-"
_MOST_WORDS = 4


class _Said(NamedTuple):
    """The last reply of a turn, before and after."""

    before: str
    after: str


def _said(subject: Subject, mutant: Mutant) -> _Said:
    before, after = (trace.turns[mutant.turn].replies for trace in (subject.trace, mutant.trace))
    return _Said(before[-1] if before else "", after[-1] if after else "")


def ask_for_last_words(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Expect the last words of the reply."""
    said = _said(subject, mutant)
    words = list(re.finditer(r"\S+", said.before))
    for n in range(1, _MOST_WORDS + 1):
        phrase = said.before[words[-n].start() :].strip(_EDGES) if n <= len(words) else ""
        if len(phrase) > 2 and not _has(said.after, phrase):
            yield _reply(subject, mutant, contains=phrase)


def ask_for_lost_words(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Expect the words that the mutant's reply lacks."""
    said = _said(subject, mutant)
    for phrase, _ in _changes(said):
        if len(phrase) > 1 and not _has(said.after, phrase):
            yield _reply(subject, mutant, contains=phrase)


def refuse_new_words(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Refuse the words that only the mutant's reply has."""
    said = _said(subject, mutant)
    for _, phrase in _changes(said):
        if len(phrase) > 1 and not _has(said.before, phrase):
            yield _reply(subject, mutant, not_contains=phrase)


def _changes(said: _Said) -> Iterator[tuple[str, str]]:
    """Give the phrases around each change, as before and as after."""
    before, after = ([*re.finditer(r"\S+", text)] for text in said)
    pair = [word[0] for word in before], [word[0] for word in after]
    for tag, start, end, new_start, new_end in SequenceMatcher(None, *pair, False).get_opcodes():
        if tag == "equal":
            continue
        # A short word says little without the one before it.
        is_short = min(end - start, new_end - new_start) == 0 or _length(before[start:end]) < 4
        lead = int(is_short and start > 0 and new_start > 0)
        yield (
            _phrase(said.before, before[start - lead : end]),
            _phrase(said.after, after[new_start - lead : new_end]),
        )


def _length(words: list[re.Match[str]]) -> int:
    return sum(len(word[0]) for word in words)


def _phrase(text: str, words: list[re.Match[str]]) -> str:
    return text[words[0].start() : words[-1].end()].strip(_EDGES) if words else ""


def _has(text: str, phrase: str) -> bool:
    return phrase.casefold() in text.casefold()


def ask_for_whole_reply(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Expect the reply word for word."""
    yield _reply(subject, mutant, equals=_said(subject, mutant).before)


def refuse_leak(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Forbid the text that leaked, in any reply."""
    said = _said(subject, mutant)
    leaked = said.after.removeprefix(said.before).strip()
    place = subject.home
    known = subject.forbid(place).reply
    old = {} if known is None else known.model_dump(mode="json", exclude_defaults=True)
    contains = [*(known.contains if known else ()), leaked]
    value = {**old, "contains": contains} if old.keys() - {"contains"} else contains
    yield suggestion(subject, place, section="forbid", key="reply", value=value)


def _reply(subject: Subject, mutant: Mutant, **more: str) -> Suggestion:
    """Suggest what is expected of the reply already, and more."""
    place = subject.place(mutant.turn)
    known = subject.expect(place).reply
    value: dict[str, Any] = {} if known is None else known.model_dump(
        mode="json", by_alias=True, exclude_defaults=True
    )  # fmt: skip
    for key, text in more.items():
        value[key] = text if key == "equals" else [*value.get(key, ()), text]
    value = {key: _short(item) for key, item in value.items()}
    return suggestion(subject, place, section="expect", key="reply", value=value)


def _short(value: JSON) -> JSON:
    return value[0] if isinstance(value, list) and len(value) == 1 else value
