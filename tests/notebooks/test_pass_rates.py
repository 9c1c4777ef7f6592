"""Notebooks that ship are clean, run as a report, and fail loudly."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest

from evalkit.errors import ReportError
from evalkit.grade import Grade
from evalkit.reporting import find_notebook, render_report
from evalkit.results import Manifest, PlannedScenario, Run, RunWriter, TrialRecord

NOTEBOOKS = sorted(find_notebook("pass_rates").parent.glob("*.ipynb"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Write a small run: one scenario passes, one fails, one is half measured."""
    plan = {"book": "pp", "cancel": "pf", "refund": "pi"}
    planned = tuple(PlannedScenario(name, len(trials)) for name, trials in plan.items())
    manifest = Manifest("r1", "travel", "live", planned, created_at="2026-11-30T17:45:00+00:00")
    writer = RunWriter.create(tmp_path / "runs" / "r1", manifest)
    for scenario, letters in plan.items():
        for number, letter in enumerate(letters):
            writer.add(_record(scenario, number, letter))
    writer.finish()
    return Run(tmp_path / "runs" / "r1")


def _record(scenario: str, trial: int, letter: str) -> TrialRecord:
    """Build a trial that passed (p), failed (f) or could not be measured (i)."""
    if letter == "i":
        return TrialRecord(scenario, trial, "incomplete", "grader_raised", "KeyError: 'x'")
    if letter == "p":
        return TrialRecord(scenario, trial, "passed", grades=(Grade("truth", 1.0),))
    reason = "called forbidden tool: book"
    grade = Grade("truth", 0.0, reason=reason)
    return TrialRecord(scenario, trial, "failed", "grader_failed", reason, grades=(grade,))


def write_notebook(folder: Path, *cells: str) -> Path:
    """Write a notebook whose first cell declares one parameter."""
    parts = [("x: int = 1", {"tags": ["parameters"]}), *((cell, {}) for cell in cells)]
    content = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": metadata,
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for number, (source, metadata) in enumerate(parts)
    ]
    spec = {"name": "my-own-env", "display_name": "x", "language": "python"}
    path = folder / "own {notebook}.ipynb"
    book = {"cells": content, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(book), encoding="utf-8")
    return path


