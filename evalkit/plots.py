"""Pictures of rates with their intervals.

:func:`dot_and_whisker` draws a table whose rows share one stated scale, as
inline SVG that needs no script, follows the page's light or dark colours and
is read out by screen readers. :func:`plot_rates` draws the same as a
matplotlib figure for exploring. The figures themselves come from
:mod:`evalkit.stats`; nothing is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from evalkit.errors import MissingDependency
from evalkit.markup import Safe, clip, escape, join, table, tag

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Picture", "dot_and_whisker", "interval", "percent", "plot_rates", "whisker"]

# Okabe-Ito; the page's variable wins, so that dark mode can lighten them.
_MARK: Final = "var(--ek-mark, #0072b2)"
_TRACK: Final = "var(--ek-line, #d9dade)"
_MUTED: Final = "var(--ek-muted, #62656b)"

_WIDTH: Final = 260
_HEIGHT: Final = 20
_MARGIN: Final = 3.0
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


def whisker(
    rate: float,
    rate_low: float,
    rate_high: float,
    *,
    label: str = "",
    reference: float | None = None,
) -> Safe:
    """Draw one rate as a dot and its interval as a line, on 0% to 100%.

    Parameters
    ----------
    rate, rate_low, rate_high
        Shares in [0, 1]. Without a rate the scale alone is drawn; without
        bounds, the dot alone.
    label
        What the rate belongs to, for readers who hear the picture.
    reference
        A share to mark by a dashed line.
    """
    words = _words(rate, rate_low, rate_high)
    shapes = [_line(0, 1, stroke=_TRACK, width=1.0)]
    if not (math.isnan(rate_low) or math.isnan(rate_high)):
        shapes.append(_line(rate_low, rate_high, stroke=_MARK, width=2.0))
    if reference is not None and not math.isnan(reference):
        shapes.append(_reference(reference))
    if not math.isnan(rate):
        shapes.append(tag("circle", cx=_x(rate), cy=_HEIGHT // 2, r=4, fill=_MARK))
    return tag(
        "svg",
        tag("title", f"{label}: {words}" if label else words),
        *shapes,
        class_="ek-whisker",
        width=_WIDTH,
        height=_HEIGHT,
        role="img",
        aria_label=f"{label}: {words}" if label else words,
    )


def _words(rate: float, low: float, high: float) -> str:
    """Say what a whisker shows."""
    if math.isnan(rate):
        return "no rate, nothing was measured"
    return f"{percent(rate)}, interval {interval(low, high)}, on a scale from 0% to 100%"


def _x(share: float) -> str:
    """Place a share on the scale; in percent, so that a dot stays round when it narrows."""
    inside = min(max(share, 0.0), 1.0)
    return f"{_MARGIN + inside * (100 - 2 * _MARGIN):.2f}%"


def _line(start: float, end: float, *, stroke: str, width: float) -> Safe:
    """Draw a horizontal line between two shares."""
    middle = _HEIGHT // 2
    return tag(
        "line", x1=_x(start), x2=_x(end), y1=middle, y2=middle, stroke=stroke, stroke_width=width
    )


def _reference(share: float) -> Safe:
    """Draw the dashed line that rates are held against."""
    place = _x(share)
    return tag(
        "line",
        x1=place,
        x2=place,
        y1=1,
        y2=_HEIGHT - 1,
        stroke=_MUTED,
        stroke_width=1.5,
        stroke_dasharray="2 2",
    )


def dot_and_whisker(
    frame: pd.DataFrame,
    *,
    by: str = "scenario",
    heading: str = "",
    reference: float | None = None,
    confidence: float = 0.95,
    caption: str = "",
) -> Picture:
    """Draw the rates of a frame as one table on one stated scale.

    Parameters
    ----------
    frame
        One row a rate, drawn in this order, with the columns named by ``by``,
        ``rate``, ``rate_low`` and ``rate_high``, and ``n_passed``,
        ``n_failed``, ``n_incomplete``, ``n_scenarios`` where they are known.
    by
        The column that names the rows.
    heading
        What to call that column; its name by default.
    reference
        A rate to mark in every row, usually the overall one.
    confidence
        Level of the intervals, for the heading.
    caption
        What the table shows.

    Returns
    -------
    Picture
        Shows itself in a notebook.

    Examples
    --------
    >>> import pandas as pd
    >>> rates = pd.DataFrame(
    ...     {"scenario": ["book"], "rate": [0.75], "rate_low": [0.3], "rate_high": [0.95]}
    ... )
    >>> dot_and_whisker(rates)
    book: 75%, interval 30% to 95%, on a scale from 0% to 100%
    """
    records = [{str(name): value for name, value in r.items()} for r in frame.to_dict("records")]
    rows = [_rate_row(record, by=by, reference=reference) for record in records]
    columns = {
        "name": heading or by,
        **({"passed": "passed"} if any(row["passed"] for row in rows) else {}),
        "rate": f"rate ({percent(confidence)} interval)",
        "picture": _scale(reference),
    }
    html = table(
        rows, columns=columns, caption=caption, numbers=("passed", "rate"), class_="ek-rates"
    )
    label = caption or f"rates by {by}"
    box = tag("div", html, class_="ek-scroll", role="region", aria_label=label, tabindex=0)
    return Picture(box, _description(records, by))


def _rate_row(record: Mapping[str, Any], *, by: str, reference: float | None) -> dict[str, object]:
    """Turn a record into the cells of its row."""
    rate, low, high = (float(record[name]) for name in ("rate", "rate_low", "rate_high"))
    name = str(record[by])
    return {
        "name": _name_cell(name, record.get("n_scenarios", 1)),
        "passed": _passed_cell(record),
        "rate": _rate_cell(rate, low, high),
        "picture": whisker(rate, low, high, label=name, reference=reference),
    }


def _name_cell(name: str, n_scenarios: int) -> Safe:
    """Write a row's name, and how many scenarios stand behind it."""
    shown = clip(name, limit=120)
    behind = tag("span", f"{n_scenarios:,} scenarios", class_="ek-aside")
    return join([shown, behind] if n_scenarios > 1 else [shown], sep=" ")


