"""Names in place of values, in what is written for others to read."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from evalkit.scanning.scanner import Scanner, scanner_for


class Hiding:
    """Hides values: a value becomes ``[canary NAME]``.

    Parameters
    ----------
    planted
        Name and value of each.

    Examples
    --------
    >>> hiding = hiding_for((("address", "canary@example.test"),))
    >>> hiding.text("sent to CANARY@example.test")
    'sent to [canary address]'
    >>> hiding.text("Y2FuYXJ5QGV4YW1wbGUudGVzdA==")
    "[withheld: it holds canary 'address' (base64)]"
    """

    def __init__(self, planted: tuple[tuple[str, str], ...]) -> None:
        self._scanner: Scanner = scanner_for(planted)
        written = {spelling: name for name, value in planted for spelling in _written(value)}
        # The longest first, so that of overlapping values none is left in part.
        longest = sorted(written, key=len, reverse=True)
        self._names = {spelling.casefold(): name for spelling, name in written.items()}
        self._pattern = re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)

    def text(self, text: str) -> str:
        """Hide the values of one text; one that holds them otherwise is withheld as a whole."""
        if not self._names:
            return text
        told = self._pattern.sub(self._named, text)
        found = self.found(told)
        return f"[withheld: it holds {found}]" if found else told

    def json(self, value: Any) -> Any:
        """Hide the values in every text of JSON data, keys too."""
        if not self._names:
            return value
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(str(key)): self.json(item) for key, item in value.items()}
            case list() | tuple():
                return [self.json(item) for item in value]
            case bool() | None:
                return value
            case int() | float():
                said = str(value)
                return value if self.text(said) == said else self.text(said)
        return value

    def document(self, markup: str) -> tuple[str, str]:
        """Hide the values in HTML or XML, text by text.

        Returns
        -------
        tuple of str
            The document, and what of values is left in it (between its texts, say):
            then it must not be written.
        """
        if not self._names:
            return markup, ""
        told = self._pattern.sub(self._named, markup)
        if not self.found(told):
            return told, ""
        told = re.sub(r"(?<=>)[^<>]+", self._withheld, told)
        return told, self.found(told)

    def _withheld(self, found: re.Match[str]) -> str:
        """Withhold a text between two tags, if it holds a value."""
        text = found[0]
        return html.escape(self.text(text), quote=False) if self.found(text) else text

    def _named(self, match: re.Match[str]) -> str:
        name = self._names.get(match[0].casefold())
        return f"[canary {name}]" if name else "[canary]"

    def found(self, text: str) -> str:
        """Name what values a text holds, in any writing; empty if none."""
        if not self._names:
            return ""
        hits = self._scanner.scan(text).hits
        return ", ".join(f"canary {hit.canary!r} ({hit.form})" for hit in hits)


def _written(value: str) -> Iterator[str]:
    """Give a value as texts, JSON, markup and addresses write it."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield quote(value, safe="")


@lru_cache(maxsize=64)
def hiding_for(planted: tuple[tuple[str, str], ...]) -> Hiding:
    """Give what hides some values, made once."""
    return Hiding(planted)
