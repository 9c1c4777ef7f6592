"""The report on two sides in a real browser: safe, readable, and drawn as it says."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.notebook]

UNFOLD = "document.querySelectorAll('details').forEach(d => d.open = true)"


def test_hostile_text_runs_nothing_and_asks_for_nothing(page: Page, comparison: Path) -> None:
    """No script runs, no request leaves, and the policy had nothing to block."""
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(comparison.as_uri())
    page.mouse.move(300, 300)
    page.evaluate(UNFOLD)
    page.wait_for_timeout(300)
    assert page.evaluate("window.pwned") is None
    assert requests == [comparison.as_uri()]
    assert complaints == []


def test_only_the_packages_own_elements_are_in_the_page(page: Page, comparison: Path) -> None:
    """Hostile text adds no element, no handler and no style of its own, and is shown literally."""
    page.goto(comparison.as_uri())
    assert page.locator("script, iframe, object, embed, form, link, img, base").count() == 0
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(n => n.startsWith('on') || n == 'style' || n == 'href')"
    )
    assert handlers == ["href"]  # the link that skips to the report
    assert "<script>window.pwned=1</script>" in page.locator("main").inner_text()


@pytest.mark.parametrize("width", [320, 400, 768, 1100])
def test_page_never_scrolls_sideways(page: Page, comparison: Path, width: int) -> None:
    """Long words, hashes and tables stay inside the page at every width."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(comparison.as_uri())
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_headings_sections_ids_and_pictures_are_in_order(page: Page, comparison: Path) -> None:
    """One h1, no level skipped, sections have names, ids are unique, pictures say their figures."""
    page.goto(comparison.as_uri())
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    nameless = page.evaluate(
        "[...document.querySelectorAll('section')].filter(s => "
        "!document.getElementById(s.getAttribute('aria-labelledby'))).length"
    )
    assert nameless == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    names = page.evaluate(
        "[...document.querySelectorAll('svg[role=img]')].map(s => s.getAttribute('aria-label'))"
    )
    assert len(names) > 10
    assert all("on a scale from" in name or "no difference" in name for name in names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_in_both_schemes(
    page: Page, comparison: Path, too_faint: str, scheme: Literal["light", "dark"]
) -> None:
    """Every text stands out from its ground by at least 4.5 to 1."""
    page.emulate_media(color_scheme=scheme)
    page.goto(comparison.as_uri())
    page.evaluate(UNFOLD)
    assert page.evaluate(too_faint) == []


@pytest.mark.parametrize("width", [400, 1100])
def test_interval_lies_where_its_figures_say(page: Page, comparison: Path, width: int) -> None:
    """The interval is drawn below zero, in the middle of the scale, and no label is cut off."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(comparison.as_uri())
    zero, interval = (box(page, f".ek-difference line:nth-of-type({n})") for n in (2, 3))
    track = box(page, ".ek-difference line:nth-of-type(1)")
    assert zero["x"] == pytest.approx(track["x"] + track["width"] / 2, abs=1.5)
    assert interval["x"] + interval["width"] < zero["x"]
    for label in page.locator(".ek-difference text").all():
        place = label.bounding_box()
        assert place is not None
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= width


def box(page: Page, selector: str) -> Any:
    """Return where an element is drawn."""
    return page.locator(selector).first.evaluate(
        "e => { const r = e.getBoundingClientRect(); return {x: r.x, width: r.width} }"
    )


def test_two_runs_get_no_colour_of_a_verdict(page: Page, comparison: Path) -> None:
    """What is not gated looks neither passed nor failed, and is on the first screen."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(comparison.as_uri())
    verdict = page.locator(".ek-verdict")
    assert verdict.get_attribute("class") == "ek-verdict ek-open"
    assert "Two single runs are compared" in verdict.inner_text()
    place = page.locator(".ek-headline").bounding_box()
    assert place is not None
    assert place["y"] < 500


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshot_shows_the_picture_in_its_colour(
    page: Page, comparison: Path, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    """In a screenshot, the interval has the colour of what is worse, in both schemes."""
    from PIL import Image

    page.emulate_media(color_scheme=scheme)
    page.goto(comparison.as_uri())
    path = tmp_path / "shot.png"
    page.locator(".ek-difference").screenshot(path=path)
    with Image.open(path) as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(100_000) or []}
    assert {"light": (213, 94, 0), "dark": (242, 142, 75)}[scheme] in colours


def test_prints_the_verdict_and_what_broke(page: Page, comparison: Path) -> None:
    """On paper, each newly failing scenario still has its reason in its summary line."""
    page.emulate_media(media="print")
    page.goto(comparison.as_uri())
    why = page.locator(".ek-why").first
    assert why.evaluate("e => getComputedStyle(e).whiteSpace") == "normal"
    assert page.locator(".ek-difference").is_visible()
    assert len(page.pdf(format="A4")) > 10_000
