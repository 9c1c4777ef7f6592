"""What all pictures share: numbers as text, places on a scale, shapes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from evalkit.markup import Safe, tag

# Okabe-Ito; the page's variable wins, so that dark mode can lighten them.
MARK: Final = "var(--ek-mark, #0072b2)"
TRACK: Final = "var(--ek-line, #d9dade)"
MUTED: Final = "var(--ek-muted, #62656b)"
GROUND: Final = "var(--ek-ground, #fff)"
BAD: Final = "var(--ek-bad-mark, #d55e00)"
GOOD: Final = "var(--ek-good, #00795f)"

WIDTH: Final = 260
HEIGHT: Final = 20
MARGIN: Final = 3.0
"""Percent of the width that stays free on either side."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that shows itself in a notebook."""

    html: Safe
    """The picture as HTML with inline SVG."""
    description: str
    """The picture in words."""

    def __repr__(self) -> str:
        return self.description

    def _repr_html_(self) -> str:
        return str(self.html)


def percent(rate: float, *, digits: int = 0) -> str:
    """Write a share as percent, keeping "all" and "none" for exactly these.

    Parameters
    ----------
    rate
        Share in [0, 1]; NaN is an en dash.
    digits
        Decimal places.

    Examples
    --------
    >>> percent(0.42, digits=1), percent(0.999), percent(1.0)
    ('42.0%', '>99%', '100%')
    """
    if math.isnan(rate):
        return "–"
    text = f"{100 * rate:.{digits}f}"
    step = 10.0**-digits
    if rate > 0 and float(text) == 0:
        return f"<{step:.{digits}f}%"
    if rate < 1 and float(text) == 100:
        return f">{100 - step:.{digits}f}%"
    return f"{text}%"


def interval(low: float, high: float, *, digits: int = 0) -> str:
    """Write an interval of shares in percent.

    Examples
    --------
    >>> interval(0.312, 0.526)
    '31% to 53%'
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    return f"{percent(low, digits=digits)} to {percent(high, digits=digits)}"


def points(difference: float) -> str:
    """Write a difference of two rates in percentage points, with its sign.

    Parameters
    ----------
    difference
        In [-1, 1]; NaN is an en dash. What is not zero is never written as zero.

    Examples
    --------
    >>> points(-0.18), points(0.0), points(0.0003)
    ('−18.0', '0.0', '+0.03')
    """
    if math.isnan(difference):
        return "–"
    if difference == 0:
        return "0.0"
    text = f"{100 * difference:+.1f}"
    if float(text) == 0:
        text = f"{100 * difference:+.1g}"
    return text.replace("-", "−")


def points_interval(low: float, high: float) -> str:
    """Write an interval of a difference in percentage points.

    Examples
    --------
    >>> points_interval(-0.25, 0.011)
    '−25.0 to +1.1'
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    return f"{points(low)} to {points(high)}"


def at(share: float) -> str:
    """Place a share on the scale; in percent, so that a dot stays round when it narrows."""
    inside = min(max(share, 0.0), 1.0)
    return f"{MARGIN + inside * (100 - 2 * MARGIN):.2f}%"


def line(start: float, end: float, *, stroke: str, width: float) -> Safe:
    """Draw a horizontal line between two shares of the width."""
    middle = HEIGHT // 2
    return tag(
        "line", x1=at(start), x2=at(end), y1=middle, y2=middle, stroke=stroke, stroke_width=width
    )


def dashes(share: float) -> Safe:
    """Draw the dashed line that a picture is held against."""
    place = at(share)
    return tag(
        "line",
        x1=place,
        x2=place,
        y1=1,
        y2=HEIGHT - 1,
        stroke=MUTED,
        stroke_width=1.5,
        stroke_dasharray="2 2",
    )
