"""Hostile runs, their reports, and the browser that opens them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from evalkit.grade import Grade, Status
from evalkit.reporting import render_report
from evalkit.results import Manifest, PlannedScenario, RunWriter, TrialRecord

CHROMIUM = Path(os.environ.get("EVALKIT_CHROMIUM", "/usr/bin/chromium"))
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

EVIL = [
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    '"><svg onload=window.pwned=1>',
    "</style></title></summary></main><script>window.pwned=1</script>",
    "' onmouseover='window.pwned=1' autofocus onfocus='window.pwned=1",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<link rel=stylesheet href=http://192.0.2.1/x.css><img src=http://192.0.2.1/x.png>",
    "<style>@import url(http://192.0.2.1/y.css);main{display:none}</style>",
    "javascript:window.pwned=1",
    "nul \x00 escape \x1b[31m surrogate \ud800 override \u202e end",
    "word" * 400,
]


# Not for the whole session: Playwright's event loop runs in this thread as long as it is
# open, and tests that come after need to start loops of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Debian's Chromium; skip where there is none, fail where all must be there."""
    if not CHROMIUM.exists():
        reason = f"{CHROMIUM} is not installed; EVALKIT_CHROMIUM may name another"
        if os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
            pytest.fail(f"EVALKIT_REQUIRE_ALL=1, but {reason}")
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open an empty page on a desktop that prefers light."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, color_scheme="light")
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def too_faint() -> str:
    """Give the script that lists the texts whose contrast is below 4.5 to 1."""
    return CONTRAST


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the report on a run in which every text is hostile."""
    folder = tmp_path_factory.mktemp("evil")
    write_hostile_run(folder / "r1")
    return render_report("pass_rates", run=folder / "r1", out=folder / "report.html")


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the comparison of two runs in which every text is hostile."""
    folder = tmp_path_factory.mktemp("evil-pair")
    write_hostile_run(folder / "r0", ["passed", "passed", "passed"])
    write_hostile_run(folder / "r1")
    parameters = {"baseline": str(folder / "r0")}
    out = folder / "report.html"
    return render_report("compare_runs", run=folder / "r1", out=out, parameters=parameters)


def write_hostile_run(
    folder: Path, statuses: Sequence[Status] = ("failed", "incomplete", "passed")
) -> None:
    """Write a run whose ids, tags, graders, reasons, replies and manifest are hostile."""
    ids = [text.replace("\ud800", "") for text in EVIL]  # no id: a digest could not hold it
    plan = tuple(PlannedScenario(name, 3, tags=(name,)) for name in ids)
    manifest = Manifest(
        run_id=folder.name,
        suite=EVIL[0],
        lane="live",
        plan=plan,
        agent=EVIL[2],
        models=tuple(EVIL),
        versions={EVIL[3]: EVIL[1]},
        git={"branch": EVIL[2]},
        source={"file": EVIL[0]},
        created_at=EVIL[1],
    )
    writer = RunWriter.create(folder, manifest)
    for number, text in enumerate(ids):
        for trial, status in enumerate(statuses):
            writer.add(_record(text, EVIL[-number - 1], trial=trial, status=status))
    writer.finish()


def _record(scenario: str, text: str, *, trial: int, status: Status) -> TrialRecord:
    """Build one trial that says a hostile text wherever a trial can say something."""
    if status == "incomplete":
        return TrialRecord(scenario, trial, "incomplete", "grader_raised", text, tags=(scenario,))
    value = 1.0 if status == "passed" else 0.0
    grades = (
        Grade(text, value, reason=text, evidence={"reply": text}),
        Grade("truth", value, reason=f"missing/incorrect: book {text!r}\n{text}"),
    )
    code = "" if status == "passed" else "grader_failed"
    reason = "" if status == "passed" else text
    return TrialRecord(scenario, trial, status, code, reason, tags=(scenario, text), grades=grades)


CONTRAST = """
() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const lum = ([r, g, b]) => {
    const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const groundOf = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest('svg') || !e.checkVisibility()) continue;
    const [a, b] = [lum(parse(getComputedStyle(e).color)), lum(groundOf(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(bad)];
}
"""