def _passed_cell(record: Mapping[str, Any]) -> Safe | None:
    """Write how many trials passed, and how many could not be measured."""
    if "n_passed" not in record or "n_failed" not in record:
        return None
    n_passed, n_failed = int(record["n_passed"]), int(record["n_failed"])
    missing = int(record.get("n_incomplete", 0))
    aside = tag("span", f"{missing:,} not measured", class_="ek-aside")
    counts = escape(f"{n_passed:,} of {n_passed + n_failed:,}")
    return join([aside, counts] if missing else [counts], sep=" ")


def _rate_cell(rate: float, low: float, high: float) -> Safe:
    """Write a rate, and its interval where it has one."""
    known = not (math.isnan(low) or math.isnan(high))
    shown = tag("strong", percent(rate)) if not math.isnan(rate) else Safe("no rate")
    return join([shown, tag("span", interval(low, high))] if known else [shown], sep=" ")


def _scale(reference: float | None) -> Safe:
    """State the scale above the pictures, and what the dashes mean."""
    dashes = ""
    if reference is not None and not math.isnan(reference):
        dashes = f", dashes: overall {percent(reference)}"
    ends = join(tag("span", share) for share in ("0%", "50%", "100%"))
    return join(
        [
            tag("span", f"0% to 100%{dashes}", class_="ek-scale-text"),
            tag("span", ends, class_="ek-scale", aria_hidden="true"),
        ]
    )


def _description(records: Sequence[Mapping[str, Any]], by: str) -> str:
    """Say in words what all rows show."""
    return "\n".join(
        f"{r[by]}: {_words(float(r['rate']), float(r['rate_low']), float(r['rate_high']))}"
        for r in records
    )


def plot_rates(
    frame: pd.DataFrame,
    *,
    by: str = "scenario",
    reference: float | None = None,
    title: str = "",
) -> Figure:
    """Draw rates and their intervals as a matplotlib figure, for exploring.

    Parameters
    ----------
    frame
        As for :func:`dot_and_whisker`; the first row is drawn at the top.
    by
        The column that names the rows.
    reference
        A rate to mark by a dashed line.
    title
        Heading of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Shows itself in a notebook once; ``figure.axes[0]`` is for changes.

    Raises
    ------
    MissingDependency
        matplotlib is not installed.
    """
    pyplot = _pyplot()
    rows = list(frame.to_dict("records"))
    figure, axes = pyplot.subplots(figsize=(7, 0.9 + 0.3 * len(rows)), layout="constrained")
    pyplot.close(figure)  # else a notebook shows it a second time
    for place, row in enumerate(rows):
        axes.hlines(place, row["rate_low"], row["rate_high"], color="#0072b2")
        axes.plot(row["rate"], place, "o", color="#0072b2")
    if reference is not None and not math.isnan(reference):
        axes.axvline(reference, color="#62656b", linestyle="--", linewidth=1)
    _dress(axes, names=[str(row[by]) for row in rows], title=title)
    return figure  # type: ignore[no-any-return]


def _pyplot() -> Any:
    """Import matplotlib, or say how to install it."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependency("matplotlib", "report") from None
    return pyplot


def _dress(axes: Any, *, names: list[str], title: str) -> None:
    """Label the rows and state the scale."""
    # Names are data: without parse_math a "$" in one would start a formula.
    for label in (axes.set_title(title, loc="left"), *axes.set_yticks(range(len(names)), names)):
        getattr(label, "label1", label).set_parse_math(False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    axes.spines[["top", "right", "left"]].set_visible(False)
