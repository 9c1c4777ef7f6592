"""Rates as a matplotlib figure, for exploring in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from evalkit.errors import MissingDependency

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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
        As for :func:`evalkit.plots.dot_and_whisker`; the first row is drawn at the top.
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
