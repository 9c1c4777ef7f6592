"""Untrusted text stays text in everything that builds HTML."""

from __future__ import annotations

import math
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.markup import LONGEST, Safe, cell, clip, escape, join, table, tag, visible

HOSTILE = [
    "<script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><img src=x onerror=alert(1)>",
    "<!--",
    "&lt;script&gt;",
    "]]><b>",
]


class Reader(HTMLParser):
    """Collects tags, attributes and text as a browser would see them."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes |= dict(attributes)

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(deadline=None, max_examples=100)
@given(st.text())
def test_escape_gives_back_the_visible_text(text: str) -> None:
    """What a browser reads from escaped text is the text itself, and no tag."""
    read = Reader(escape(text))
    assert read.tags == []
    assert read.text == visible(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_table_holds_only_its_own_tags(text: str) -> None:
    """Cells, headings, captions and classes add no tag and no attribute."""
    frame = pd.DataFrame({text: [text, "b"], "n": [1, 2]})
    read = Reader(table(frame, caption=text, class_=text))
    assert set(read.tags) == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert set(read.attributes) == {"class", "scope"}
    assert read.text.count(visible(text)) >= 3 or text == "&lt;script&gt;"


@pytest.mark.parametrize("text", HOSTILE)
def test_attributes_cannot_be_left(text: str) -> None:
    """A hostile attribute value, even a Safe one, stays inside its quotes."""
    for value in (text, Safe(text)):
        read = Reader(tag("p", "x", title=value))
        assert read.tags == ["p"]
        assert read.attributes == {"title": visible(text)}


@pytest.mark.parametrize("name", ["onclick", "onLoad", "href", "src", "style", "xlink_href"])
def test_tag_refuses_attributes_that_run_or_fetch(name: str) -> None:
    """No view can write an event handler, a URL or a style."""
    with pytest.raises(ValueError, match="may not write"):
        tag("p", **{name: "x"})


@pytest.mark.parametrize("name", ["script", "iframe", "style", "p onclick=x", "a><b", ""])
def test_tag_refuses_elements_that_run_or_break(name: str) -> None:
    """No view can write a script, a frame or a name that is none."""
    with pytest.raises(ValueError, match="no element"):
        tag(name)


def test_safe_is_kept_and_plain_text_is_not() -> None:
    """Only Safe text keeps its tags; joined with plain text it loses them."""
    assert escape(Safe("<b>")) == "<b>"
    assert escape(Safe("<b>") + "<i>") == "&lt;b&gt;&lt;i&gt;"
    assert join([Safe("<b>"), "<i>"], sep="<") == "<b>&lt;&lt;i&gt;"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x00", "␀"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f", "␡"),
        ("\x85", r"\u0085"),
        ("\ud800", r"\ud800"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("a\r\nb", "a␍\nb"),
        ("a\tb\nc", "a\tb\nc"),
        ("naïve 日本 👩‍🚀", "naïve 日本 👩‍🚀"),
    ],
)
def test_visible_shows_what_cannot_be_seen(text: str, shown: str) -> None:
    """Control characters, surrogates and reordering marks are shown; text is not touched."""
    assert visible(text) == shown
    escape(text).encode("utf-8")


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, np.float64("nan"), pd.NA, pd.NaT])
def test_missing_values_are_a_titled_dash(missing: object) -> None:
    """What is not known is an en dash that says so, never a number or the word nan."""
    assert cell(missing) == '<span class="unknown" title="not known">–</span>'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "yes"),
        (np.bool_(False), "no"),
        (3, "3"),
        (np.int64(2**53 + 1), "9007199254740993"),
        (0.123456, "0.1235"),
        (math.inf, "inf"),
        (("a", "<b>"), "a, &lt;b&gt;"),
        ({"k": "<b>"}, "{&quot;k&quot;: &quot;&lt;b&gt;&quot;}"),
        ({(1, 2): "x"}, "{(1, 2): &#x27;x&#x27;}"),
        ("", ""),
    ],
)
def test_cell_writes_values_plainly(value: object, shown: str) -> None:
    """Values are written as a reader expects them, and escaped."""
    assert cell(value) == shown


def test_table_marks_headings_and_numbers() -> None:
    """Headings carry their scope, and numbers and their heading are right aligned."""
    html = table([{"id": "a", "n": 1, "word": "x"}, {"id": "b", "n": None, "word": "y"}])
    assert '<th scope="col">id</th><th class="num" scope="col">n</th>' in _sorted_class(html)
    assert html.count('scope="row"') == 2
    assert html.count('<td class="num">') == 2
    assert "<td>x</td>" in html


def _sorted_class(html: str) -> str:
    """Put the class before the scope, whichever was written first."""
    return html.replace('scope="col" class="num"', 'class="num" scope="col"')


def test_table_says_how_many_rows_are_left_out() -> None:
    """A limit hides rows but not their number; without one nothing is said."""
    frame = pd.DataFrame({"a": range(1_005)})
    html = table(frame, limit=5)
    assert html.count("<tr>") == 1 + 5 + 1
    assert "and 1,000 more rows" in html
    assert "more rows" not in table(frame.head(3), limit=5)


def test_table_of_nothing_still_has_its_headings() -> None:
    """An empty frame is a table with headings and no rows."""
    html = table(pd.DataFrame({"a": [], "b": []}))
    assert Reader(html).text == "ab"


def test_table_formats_known_values_only() -> None:
    """A format is applied to known values, and what it returns is escaped."""
    html = table([{"a": 0.5}, {"a": None}], formats={"a": lambda share: f"<{100 * share:.0f}%>"})
    assert "&lt;50%&gt;" in html
    assert "–" in html


def test_long_text_is_folded_and_bounded() -> None:
    """A long text shows its beginning, folds the rest and counts what it drops."""
    html = clip("x" * (LONGEST + 5_000))
    assert html.startswith('<details class="more"><summary>xxx')
    assert "… and 5,000 more characters" in html
    assert len(html) < LONGEST + 1_000
    assert clip("short") == "short"


def test_markup_imports_no_pandas() -> None:
    """Frames are read by duck typing: importing this module loads no pandas."""
    code = "import sys, evalkit.markup; assert not {'pandas', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
