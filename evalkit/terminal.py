"""Text for a terminal: aligned columns, and nothing that could steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evalkit.markup import visible


def printable(text: object) -> str:
    r"""Give text that a terminal shows and does not obey.

    Newlines and tabs stay; other control characters (an agent's escape
    sequences, say) and lone surrogates become visible.

    Examples
    --------
    >>> "\x1b" in printable("\x1b[2J")
    False
    """
    return visible(str(text))


def one_line(text: object, *, limit: int = 160) -> str:
    """Give a text as one line of at most ``limit`` characters."""
    line = printable(" ".join(str(text).split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def columns(rows: Iterable[Sequence[Any]], *, head: Sequence[str], right: str = "") -> str:
    """Align rows under their headings.

    Parameters
    ----------
    rows
        Cells are shown with ``str``, made printable, on one line.
    head
        Headings.
    right
        One letter a column: ``r`` aligns it to the right.
    """
    lines = [tuple(head), *(tuple(one_line(cell) for cell in row) for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides = right.ljust(len(head), "l")
    return "\n".join(
        "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(line, widths, sides, strict=True)
        ).rstrip()
        for line in lines
    )


def some_of(names: Sequence[object], *, limit: int = 5, separator: str = ", ") -> str:
    """Name the first few, and count the rest.

    Examples
    --------
    >>> some_of(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return separator.join(one_line(name, limit=400) for name in names[:limit]) + more


def percent(value: float | None) -> str:
    """Give a rate as a percentage; what is unknown as a dash."""
    return "–" if value is None or value != value else f"{100 * value:.1f}%"  # noqa: PLR0124, RUF100 - NaN
