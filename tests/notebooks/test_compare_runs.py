"""The report on two sides, whole: pinned baseline, two runs, contract lane, hostile texts."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.baselines import pin_baseline
from evalkit.errors import ReportError, UsageError
from evalkit.grade import Ending, Grade
from evalkit.ledger import digest, event_line
from evalkit.recording import ledger_of
from evalkit.reporting import find_notebook, parse_parameters, render_report
from evalkit.reporting.parameters import declared_parameters
from evalkit.results import Manifest, PlannedScenario, Run, RunWriter, load_run, trial_record
from evalkit.trace import Trace

EVIL = '"><svg onload=x()><script>x()</script>'
MANY = {f"s{i:02}": "ppp" for i in range(12)}
WORSE = MANY | {f"s{i:02}": "fff" for i in range(6)}
TRACE = replace(Trace.from_calls(reply="hi"), models_observed=True)


def write_run(
    folder: Path, outcomes: Mapping[str, str], *, lane: str = "live", text: str = "", **more: Any
) -> Run:
    """Write a run: p passed, f failed, i incomplete."""
    plan = tuple(
        PlannedScenario(name, len(letters), hash=f"hash-{name}", tags=(f"tag{text}", name[:2]))
        for name, letters in outcomes.items()
    )
    agent = {"agent": f"agent{text}", "agent_hash": "a", "suite_hash": "5"}
    manifest = Manifest(folder.name, f"travel{text}", lane, plan, **{**agent, **more})
    writer = RunWriter.create(folder, manifest)
    for planned in plan:
        for trial, letter in enumerate(outcomes[planned.id]):
            add_trial(writer, planned, trial, grade=grade_of(letter, text))
    writer.finish()
    return load_run(folder)


def grade_of(letter: str, text: str) -> Grade:
    """Build what the one grader says."""
    if letter == "i":
        return Grade.incomplete(f"truth{text}", f"nobody looked{text}")
    reason = "" if letter == "p" else f"called forbidden tool: book{text}"
    return Grade(f"truth{text}", float(letter == "p"), reason=reason)


def add_trial(writer: RunWriter, planned: PlannedScenario, trial: int, *, grade: Grade) -> None:
    """Write one trial with its ledger."""
    events = ledger_of(TRACE, scenario=planned.id, trial=trial, lane="live", ending=Ending())
    more: dict[str, Any] = {"digest": digest(events), "tags": planned.tags}
    record = trial_record(planned.id, trial, TRACE, ending=Ending(), grades=(grade,), **more)
    writer.add(record, b"".join(map(event_line, events)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, as a user does in a project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pin(folder: Path, outcomes: Mapping[str, str], **more: Any) -> None:
    """Pin three equal runs as ``main``, in the folder where reports look."""
    runs = [write_run(folder / "old" / f"b{i}", outcomes, seed=i, **more) for i in range(3)]
    pin_baseline("main", runs, folder=folder / "data" / "baselines")


def words(page: Path) -> str:
    """Return what a reader sees of a page."""
    body = page.read_text(encoding="utf-8").partition("<body>")[2]
    plain = re.sub(r"<title>.*?</title>|<[^>]*>", " ", body)
    return re.sub(r"\s+", " ", html.unescape(plain)).replace(" ,", ",")


def test_parameters_are_typed_and_parsed() -> None:
    """The command line's texts become the types that the notebook declares."""
    declared = declared_parameters(find_notebook("compare_runs"))
    assert [(p.name, p.type) for p in declared.values()][:5] == [
        ("run", "str"),
        ("baseline", "str"),
        ("baselines", "str"),
        ("margin", "float"),
        ("floor", "float | None"),
    ]
    texts = ["baseline=main", "floor=0.9", "margin=0.1"]
    assert parse_parameters("compare_runs", texts) == {
        "baseline": "main",
        "floor": 0.9,
        "margin": 0.1,
    }


