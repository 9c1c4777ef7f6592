"""Pictures of rates: one stated scale, accessible, and no text that runs."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from evalkit.plots import Picture, dot_and_whisker, interval, percent, plot_rates, whisker

NAN = float("nan")


@pytest.fixture
def rates() -> pd.DataFrame:
    """Three rates, one of them unknown, with hostile and ordinary names."""
    return pd.DataFrame(
        {
            "scenario": ["<script>x</script>", "$pay$", "book"],
            "rate": [NAN, 0.25, 1.0],
            "rate_low": [NAN, 0.05, 0.51],
            "rate_high": [NAN, 0.70, 1.0],
            "n_passed": [0, 1, 4],
            "n_failed": [0, 3, 0],
            "n_incomplete": [4, 0, 0],
        }
    )


@pytest.mark.parametrize(
    ("rate", "digits", "text"),
    [
        (0.0, 0, "0%"),
        (1.0, 1, "100.0%"),
        (0.004, 0, "<1%"),
        (0.996, 0, ">99%"),
        (0.9996, 1, ">99.9%"),
        (0.42, 1, "42.0%"),
        (NAN, 0, "–"),
    ],
)
def test_percent_keeps_all_and_none_for_exactly_these(rate: float, digits: int, text: str) -> None:
    """Rounding never turns some into none, or nearly all into all."""
    assert percent(rate, digits=digits) == text


def test_interval_without_bounds_is_a_dash() -> None:
    """An interval that does not exist is not written as numbers."""
    assert interval(NAN, 0.5) == "–"
    assert interval(0.1, 0.5) == "10% to 50%"


def _shapes(svg: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the attributes of the lines and of the dots of a picture."""
    root = ElementTree.fromstring(svg)
    return [e.attrib for e in root.iter("line")], [e.attrib for e in root.iter("circle")]


def test_whisker_draws_on_the_shared_scale() -> None:
    """Track, interval, reference and dot lie where the shares say."""
    lines, dots = _shapes(whisker(0.5, 0.25, 1.0, reference=0.5))
    track, bar, reference = lines
    assert (track["x1"], track["x2"]) == ("3.00%", "97.00%")
    assert (bar["x1"], bar["x2"]) == ("26.50%", "97.00%")
    assert reference["x1"] == dots[0]["cx"] == "50.00%"
    assert "stroke-dasharray" in reference


def test_whisker_without_a_rate_has_no_dot() -> None:
    """What was not measured is an empty scale that says so, never a dot at zero."""
    svg = whisker(NAN, NAN, NAN, label="book")
    lines, dots = _shapes(svg)
    assert (len(lines), len(dots)) == (1, 0)
    assert "no rate, nothing was measured" in svg


def test_whisker_without_bounds_has_a_dot_only() -> None:
    """A rate without an interval gets no bar."""
    lines, dots = _shapes(whisker(0.5, NAN, NAN))
    assert (len(lines), len(dots)) == (1, 1)


def test_whisker_can_be_read_out() -> None:
    """A picture has a role, a label and a title with its figures and scale."""
    root = ElementTree.fromstring(whisker(0.25, 0.05, 0.7, label="a<b"))
    words = "a<b: 25%, interval 5% to 70%, on a scale from 0% to 100%"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == words
    assert root.findtext("title") == words


def test_dot_and_whisker_states_scale_level_and_reference(rates: pd.DataFrame) -> None:
    """The heading says the scale, the level of the intervals and what the dashes are."""
    html = dot_and_whisker(rates, reference=0.625, confidence=0.9).html
    assert "0% to 100%, dashes: overall 62%" in html
    assert "rate (90% interval)" in html
    assert html.count("<svg") == 3


def test_dot_and_whisker_shows_counts_and_what_is_missing(rates: pd.DataFrame) -> None:
    """Counts stand beside the rate, and trials that were not measured are named as such."""
    html = dot_and_whisker(rates).html
    assert "4 not measured" in html
    assert "1 of 4" in html
    assert html.count("not measured") == 1
    assert "no rate" in html


def test_dot_and_whisker_escapes_names(rates: pd.DataFrame) -> None:
    """A name is text in the table, in the picture's title and in its label."""
    picture = dot_and_whisker(rates)
    assert "<script" not in picture._repr_html_()
    assert picture.html.count("&lt;script&gt;") == 3
    assert isinstance(picture, Picture)


def test_dot_and_whisker_keeps_the_order_of_the_frame(rates: pd.DataFrame) -> None:
    """Sorting is the caller's: rows are drawn as they come."""
    words = repr(dot_and_whisker(rates)).splitlines()
    assert [line.rpartition(": ")[0] for line in words] == list(rates["scenario"])


def test_dot_and_whisker_needs_only_rates() -> None:
    """Without counts there is no column of counts."""
    frame = pd.DataFrame({"k": [1], "rate": [0.5], "rate_low": [0.2], "rate_high": [0.8]})
    html = dot_and_whisker(frame, by="k", heading="pass^k").html
    assert "passed" not in html
    assert re.search(r'<th scope="col">pass\^k</th>', html)


def test_plot_rates_draws_every_rate_with_its_interval(rates: pd.DataFrame) -> None:
    """The figure shows each known rate at its place, the first row on top."""
    figure = plot_rates(rates, reference=0.6, title="$a$ and $b$")
    axes = figure.axes[0]
    dots = [(float(l.get_xdata()[0]), float(l.get_ydata()[0])) for l in axes.lines[:3]]  # noqa: E741
    assert math.isnan(dots[0][0])
    assert dots[1:] == [(0.25, 1.0), (1.0, 2.0)]
    assert axes.yaxis_inverted()
    assert to_hex(axes.lines[1].get_color()) == "#0072b2"
    assert [t.get_text() for t in axes.get_yticklabels()] == list(rates["scenario"])


def test_plot_rates_takes_dollar_signs_literally(rates: pd.DataFrame) -> None:
    """A dollar sign in a name starts no formula, which could fail to parse."""
    rates["scenario"] = [r"$\frac{$", "$x$", "a"]
    figure = plot_rates(rates, title=r"$\nope{$")
    figure.canvas.draw()
