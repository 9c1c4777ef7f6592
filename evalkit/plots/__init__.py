"""Pictures of rates and of differences between rates.

=============  ================================================================
module         what it holds
=============  ================================================================
rates          a rate and its interval: dots and whiskers on 0% to 100%
differences    a run against its baseline: intervals around zero, pairs of dots
figures        the same rates as a matplotlib figure, for exploring
scales         what all pictures share: numbers as text, places, shapes
=============  ================================================================

Reports get inline SVG that needs no script, follows the page's light or dark
colours and is read out by screen readers. The figures themselves come from
:mod:`evalkit.stats`; nothing is computed here.
"""

from __future__ import annotations

from evalkit.plots.differences import (
    common_reach,
    difference_scale,
    difference_whisker,
    pair_of_rates,
)
from evalkit.plots.figures import plot_rates
from evalkit.plots.rates import dot_and_whisker, whisker
from evalkit.plots.scales import Picture, interval, percent, points, points_interval

__all__ = [
    "Picture",
    "common_reach",
    "difference_scale",
    "difference_whisker",
    "dot_and_whisker",
    "interval",
    "pair_of_rates",
    "percent",
    "plot_rates",
    "points",
    "points_interval",
    "whisker",
]
