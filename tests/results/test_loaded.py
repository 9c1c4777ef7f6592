"""Runs read back: what is missing stands there, and what is hostile is escaped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import LedgerError, UsageError
from evalkit.grade import Ending, Grade
from evalkit.results import Run, Runs, RunWriter, load_run, load_runs, summary
from evalkit.trace import Trace

MakeRun = Callable[..., Path]
TRACE = Trace.from_calls([("book", {"id": 1})], reply="Done.")


@pytest.fixture
def unfinished(
    tmp_path: Path, manifest_of: Callable[..., Any], add_trial: Callable[..., Any]
) -> Path:
    """Write a run of which one trial of three is there."""
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 2, "b": 1}))
    add_trial(writer, "a", 1)
    writer.finish()
    return writer.folder


def test_a_trial_that_never_ended_is_incomplete(unfinished: Path) -> None:
    """A planned trial without a result is a row, interrupted, with the way to go on."""
    run = load_run(unfinished)
    assert not run.is_finished
    assert run.digest is None
    assert run.status == "incomplete"
    assert run.trials["status"].tolist() == ["incomplete", "passed", "incomplete"]
    assert run.trials["reason_code"].tolist() == ["interrupted", "", "interrupted"]
    assert "evalkit run --resume" in run.trials["reason"].iloc[0]
    assert run.trials["tags"].tolist() == [("t",), (), ("t",)]
    assert len(run.tool_calls) == 1
    assert summary(run.records) == "1 passed, 0 failed, 2 incomplete of 3 trials"


def test_a_finished_run_says_so(make_run: MakeRun) -> None:
    """A run with all its trials has a digest, and passes if they do."""
    run = load_run(make_run({"a": [TRACE]}))
    assert (run.is_finished, run.status) == (True, "passed")
    assert run.digest
    assert repr(run) == "<Run r1: 1 passed, 0 failed, 0 incomplete of 1 trials>"


def test_a_run_without_a_trial_is_no_pass(make_run: MakeRun) -> None:
    """Nothing measured is incomplete."""
    assert load_run(make_run({})).status == "incomplete"


def test_trace_and_ledger_of_one_trial(make_run: MakeRun) -> None:
    """One trial can be looked at by scenario and number."""
    run = load_run(make_run({"a": [TRACE, Trace.from_calls(reply="two")]}))
    assert run.trace("a") == TRACE
    assert run.trace("a", 1).reply == "two"
    assert run.ledger("a")[0].kind == "trial_start"
    assert run.record("a", 1).trial == 1


@pytest.mark.parametrize(
    ("scenario", "trial", "message"),
    [
        ("weather-onyl", 0, "no scenario 'weather-onyl' in this run; did you mean 'weather-only'"),
        ("weather-only", 1, "'weather-only' has trials 0 to 0, not 1"),
        ("weather-only", -1, "'weather-only' has trials 0 to 0, not -1"),
        ("zzz", 0, "no scenario 'zzz' in this run$"),
    ],
)
def test_an_unknown_trial_is_named(
    make_run: MakeRun, scenario: str, trial: int, message: str
) -> None:
    """The error says what there is, with the nearest name."""
    run = load_run(make_run({"weather-only": [TRACE]}))
    for look in (run.trace, run.ledger, run.record):
        with pytest.raises(UsageError, match=message):
            look(scenario, trial)


def test_a_ledger_that_is_gone_is_an_error(make_run: MakeRun) -> None:
    """Frames over ledgers say which one is missing, and leave no row out silently."""
    run = load_run(make_run({"a": [TRACE, TRACE]}))
    run.ledger_path("a", 1).unlink()
    with pytest.raises(LedgerError, match=r"a\.1\.jsonl: cannot read the ledger"):
        _ = run.tool_calls
    with pytest.raises(LedgerError, match=r"a\.1\.jsonl"):
        _ = run.events
    assert len(run.trials) == 2


def test_load_run_of_a_folder_gives_the_latest(make_run: MakeRun, tmp_path: Path) -> None:
    """A folder of runs stands for its newest one; other things in it do not matter."""
    for name in ("20260105T090000.000002Z-s", "20260105T090000.000001Z-s"):
        make_run({"a": [TRACE]}, name=name)
    (tmp_path / "zz-notes").mkdir()
    (tmp_path / "zz.txt").write_text("")
    assert load_run(tmp_path).id == "20260105T090000.000002Z-s"
    assert load_run(str(tmp_path / "20260105T090000.000001Z-s")).id.endswith("1Z-s")


@pytest.mark.parametrize("load", [load_run, load_runs])
def test_loading_nothing_is_an_error(tmp_path: Path, load: Callable[[Path], Any]) -> None:
    """A folder without runs, or no folder, is named."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(LedgerError, match=r"empty: (neither a run|no runs)"):
        load(tmp_path / "empty")
    with pytest.raises(LedgerError, match="nowhere"):
        load(tmp_path / "nowhere")


def test_load_runs_takes_a_folder_a_run_or_a_list(make_run: MakeRun, tmp_path: Path) -> None:
    """However runs are named, each is there once and in order."""
    first, second = (make_run({"a": [TRACE]}, name=name) for name in ("r1", "r2"))
    assert [run.id for run in load_runs(tmp_path)] == ["r1", "r2"]
    assert [run.id for run in load_runs([second, first])] == ["r2", "r1"]
    assert [run.id for run in load_runs(first)] == ["r1"]
    assert len(load_runs([])) == 0
    assert load_runs([]).trials.empty
    assert repr(load_runs(tmp_path)) == "<2 runs: r1, r2>"


def test_runs_are_escaped_in_a_notebook(
    tmp_path: Path, manifest_of: Callable[..., Any], add_trial: Callable[..., Any]
) -> None:
    """Ids and reasons come from agents and files: no markup of theirs reaches the page."""
    evil = "<script>alert(1)</script>"
    writer = RunWriter.create(tmp_path / "r", manifest_of({evil: 1}, run_id=f"r{evil}"))
    reason = f"<img src=x onerror=alert(2)>{evil}\x00\ud800"
    add_trial(writer, evil, 0, grades=(Grade("truth", 0.0, reason=reason),))
    writer.finish()
    run = Run(writer.folder)
    for html in (run._repr_html_(), Runs([run, run])._repr_html_()):
        assert "<script" not in html
        assert "<img" not in html
        assert "&lt;script&gt;" in html
        assert "\x00" not in html


def test_a_notebook_shows_failures_first_and_says_what_it_leaves_out(
    tmp_path: Path, manifest_of: Callable[..., Any], add_trial: Callable[..., Any]
) -> None:
    """The one failure of 150 trials is on the page, and the page says that it is cut."""
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 149, "b": 1}))
    for trial in range(149):
        add_trial(writer, "a", trial)
    ending = Ending("failed", "deadline", "far too slow")
    add_trial(writer, "b", 0, ending=ending)
    writer.finish()
    html = Run(writer.folder)._repr_html_()
    assert "far too slow" in html
    assert html.count("<tr") < 110
    assert "50" in html