@pytest.mark.notebook
def test_report_on_a_pinned_baseline(folder: Path) -> None:
    """Verdict first, then what broke with the run's reasons, then where all comes from."""
    pin(folder, MANY)
    run = write_run(folder / "runs" / "r1", WORSE)
    started = time.perf_counter()
    path = render_report("compare_runs", run=run, parameters={"baseline": "main"})
    assert time.perf_counter() - started < 60  # seconds; about 5 on a quiet machine
    page, text = path.read_text(encoding="utf-8"), words(path)
    assert path == Path("reports") / "compare_runs-r1.html"
    assert "<title>Compare runs: r1</title>" in page
    assert page.count("<h1") == 1
    order = ["FAIL against baseline main", "Newly failing", "By scenario", "By grader", "rebuild"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "-50.0 points, 95% interval" in text
    assert "was 9 of 9, now 0 of 3 s00 truth: called forbidden tool: book" in text
    assert "evalkit report compare_runs --run runs/r1 -p baseline=main" in text
    assert not re.search(r"<script|<link|<iframe|https?://|\bimport evalkit\b", page)
    assert '<div class="output_' not in page


@pytest.mark.notebook
def test_report_on_two_runs(folder: Path) -> None:
    """A run directory as baseline: compared with an interval, and plainly not gated."""
    write_run(folder / "runs" / "r0", MANY)
    write_run(folder / "runs" / "r1", WORSE)
    parameters = {"baseline": "runs/r0", "confidence": 0.9}
    text = words(render_report("compare_runs", run="runs/r1", parameters=parameters))
    assert "Lower than run r0 by 50.0 points" in text
    assert "No gate is applied" in text
    assert "90% interval" in text
    assert not re.search(r"\b(PASS|FAIL|INVALID|INCONCLUSIVE)\b", text)


@pytest.mark.notebook
def test_report_in_the_contract_lane(folder: Path) -> None:
    """The contract rule, what is newly failing, and no interval anywhere."""
    pin(folder, {"a": "p", "b": "p"}, lane="contract")
    run = write_run(folder / "runs" / "r1", {"a": "p", "b": "f"}, lane="contract")
    text = words(render_report("compare_runs", run=run, parameters={"baseline": "main"}))
    assert "FAIL against baseline main 1 of 2 trials failed" in text
    assert "was 3 of 3, now 0 of 1 b truth: called forbidden tool: book" in text
    assert "95%" not in text
    assert "By grader" not in text


@pytest.mark.notebook
def test_report_on_a_run_with_incomplete_trials(folder: Path) -> None:
    """What was not measured makes the verdict INVALID and is listed; the numbers stay."""
    pin(folder, MANY)
    run = write_run(folder / "runs" / "r1", WORSE | {"s10": "iii", "s11": "pii"})
    text = words(render_report("compare_runs", run=run, parameters={"baseline": "main"}))
    assert "INVALID against baseline main: nothing was decided" in text
    assert "5 of 36 planned trials have no result" in text
    assert "it decided nothing" in text
    assert "not compared: 1 scenario (s10)" in text
    assert text.count("nobody looked") == 5


@pytest.mark.notebook
def test_report_on_hostile_texts(folder: Path) -> None:
    """Whatever both sides carry is text, in the page and in its title."""
    before = {f"{name}{EVIL}": "ppp" for name in "abcdefghijkl"}
    after = before | {f"{name}{EVIL}": "fff" for name in "abc"} | {f"new{EVIL}": "iii"}
    pin(folder, before, text=EVIL)
    run = write_run(folder / "runs" / "r1", after, text=EVIL)
    path = render_report("compare_runs", run=run, parameters={"baseline": "main"})
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"<script|<svg onload", page)
    assert f"called forbidden tool: book{EVIL}" in words(path)


@pytest.mark.notebook
def test_report_on_nothing_in_common_says_so(folder: Path) -> None:
    """No scenario is the same: a clear message, and what each side holds."""
    write_run(folder / "runs" / "r0", {"old": "p"})
    run = write_run(folder / "runs" / "r1", {"new": "p"})
    text = words(render_report("compare_runs", run=run, parameters={"baseline": "./runs/r0"}))
    assert "Nothing to compare with run r0" in text
    assert "Are both of one suite?" in text
    assert "old removed 1 of 1 not there" in text
    assert "new added not there 1 of 1" in text


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ("", "needs something to compare with"),
        ("mian", "Did you mean 'main'"),
        ("runs/nowhere", "no such run directory"),
    ],
)
def test_other_side_that_is_not_there_is_wrong_usage(
    folder: Path, baseline: str, message: str
) -> None:
    """The error says what to give, before a kernel starts, and leaves no folder behind."""
    pin(folder, {"a": "p"})
    run = write_run(folder / "runs" / "r1", {"a": "p"})
    with pytest.raises(UsageError, match=message):
        render_report("compare_runs", run=run, parameters={"baseline": baseline})
    assert not (folder / "reports").exists()


@pytest.mark.notebook
def test_report_on_one_run_twice_is_refused(folder: Path) -> None:
    """The error says why, and no file appears."""
    run = write_run(folder / "runs" / "r1", {"a": "p"})
    with pytest.raises(ReportError, match="compared with itself"):
        render_report("compare_runs", run=run, parameters={"baseline": "runs/r1"})
    assert list((folder / "reports").iterdir()) == []
