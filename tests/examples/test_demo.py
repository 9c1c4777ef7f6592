"""The demonstration shows each behaviour and ends without a traceback."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import evalkit as ek
from evalkit import shipped
from evalkit.cli.app import call
from evalkit.examples import demo


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_each_recording_shows_its_own_fault() -> None:
    """The good one passes; the three others fail for the reason in their name."""
    suite = ek.load_suite(shipped.suite("travel"))
    told = {name: (status, wrong) for name, status, wrong in demo.recorded_behaviours(suite, "r")}
    assert told["good"] == ("passed", "nothing")
    assert told["wrong_id"][0] == "failed"
    assert "missing/incorrect: book {'flight_id': 'AA123'" in told["wrong_id"][1]
    assert told["looping"] == (
        "failed",
        "weather-gate-book: path: 1 duplicate tool call(s) — looping",
    )
    status, wrong = told["forbidden"]
    assert status == "failed"
    assert wrong.startswith("no-book-when-raining: truth: called forbidden tool: book")


@pytest.mark.notebook
def test_demo_leaves_runs_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    """It exits with 0, and nothing lies outside data/runs and reports."""
    assert demo.main([]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "PASSED: 5 passed, 0 failed, 0 incomplete of 5 trials" in printed.out
    assert "PASSED: 16 passed, 0 failed, 0 incomplete of 16 trials" in printed.out
    for mistake, scenario in demo.MISTAKES.items():
        assert re.search(rf"{mistake} +{scenario} +failed  \S", printed.out), mistake
    assert re.search(r"FAILED: \d+ passed, [1-9]\d* failed, 0 incomplete of 50", printed.out)
    reports = list(Path("reports").iterdir())
    assert len(reports) == 2
    assert all(f"report  {report}" in printed.out for report in reports)
    assert sorted(path.name for path in Path().iterdir()) == ["data", "reports"]
    assert [path.name for path in Path("data").iterdir()] == ["runs"]


def test_demo_without_the_report_extra_names_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs are shown; the missing extra is one sentence, not a traceback."""
    monkeypatch.setitem(sys.modules, "papermill", None)
    assert demo.main(["--out", "r"]) == 3
    printed = capsys.readouterr()
    assert "FAILED: " in printed.out
    assert printed.err.startswith("demo: ")
    assert 'pip install "evalkit-lab[report]"' in printed.err


def test_demo_shows_what_needs_no_sdk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without anthropic and the report extra, recordings and the flaky agent are shown; exit 3."""
    monkeypatch.setattr(demo, "find_spec", {}.get)
    monkeypatch.setitem(sys.modules, "papermill", None)
    assert call(["demo", "--out", "r"]) == 3
    printed = capsys.readouterr()
    assert "called forbidden tool: book" in printed.out
    assert re.search(r"FAILED: \d+ passed, [1-9]\d* failed, 0 incomplete of 50", printed.out)
    assert printed.err.splitlines() == [
        "demo: left out 1, 2: anthropic is not installed. Install it with: "
        'pip install "evalkit-lab[examples]"',
        "demo: left out 5: papermill is not installed. Install it with: "
        'pip install "evalkit-lab[report]"',
    ]


def test_demo_says_where_it_cannot_write(capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that cannot be made is named for each part; there is then nothing to report on."""
    Path("taken").write_text("a file")
    assert demo.main(["--out", "taken"]) == 2
    printed = capsys.readouterr()
    assert len(re.findall(r"^demo: left out \d: .*taken", printed.err, re.MULTILINE)) == 4
    assert "There is no run to report on." in printed.out
