"""Searching texts for planted values, in every spelling and through every layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from evalkit.scanning.layers import Room, layers_of
from evalkit.scanning.spellings import MIN_CHARS, PLAIN, spellings
from evalkit.scanning.squashing import squash

MAX_DEPTH: Final = 3
"""Layers inside each other that are looked through."""
_WINDOW: Final = 2_000_000
"""Characters of a long text that are unwrapped at a time."""
_OVERLAP: Final = 50_000
"""Characters that two windows share, so that what is encoded is whole in one of them."""
_ROOM: Final = 40
"""Characters that may be unwrapped for each one of the text."""
_LEAST_ROOM: Final = 4_000_000

Text: TypeAlias = str | bytes


class Hit(NamedTuple):
    """A value that was found; it says which one, never what it is."""

    canary: str
    """Name of the value."""
    form: str
    """How it was written: ``plain``, ``other case``, ``disguised`` (with spaces, look-alike
    letters ...), ``base64``, ``hex in base64`` ..."""
    event: int | None = 0
    """0-based number of the first text that holds it; ``None`` if it is split over several."""


class Scan(NamedTuple):
    """What a search found, and whether all was searched."""

    hits: tuple[Hit, ...] = ()
    problem: str = ""
    """Why a part was not searched; empty if all was."""


class Scanner:
    """Searches for values.

    Parameters
    ----------
    planted
        Name and value of each; names may repeat.

    Raises
    ------
    ValueError
        If a value has fewer than :data:`MIN_CHARS` letters and digits.

    Examples
    --------
    >>> scanner = Scanner([("address", "canary@example.test")])
    >>> scanner.scan("to: C A N A R Y @ e x a m p l e . t e s t").hits
    (Hit(canary='address', form='disguised', event=0),)
    >>> scanner.scan(["canary@exa", "mple.test"]).hits
    (Hit(canary='address', form='plain', event=None),)
    >>> scanner.scan("nothing of the kind").hits
    ()
    """

    def __init__(self, planted: Iterable[tuple[str, str]]) -> None:
        from ahocorasick_rs import BytesAhoCorasick

        self.planted = tuple(planted)
        self._known: list[tuple[str, str]] = []
        patterns: dict[bytes, list[int]] = {}
        for name, value in self.planted:
            _check_length(name, value)
            for spelling, form in spellings(value).items():
                patterns.setdefault(spelling, []).append(len(self._known))
                self._known.append((name, form))
        self._of_pattern = list(patterns.values())
        self._values = dict(_grouped(self.planted))
        self._automaton = BytesAhoCorasick(list(patterns)) if patterns else None

    def scan(self, texts: Text | Sequence[Text]) -> Scan:
        """Search one text, or the texts of one stream, also across their borders.

        Returns
        -------
        Scan
            For each value that is there, the forms in which it is; where one is
            found as it stands, what wraps it is not told as well.
        """
        stream = [texts] if isinstance(texts, str | bytes) else list(texts)
        parts = [_readable(part) for part in stream]
        whole = self._scanned("".join(parts))
        if not whole.hits or len(parts) == 1:
            return whole
        return whole._replace(hits=tuple(self._located(whole.hits, parts)))

    def _located(self, hits: Sequence[Hit], parts: Sequence[str]) -> Iterator[Hit]:
        """Say which text holds each hit."""
        first: dict[tuple[str, str], int] = {}
        for number, part in enumerate(parts):
            for hit in self._scanned(part).hits if len(part) >= MIN_CHARS else ():
                first.setdefault((hit.canary, hit.form), number)
        for hit in hits:
            yield hit._replace(event=first.get((hit.canary, hit.form)))

    def _scanned(self, text: str) -> Scan:
        """Search one text and all that it wraps."""
        search = _Search(self._matches, Room(max(_LEAST_ROOM, _ROOM * len(text))))
        search.note(text, ())
        for window in _windows(text):
            search.look_through(window, ())
        return search.result()

    def _matches(self, text: str) -> list[tuple[str, str]]:
        """Give the values of one text, and how they are spelled."""
        squashed = squash(text)
        if self._automaton is None or len(squashed) < MIN_CHARS:
            return []
        matches = self._automaton.find_matches_as_indexes(squashed, overlapping=True)
        numbers = dict.fromkeys(match[0] for match in matches)
        which = (self._known[one] for number in numbers for one in self._of_pattern[number])
        return [
            (name, self._plainness(name, text) if form == PLAIN else form) for name, form in which
        ]

    def _plainness(self, name: str, text: str) -> str:
        """Say how plainly a text says a value."""
        values = self._values[name]
        if any(value in text for value in values):
            return PLAIN
        folded = text.casefold()
        is_case = any(value.casefold() in folded for value in values)
        return "other case" if is_case else "disguised"


class _Search:
    """One search: what it has found, and how much it may still unwrap."""

    def __init__(self, matches: Callable[[str], list[tuple[str, str]]], room: Room) -> None:
        self._matches = matches
        self._room = room
        self._found: dict[tuple[str, str], None] = {}

    def look_through(self, text: str, path: tuple[str, ...]) -> None:
        """Search what a text wraps, layer by layer."""
        for layer in layers_of(text, self._room):
            inside = (*path, layer.name)
            self.note(layer.text, inside)
            if len(inside) < MAX_DEPTH:
                self.look_through(layer.text, inside)

    def note(self, text: str, path: tuple[str, ...]) -> None:
        """Note the values of a text that were not found in what wraps it."""
        known = {name for name, _ in self._found}
        for name, form in self._matches(text):
            if name not in known:
                self._found.setdefault((name, _told(form, path)))

    def result(self) -> Scan:
        """Give what was found."""
        problem = "what it wraps is more than a search unpacks" if self._room.is_spent else ""
        return Scan(tuple(Hit(name, form) for name, form in self._found), problem)


def _check_length(name: str, value: str) -> None:
    n_chars = len(squash(value))
    if n_chars < MIN_CHARS:
        raise ValueError(
            f"canary {name!r} is too short to search for: it has {n_chars} letters and digits, "
            f"{MIN_CHARS} are needed"
        )


def _grouped(planted: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in planted:
        found.setdefault(name, []).append(value)
    return found


def _readable(part: Text) -> str:
    return part if isinstance(part, str) else part.replace(b"\0", b"").decode("utf-8", "ignore")


def _windows(text: str) -> Iterator[str]:
    if len(text) <= _WINDOW:
        yield text
        return
    for start in range(0, len(text), _WINDOW - _OVERLAP):
        yield text[start : start + _WINDOW]


def _told(form: str, path: tuple[str, ...]) -> str:
    """Name a form inside layers, the innermost first."""
    # In a wrapping, how plainly it stands there matters no more.
    own = () if path and form in (PLAIN, "other case", "disguised") else (form,)
    return " in ".join((*own, *reversed(path)))


@lru_cache(maxsize=64)
def scanner_for(planted: tuple[tuple[str, str], ...]) -> Scanner:
    """Give the scanner of some values, made once.

    Examples
    --------
    >>> planted = (("address", "canary@example.test"),)
    >>> scanner_for(planted) is scanner_for(planted)
    True
    """
    return Scanner(planted)
