"""A hostile run, its report, and the browser that opens it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from evalkit.grade import Grade
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


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the report on a run in which every text is hostile."""
    folder = tmp_path_factory.mktemp("evil")
    write_hostile_run(folder / "r1")
    return render_report("pass_rates", run=folder / "r1", out=folder / "report.html")


def write_hostile_run(folder: Path) -> None:
    """Write a run whose ids, tags, graders, reasons, replies and manifest are hostile."""
    ids = [text.replace("\ud800", "") for text in EVIL]  # no id: a digest could not hold it
    plan = tuple(PlannedScenario(name, 3, tags=(name,)) for name in ids)
    manifest = Manifest(
        run_id="r1",
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
        for trial, status in enumerate(("failed", "incomplete", "passed")):
            writer.add(_record(text, EVIL[-number - 1], trial=trial, status=status))
    writer.finish()


def _record(scenario: str, text: str, *, trial: int, status: str) -> TrialRecord:
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
