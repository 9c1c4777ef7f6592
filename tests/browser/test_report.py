"""A report in a real browser: nothing runs, nothing leaves, everything can be read."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.notebook]


def test_hostile_text_runs_nothing_and_asks_for_nothing(page: Page, report: Path) -> None:
    """No script runs, no request leaves, and the policy had nothing to block."""
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report.as_uri())
    page.mouse.move(300, 300)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(300)
    assert page.evaluate("window.pwned") is None
    assert requests == [report.as_uri()]
    assert complaints == []


def test_only_the_packages_own_elements_are_in_the_page(page: Page, report: Path) -> None:
    """Hostile text adds no element, no handler and no style of its own."""
    page.goto(report.as_uri())
    assert page.locator("script, iframe, object, embed, form, link, img, base").count() == 0
    assert page.locator("style").count() == 1
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(n => n.startsWith('on') || n == 'style' || n == 'href')"
    )
    assert handlers == ["href"]  # the link that skips to the report
    assert page.locator("main").is_visible()


def test_hostile_text_can_be_read_as_it_was_written(page: Page, report: Path) -> None:
    """What an agent said is shown literally, with hidden characters made visible."""
    page.goto(report.as_uri())
    text = page.locator("main").inner_text()
    assert "<script>window.pwned=1</script>" in text
    assert r"nul ␀ escape ␛[31m surrogate \ud800 override \u202e end" in text


def test_policy_stops_what_escaping_would_miss(page: Page, report: Path, tmp_path: Path) -> None:
    """With escaping taken away, the policy alone still stops script, handler and request."""
    fired = "<script>window.pwned=1</script><img src=http://192.0.2.1/ onerror=window.pwned=1>"
    html = report.read_text(encoding="utf-8")
    with_policy = html.replace("</main>", f"{fired}</main>", 1)
    without = re.sub(r"<meta [^>]*default-src[^>]*>", "", with_policy)
    assert page_runs(page, tmp_path / "without.html", without) == 1
    assert page_runs(page, tmp_path / "with.html", with_policy) is None


def page_runs(page: Page, path: Path, html: str) -> object:
    """Open a page whose requests all end here; return what a script left behind."""
    path.write_text(html, encoding="utf-8")
    page.route("http://**", lambda route: route.abort())
    page.goto(path.as_uri())
    page.wait_for_timeout(200)
    return page.evaluate("window.pwned")


@pytest.mark.parametrize("width", [320, 390, 768, 1100])
def test_page_never_scrolls_sideways(page: Page, report: Path, width: int) -> None:
    """Long words, ids and tables stay inside the page at every width."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_headings_and_landmarks_are_in_order(page: Page, report: Path) -> None:
    """One h1, no level skipped, one main and one footer, and every section has its name."""
    page.goto(report.as_uri())
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("contentinfo").count() == 1
    nameless = page.evaluate(
        "[...document.querySelectorAll('section')].filter(s => "
        "!document.getElementById(s.getAttribute('aria-labelledby'))).length"
    )
    assert nameless == 0
    assert page.locator("html").get_attribute("lang") == "en"


def test_ids_are_unique_and_pictures_are_named(page: Page, report: Path) -> None:
    """No id comes twice, and each picture says its figures to who cannot see it."""
    page.goto(report.as_uri())
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    pictures = page.get_by_role("img")
    assert pictures.count() > 10
    assert all("0% to 100%" in name or "no rate" in name for name in labels(page))


def labels(page: Page) -> list[str]:
    """Return the names of all pictures."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('svg')].map(s => s.getAttribute('aria-label'))"
    )
    return found


def test_keyboard_reaches_the_report_first(page: Page, report: Path) -> None:
    """The first stop of the tab key is the link that skips to the report."""
    page.goto(report.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    box = page.locator(".skip").bounding_box()
    assert box is not None
    assert box["x"] >= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_in_both_schemes(
    page: Page, report: Path, too_faint: str, scheme: Literal["light", "dark"]
) -> None:
    """Every text stands out from its ground by at least 4.5 to 1."""
    page.emulate_media(color_scheme=scheme)
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate(too_faint) == []


def test_dark_is_dark(page: Page, report: Path) -> None:
    """A reader who prefers dark gets a dark ground, also behind the verdict."""
    page.goto(report.as_uri())
    light = [ground(page, "body"), ground(page, ".ek-verdict")]
    page.emulate_media(color_scheme="dark")
    dark = [ground(page, "body"), ground(page, ".ek-verdict")]
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] == "rgb(23, 24, 27)"
    assert light[1] != dark[1]


def ground(page: Page, selector: str) -> str:
    """Return the computed background of an element."""
    return str(page.locator(selector).evaluate("e => getComputedStyle(e).backgroundColor"))


def test_verdict_is_seen_first(page: Page, report: Path) -> None:
    """Status, rate and what was not measured are on the first screen, also of a phone."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(report.as_uri())
    verdict = page.locator(".ek-verdict")
    box = verdict.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 844 or box["y"] < 300
    assert re.match(r"✕\s+Failed: 11 of 33 trials failed", verdict.inner_text())
    assert "11 of 33 trials not measured" in verdict.inner_text()


def test_prints_without_losing_failures(page: Page, report: Path) -> None:
    """On paper, each failed scenario still has its reason in its summary line."""
    page.emulate_media(media="print")
    page.goto(report.as_uri())
    why = page.locator(".ek-why").first
    assert why.evaluate("e => getComputedStyle(e).whiteSpace") == "normal"
    assert not page.locator(".skip").is_visible()
    assert len(page.pdf(format="A4")) > 10_000
