"""A run against its baseline: intervals around zero, and pairs of rates.

All differences are those of rates, run minus baseline, in [-1, 1]; what is
written beside them is in percentage points. Left of zero the run is worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from evalkit.markup import Safe, tag
from evalkit.plots.scales import (
    BAD,
    GOOD,
    GROUND,
    HEIGHT,
    MARK,
    MUTED,
    TRACK,
    WIDTH,
    Picture,
    at,
    dashes,
    line,
    percent,
    points,
    points_interval,
)

_REACHES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
_TALL: Final = 60
_AXIS: Final = 30


def common_reach(values: Iterable[float]) -> float:
    """Choose how far a scale of differences reaches to either side of zero.

    Parameters
    ----------
    values
        Everything that will be drawn; what is unknown (NaN) takes no room.

    Examples
    --------
    >>> common_reach([-0.18, 0.02, float("nan")])
    0.2
    """
    farthest = max((abs(value) for value in values if not math.isnan(value)), default=0.0)
    return next((reach for reach in _REACHES if farthest <= reach), 1.0)


def difference_whisker(
    difference: float,
    low: float,
    high: float,
    *,
    label: str = "",
    margin: float | None = None,
    reach: float = 1.0,
    tinted: bool = True,
) -> Safe:
    """Draw one difference as a dot and its interval as a line, around zero.

    Parameters
    ----------
    difference, low, high
        Run minus baseline, in [-1, 1]. Without a difference the scale alone is
        drawn; without bounds, the dot alone.
    label
        What the difference belongs to, for readers who hear the picture.
    margin
        Drop, as a positive share, to mark by a dashed line left of zero.
    reach
        How far the scale goes to either side of zero; see :func:`common_reach`.
    tinted
        Whether an interval on one side of zero is coloured as worse or better.

    Examples
    --------
    >>> picture = difference_whisker(-0.18, -0.25, -0.11, label="all", margin=0.05, reach=0.3)
    >>> "all: −18.0 points, interval −25.0 to −11.0, below zero" in picture
    True
    """
    said = _said(difference, (low, high), margin=margin, reach=reach, label=label)
    mark = _colour(low, high) if tinted else MARK
    shapes = _shapes(difference, (low, high), margin=margin, reach=reach, mark=mark)
    size = {"width": WIDTH, "height": HEIGHT}
    return _svg(said, *shapes, class_="ek-whisker", **size)


def difference_scale(
    difference: float,
    low: float,
    high: float,
    *,
    margin: float | None = None,
    label: str = "difference",
) -> Picture:
    """Draw one difference large, on a scale that names zero, its ends and the margin.

    Parameters
    ----------
    difference, low, high, margin, label
        As for :func:`difference_whisker`.

    Returns
    -------
    Picture
        Shows itself in a notebook.

    Examples
    --------
    >>> difference_scale(-0.02, -0.08, 0.03, margin=0.05)
    difference: −2.0 points, interval −8.0 to +3.0, spans zero, reaches beyond the margin of \
