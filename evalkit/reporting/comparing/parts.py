"""Differences by tag and by grader, with what may be concluded from so many rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalkit.markup import Safe, clip, join, table, tag
from evalkit.plots import (
    common_reach,
    difference_whisker,
    percent,
    points,
    points_interval,
)
from evalkit.reporting.comparing.comparison import Comparison
from evalkit.reporting.elements import View, note, pairs, scroll, section

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = ("difference", "difference_low", "difference_high")
LOWER, HIGHER, LOOK = "lower", "higher", "look here"
_CLASSES = {LOWER: " ek-failed", HIGHER: " ek-passed"}


def differences_by(comparison: Comparison, by: str, *, limit: int = 100) -> View | None:
    """Draw the difference of each tag or grader with its interval, the largest loss first.

    Parameters
    ----------
    comparison
        From :func:`~evalkit.reporting.comparing.compare_with`.
    by
        ``tag`` or ``grader``.
    limit
        Show so many rows and say how many are left out.

    Returns
    -------
    View or None
        Nothing in the contract lane, which has no intervals, and where one of
        the sides knows no tag or grader.
    """
    rows = comparison.by(by)
    if rows is None or not len(rows):
        return None
    reach = common_reach(rows[list(_NUMBERS)].to_numpy().ravel().tolist())
    records = rows.head(max(limit, 0)).to_dict("records")
    alpha = 1 - comparison.confidence
    cells = [_row(record, by, reach=reach, alpha=alpha) for record in records]
    columns = {
        "name": by,
        "rates": "baseline, run" if comparison.is_pinned else "other, this run",
        "points": f"points ({percent(comparison.confidence)} interval)",
        "word": "change",
        "picture": _scale(reach),
    }
    html = table(cells, columns=columns, numbers=("rates", "points"), class_="ek-rates ek-beside")
    parts = [
        scroll(html, f"differences by {by}"),
        _about(rows, len(cells), alpha),
        _notes(rows, by),
    ]
    return section(f"by-{by}", f"By {by}", *parts)


def _row(record: Mapping[Any, Any], by: str, *, reach: float, alpha: float) -> dict[str, object]:
    """Turn a tag or grader into the cells of its row."""
    name, word = str(record[by]), word_for(record, alpha=alpha)
    numbers = [float(record[name]) for name in _NUMBERS]
    n = int(record["n_scenarios"])
    behind = tag("span", f"{n:,} scenario{'' if n == 1 else 's'}", class_="ek-aside")
    bounds = points_interval(*numbers[1:])
    chip = tag("span", word, class_=f"ek-chip{_CLASSES.get(word, '')}")
    picture = difference_whisker(
        *numbers, label=name[:120], reach=reach, tinted=word in (LOWER, HIGHER)
    )
    return {
        "name": join([clip(name, limit=120), behind], sep=" "),
        "rates": f"{percent(record['rate_baseline'])} → {percent(record['rate'])}" if n else "none",
        "points": join([tag("strong", points(numbers[0])), tag("span", bounds)], sep=" "),
        "word": chip,
        "picture": picture,
    }


def word_for(record: Mapping[Any, Any], *, alpha: float) -> str:
    """Say in words what a row's corrected p-values allow to say.

    Parameters
    ----------
    record
        A row of :func:`evalkit.stats.compare`.
    alpha
        Chance of a false word, in (0, 1).

    Examples
    --------
    >>> word_for({"difference": -0.2, "p_holm": 0.01, "p_bh": 0.01}, alpha=0.05)
    'lower'
    >>> word_for({"difference": -0.2, "p_holm": 0.09, "p_bh": 0.04}, alpha=0.05)
    'look here'
    """
    if record["p_holm"] <= alpha:
        return LOWER if record["difference"] < 0 else HIGHER
    if record["p_bh"] <= alpha:
        return LOOK
    return "no test" if math.isnan(record["p_holm"]) else "no clear change"


def _scale(reach: float) -> Safe:
    """State the scale above the pictures."""
    end = f"{100 * reach:g}"
    ends = join(tag("span", text) for text in (f"−{end}", "0", f"+{end}"))
    return join(
        [
            tag("span", f"−{end} to +{end} points", class_="ek-scale-text"),
            tag("span", ends, class_="ek-scale", aria_hidden="true"),
        ]
    )


def _about(rows: pd.DataFrame, n_shown: int, alpha: float) -> Safe:
    """Say how the words were chosen, and what is left out."""
    more = len(rows) - n_shown
    left = f" {more:,} more rows not shown." if more > 0 else ""
    level = percent(alpha)
    return note(
        f"Largest loss first. “lower” and “higher”: p is at most {level} after Holm's correction "
        f"over all {len(rows):,} rows. “look here”: only after Benjamini and Hochberg's, which "
        f"says where to look and proves nothing. Intervals are not corrected.{left}"
    )


def _notes(rows: pd.DataFrame, by: str) -> Safe:
    """Fold what the rows cannot say by their numbers."""
    said = [(str(r[by])[:120], r["note"]) for r in rows.to_dict("records") if r["note"]]
    if not said:
        return Safe()
    summary = tag("summary", "What to know of these rows")
    return tag("details", summary, tag("div", pairs(said), class_="ek-pairs"), class_="more")
