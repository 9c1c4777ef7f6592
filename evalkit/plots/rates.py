"""Rates and their intervals as dots and whiskers, on one stated scale from 0% to 100%."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalkit.markup import Safe, clip, escape, join, table, tag
from evalkit.plots.scales import (
    HEIGHT,
    MARK,
    TRACK,
    WIDTH,
    Picture,
    at,
    dashes,
    interval,
    line,
    percent,
)

if TYPE_CHECKING:
    import pandas as pd


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
    shapes = [line(0, 1, stroke=TRACK, width=1.0)]
    if not (math.isnan(rate_low) or math.isnan(rate_high)):
        shapes.append(line(rate_low, rate_high, stroke=MARK, width=2.0))
    if reference is not None and not math.isnan(reference):
        shapes.append(dashes(reference))
    if not math.isnan(rate):
        shapes.append(tag("circle", cx=at(rate), cy=HEIGHT // 2, r=4, fill=MARK))
    return tag(
        "svg",
        tag("title", f"{label}: {words}" if label else words),
        *shapes,
        class_="ek-whisker",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_label=f"{label}: {words}" if label else words,
    )


def _words(rate: float, low: float, high: float) -> str:
    """Say what a whisker shows."""
    if math.isnan(rate):
        return "no rate, nothing was measured"
    return f"{percent(rate)}, interval {interval(low, high)}, on a scale from 0% to 100%"


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
    meaning = ""
    if reference is not None and not math.isnan(reference):
        meaning = f", dashes: overall {percent(reference)}"
    ends = join(tag("span", share) for share in ("0%", "50%", "100%"))
    return join(
        [
            tag("span", f"0% to 100%{meaning}", class_="ek-scale-text"),
            tag("span", ends, class_="ek-scale", aria_hidden="true"),
        ]
    )


def _description(records: Sequence[Mapping[str, Any]], by: str) -> str:
    """Say in words what all rows show."""
    return "\n".join(
        f"{r[by]}: {_words(float(r['rate']), float(r['rate_low']), float(r['rate_high']))}"
        for r in records
    )