−5.0, on a scale from −10 to +10 points
    """
    reach = common_reach([difference, low, high, 2 * (margin or 0.0)])
    said = _said(difference, (low, high), margin=margin, reach=reach, label=label)
    mark = _colour(low, high)
    shapes = _shapes(difference, (low, high), margin=margin, reach=reach, mark=mark)
    drawing = tag("svg", *shapes, y=_AXIS - HEIGHT // 2, height=HEIGHT, width="100%")
    names = _names(margin, reach)
    svg = _svg(said, drawing, *names, class_="ek-difference", width=WIDTH, height=_TALL)
    return Picture(svg, said)


def pair_of_rates(rate: float, rate_baseline: float, *, label: str = "") -> Safe:
    """Draw two rates on 0% to 100%: the baseline as a ring, the run as a dot.

    Parameters
    ----------
    rate, rate_baseline
        Shares in [0, 1]; what is unknown (NaN) is not drawn.
    label
        What the rates belong to, for readers who hear the picture.

    Examples
    --------
    >>> "book: baseline 100%, run 33%" in pair_of_rates(1 / 3, 1.0, label="book")
    True
    """
    said = f"baseline {percent(rate_baseline)}, run {percent(rate)}, on a scale from 0% to 100%"
    mark = _colour(rate, rate, against=rate_baseline)
    shapes = [line(0, 1, stroke=TRACK, width=1.0)]
    if not (math.isnan(rate) or math.isnan(rate_baseline)):
        shapes.append(line(rate_baseline, rate, stroke=mark, width=2.0))
    if not math.isnan(rate_baseline):
        shapes.append(_dot(rate_baseline, fill=GROUND, stroke=MUTED, stroke_width=1.5))
    if not math.isnan(rate):
        shapes.append(_dot(rate, fill=mark))
    said = f"{label}: {said}" if label else said
    return _svg(said, *shapes, class_="ek-whisker", width=WIDTH, height=HEIGHT)


def _svg(said: str, *shapes: Safe, **attributes: object) -> Safe:
    """Wrap shapes in a picture that says what it shows."""
    return tag("svg", tag("title", said), *shapes, **attributes, role="img", aria_label=said)


def _shapes(
    difference: float,
    bounds: tuple[float, float],
    *,
    margin: float | None,
    reach: float,
    mark: str,
) -> Iterator[Safe]:
    """Draw track, zero, margin, interval and dot, in this order."""
    yield line(0, 1, stroke=TRACK, width=1.0)
    yield _upright(0.5)
    if margin is not None:
        yield dashes(_share(-margin, reach))
    low, high = bounds
    if not (math.isnan(low) or math.isnan(high)):
        yield line(_share(low, reach), _share(high, reach), stroke=mark, width=2.5)
    if not math.isnan(difference):
        yield _dot(_share(difference, reach), fill=mark)


def _share(difference: float, reach: float) -> float:
    """Place a difference on a scale that goes from 0 to 1."""
    return (difference + reach) / (2 * reach)


def _colour(low: float, high: float, *, against: float = 0.0) -> str:
    """Return the colour of what is wholly below, wholly above, or neither."""
    if high < against:
        return BAD
    return GOOD if low > against else MARK


def _upright(share: float) -> Safe:
    """Draw the line at zero."""
    place = at(share)
    return tag("line", x1=place, x2=place, y1=1, y2=HEIGHT - 1, stroke=MUTED, stroke_width=1)


def _dot(share: float, **attributes: object) -> Safe:
    """Draw a dot at a share of the width."""
    return tag("circle", cx=at(share), cy=HEIGHT // 2, r=4, **attributes)


def _names(margin: float | None, reach: float) -> Iterator[Safe]:
    """Name the ends of a scale, its zero, and the margin above it."""
    end = f"{100 * reach:g}"
    yield _text("0", x="50%", anchor="middle")
    yield _text(f"−{end} points: worse", x="0%", anchor="start")
    yield _text(f"better: +{end} points", x="100%", anchor="end")
    if margin is not None:
        place = at(_share(-margin, reach))
        yield _text(f"margin {points(-margin)}", x=place, anchor="middle", y=13)


def _text(words: str, *, x: str, anchor: str, y: int = _TALL - 4) -> Safe:
    """Write a label in a picture."""
    return tag("text", words, x=x, y=y, text_anchor=anchor, fill=MUTED)


def _said(
    difference: float,
    bounds: tuple[float, float],
    *,
    margin: float | None,
    reach: float,
    label: str,
) -> str:
    """Say what a picture of a difference shows."""
    lead = f"{label}: " if label else ""
    if math.isnan(difference):
        return f"{lead}no difference, nothing to compare"
    end = f"{100 * reach:g}"
    parts = [f"{points(difference)} points", *_about_bounds(*bounds, margin=margin)]
    return f"{lead}{', '.join(parts)}, on a scale from −{end} to +{end} points"


def _about_bounds(low: float, high: float, *, margin: float | None) -> Iterator[str]:
    """Say where an interval lies, seen from zero and from the margin."""
    if math.isnan(low) or math.isnan(high):
        yield "no interval"
        return
    yield f"interval {points_interval(low, high)}"
    yield "below zero" if high < 0 else "above zero" if low > 0 else "spans zero"
    if margin is not None:
        where = "within" if low > -margin else "reaches beyond"
        yield f"{where} the margin of {points(-margin)}"
