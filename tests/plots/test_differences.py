"""Pictures of differences: zero in the middle, the margin left of it, figures in words."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from evalkit.plots import (
    common_reach,
    difference_scale,
    difference_whisker,
    pair_of_rates,
    points,
    points_interval,
)

NAN = float("nan")


def _shapes(svg: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the attributes of the lines and of the dots of a picture."""
    root = ElementTree.fromstring(svg)
    return [e.attrib for e in root.iter("line")], [e.attrib for e in root.iter("circle")]


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (-0.18, "−18.0"),
        (0.005, "+0.5"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (-0.0003, "−0.03"),
        (1.0, "+100.0"),
        (NAN, "–"),
    ],
)
def test_points_have_a_sign_and_only_zero_is_zero(difference: float, text: str) -> None:
    """A difference that is not zero is never written as zero."""
    assert points(difference) == text


def test_interval_without_bounds_is_a_dash() -> None:
    """An interval that does not exist is not written as numbers."""
    assert points_interval(NAN, 0.1) == "–"
    assert points_interval(-0.25, -0.11) == "−25.0 to −11.0"


@pytest.mark.parametrize(
    ("values", "reach"),
    [([], 0.05), ([NAN], 0.05), ([-0.18, 0.02], 0.2), ([0.2], 0.2), ([0.31, NAN], 0.5), ([-1], 1)],
)
def test_common_reach_covers_every_value(values: list[float], reach: float) -> None:
    """The scale holds all that is drawn, and what is unknown takes no room."""
    assert common_reach(values) == reach


def test_whisker_has_zero_in_the_middle_and_the_margin_left_of_it() -> None:
    """Track, zero, margin, interval and dot lie where the differences say."""
    lines, dots = _shapes(difference_whisker(-0.1, -0.2, 0.1, margin=0.1, reach=0.2))
    track, zero, margin, bar = lines
    assert (track["x1"], track["x2"]) == ("3.00%", "97.00%")
    assert zero["x1"] == zero["x2"] == "50.00%"
    assert margin["x1"] == dots[0]["cx"] == "26.50%"
    assert "stroke-dasharray" in margin
    assert (bar["x1"], bar["x2"]) == ("3.00%", "73.50%")


@pytest.mark.parametrize(
    ("low", "high", "colour", "words"),
    [
        (-0.2, -0.1, "--ek-bad-mark", "below zero"),
        (0.1, 0.2, "--ek-good", "above zero"),
        (-0.1, 0.2, "--ek-mark", "spans zero"),
        (-0.1, 0.0, "--ek-mark", "spans zero"),
    ],
)
def test_colour_never_says_more_than_the_words(
    low: float, high: float, colour: str, words: str
) -> None:
    """An interval on one side of zero has a colour and words for it; others have neither."""
    svg = difference_whisker((low + high) / 2, low, high)
    assert f"var({colour}," in _shapes(svg)[0][-1]["stroke"]
    assert words in svg
    plain = difference_whisker((low + high) / 2, low, high, tinted=False)
    assert "var(--ek-mark," in _shapes(plain)[0][-1]["stroke"]


def test_whisker_without_a_difference_has_no_dot() -> None:
    """What cannot be compared is an empty scale that says so, never a dot at zero."""
    svg = difference_whisker(NAN, NAN, NAN, label="book")
    assert [len(found) for found in _shapes(svg)] == [2, 0]
    assert "book: no difference, nothing to compare" in svg


def test_whisker_without_bounds_has_a_dot_only() -> None:
    """A difference without an interval gets no bar, and says so."""
    svg = difference_whisker(-0.1, NAN, NAN)
    assert [len(found) for found in _shapes(svg)] == [2, 1]
    assert "−10.0 points, no interval" in svg


def test_scale_names_zero_its_ends_and_the_margin() -> None:
    """The large picture writes what its marks are, and is read out as one sentence."""
    picture = difference_scale(-0.02, -0.08, 0.03, margin=0.05, label="a<b")
    root = ElementTree.fromstring(picture.html)
    written = {element.text for element in root.iter("text")}
    assert written == {"0", "−10 points: worse", "better: +10 points", "margin −5.0"}
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == root.findtext("title") == picture.description
    assert "a<b: −2.0 points, interval −8.0 to +3.0, spans zero" in picture.description
    assert "reaches beyond the margin of −5.0" in picture.description


@pytest.mark.parametrize("margin", [0.01, 0.05, 0.4, 0.9])
def test_margin_is_on_the_scale(margin: float) -> None:
    """Whatever the margin, its mark lies inside the picture, apart from zero."""
    lines, _ = _shapes(difference_scale(0.0, -0.01, 0.01, margin=margin).html)
    place = float(lines[2]["x1"].rstrip("%"))
    assert 3 <= place < 50


def test_scale_without_a_margin_marks_none() -> None:
    """Two runs have no margin, and no mark that could look like one."""
    picture = difference_scale(-0.02, -0.08, 0.03)
    assert "margin" not in picture.html
    assert "dasharray" not in picture.html


def test_pair_draws_the_baseline_as_a_ring_and_the_run_as_a_dot() -> None:
    """Both rates lie on 0% to 100%; the line between them shows where the run went."""
    lines, dots = _shapes(pair_of_rates(0.0, 1.0, label="book"))
    ring, dot = dots
    assert (ring["cx"], dot["cx"]) == ("97.00%", "3.00%")
    assert "--ek-ground" in ring["fill"]
    assert "--ek-bad-mark" in dot["fill"]
    assert (lines[1]["x1"], lines[1]["x2"]) == ("97.00%", "3.00%")


@pytest.mark.parametrize(("rate", "before", "dots"), [(NAN, 1.0, 1), (1.0, NAN, 1), (NAN, NAN, 0)])
def test_pair_draws_only_what_is_known(rate: float, before: float, dots: int) -> None:
    """A rate that is unknown is no dot at zero, and no line leads to it."""
    svg = pair_of_rates(rate, before)
    assert [len(found) for found in _shapes(svg)] == [1, dots]
    assert "–" in svg