# --- hygiene ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stripped_and_tagged(path: Path) -> None:
    """No outputs, counts or traces of a run; one parameters cell; kernel python3."""
    book = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert all("papermill" not in cell["metadata"] for cell in book["cells"])
    assert "papermill" not in book["metadata"]
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    assert book["metadata"]["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_starts_with_its_heading_and_ends_with_a_check(path: Path) -> None:
    """The first cell is a heading; the last asserts what was shown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert "".join(cells[0]["source"]).startswith("# ")
    assert "assert " in "".join(cells[-1]["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_holds_no_logic(path: Path) -> None:
    """Cells call evalkit and show: no functions, classes, loops or branches."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert not re.search(r"^\s*(def|class|for|while|if|try|with) ", source, re.MULTILINE)
            most = 10 if "parameters" in cell["metadata"].get("tags", []) else 6
            assert len(source.splitlines()) <= most


# --- a whole render -----------------------------------------------------------------------


@pytest.mark.notebook
def test_report_is_one_whole_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A render gives one self-contained file with the run's figures, and nothing else."""
    monkeypatch.chdir(tmp_path)
    path = render_report("pass_rates", run="runs", parameters={"confidence": 0.9})
    page = path.read_text(encoding="utf-8")
    assert path == Path("reports") / "pass_rates-r1.html"
    assert os.listdir("reports") == ["pass_rates-r1.html"]  # noqa: PTH208 - hidden files count
    assert page.count("<h1") == 1
    assert '<html lang="en">' in page
    assert "<title>Pass rates: r1</title>" in page
    assert "Failed: 1 of 6 trials failed, in 1 scenario" in page
    assert "83.3%" in page
    assert "1 of 6 trials not measured" in page
    assert "called forbidden tool: book" in page
    assert "KeyError" in page
    assert "evalkit report pass_rates --run runs/r1 -p confidence=0.9" in page


@pytest.mark.notebook
def test_report_has_the_policy_and_no_script(run: Run, tmp_path: Path) -> None:
    """The policy stands before the first style; no script, code, warning or URL is in the page."""
    page = render_report("pass_rates", run=run.folder, out=tmp_path / "x.html").read_text()
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
    assert page.index(policy) < page.index("<style>")
    assert page.count("<style>") == 1
    assert not re.search(r"<script|<link|<iframe|https?://|\bimport evalkit\b", page)
    assert '<div class="output_' not in page


@pytest.mark.notebook
def test_report_replaces_an_older_one(run: Run, tmp_path: Path) -> None:
    """A finished report takes the place of the one before."""
    target = tmp_path / "report.html"
    target.write_text("old")
    assert render_report("pass_rates", run=run, out=target) == target
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.notebook
def test_any_kernel_name_and_any_folder_will_do(tmp_path: Path) -> None:
    """The kernel is this interpreter's, whatever the notebook says; braces in paths are fine."""
    folder = tmp_path / "a {b} c"
    folder.mkdir()
    notebook = write_notebook(folder, "import sys, evalkit\nprint(sys.executable, x)")
    path = render_report(notebook, out=folder, parameters={"x": 7})
    assert f"{sys.executable} 7" in path.read_text(encoding="utf-8")


@pytest.mark.notebook
def test_a_broken_kernel_of_the_user_does_not_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel called python3 that the user once registered is not the one that runs."""
    spec = tmp_path / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    content = {"argv": ["/bin/false"], "display_name": "x", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(content))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    notebook = write_notebook(tmp_path, "print(6 * 7)")
    assert "42" in render_report(notebook, out=tmp_path / "x.html").read_text(encoding="utf-8")


# --- failing ------------------------------------------------------------------------------


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "raise KeyError('flight')"], r"KeyError: 'flight'\nin cell 3 of the notebook"),
        (["import os\nos.kill(os.getpid(), 9)", "2"], r"DeadKernelError.*\nin cell 2"),
        (["raise SystemExit", "2"], "stopped before cell 3"),
        (["import os\nos._exit(0)", "2"], r"in cell 2"),
        (["x ="], r"SyntaxError"),
    ],
    ids=["raises", "killed", "exit", "os_exit", "syntax"],
)
def test_failed_cell_is_an_error_with_its_place(
    tmp_path: Path, cells: list[str], message: str
) -> None:
    """However a cell fails, the error names it and quotes it, and no file appears."""
    notebook = write_notebook(tmp_path, *cells)
    with pytest.raises(ReportError, match=re.compile(message, re.DOTALL)) as caught:
        render_report(notebook, out=tmp_path / "out")
    assert "own {notebook}" in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.notebook
def test_deadline_ends_the_kernel_and_what_it_started(tmp_path: Path) -> None:
    """When the time is up, nothing goes on running and nothing is left behind."""
    alive = tmp_path / "alive"
    loop = f"import subprocess\nsubprocess.Popen(['sh', '-c', 'while :; do date >{alive}; done'])"
    notebook = write_notebook(tmp_path, loop, "import time\ntime.sleep(600)")
    with pytest.raises(ReportError, match=r"not finished after 6 s.*\nin cell 3"):
        render_report(notebook, out=tmp_path / "out", timeout_s=6)
    assert list((tmp_path / "out").iterdir()) == []
    assert alive.exists()
    before = alive.stat().st_mtime_ns
    time.sleep(0.3)
    assert alive.stat().st_mtime_ns == before
    assert not _processes_with(str(tmp_path / "out"))


def _processes_with(text: str) -> list[str]:
    """List the command lines of this machine's processes that hold a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


@pytest.mark.notebook
def test_out_that_cannot_be_written_is_a_report_error(run: Run, tmp_path: Path) -> None:
    """A target inside a file is an error that names it."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ReportError, match="cannot write the report"):
        render_report("pass_rates", run=run, out=tmp_path / "file" / "out")
