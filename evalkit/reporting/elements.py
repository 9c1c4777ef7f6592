"""The few shapes that every view is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evalkit.markup import Safe, clip, tag
from evalkit.reporting.rendering import COMMAND

__all__ = ["View", "card", "count", "note", "pairs", "scroll", "section", "style_sheet"]

_STYLE: Final = (
    Path(__file__).resolve().parent.parent / "_templates" / "evalkit_report" / "views.css"
)


@dataclass(frozen=True, slots=True)
class View:
    """A part of a report; shows itself in a notebook."""

    html: Safe

    def _repr_html_(self) -> str:
        return str(tag("div", self.html, class_="ek"))


def section(key: str, heading: str, *parts: object) -> View:
    """Build a section under its heading."""
    title = tag("h2", heading, id=f"ek-{key}")
    return View(tag("section", title, *parts, aria_labelledby=f"ek-{key}"))


def note(*parts: object) -> Safe:
    """Build a paragraph of small print."""
    return tag("p", *parts, class_="ek-note")


def count(n: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def pairs(items: Iterable[tuple[object, object]]) -> Safe:
    """Build a list of terms and what is said of them."""
    return tag("dl", *(tag("div", tag("dt", term), tag("dd", clip(text))) for term, text in items))


def scroll(html: Safe, label: str) -> Safe:
    """Let a wide table scroll by itself, so that the page never does."""
    return tag("div", html, class_="ek-scroll", role="region", aria_label=label, tabindex=0)


def card(name: str, value: str, detail: str) -> Safe:
    """Build one key number."""
    shown = tag("dd", value, class_="ek-value")
    return tag("div", tag("dt", name), shown, tag("dd", detail, class_="ek-detail"))


def style_sheet() -> Safe:
    """Return the style sheet for a notebook; a report has it in its head."""
    if COMMAND in os.environ:
        return Safe()
    return Safe(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>")
