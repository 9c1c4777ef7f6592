"""What was imported as a run directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import TraceError
from evalkit.importers import import_run, read
from evalkit.results import Run

_SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Bye."},
]


def _import(folder: Path, *records: object) -> Run:
    path = folder / "talks.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records))
    return import_run("openai", path, out=folder / "runs")


def _rows(run: Run) -> list[tuple[str, int, str, str]]:
    frame = run.trials[["scenario", "trial", "status", "reason_code"]]
    return [tuple(row) for row in frame.itertuples(index=False)]


def test_import_run_statuses(tmp_path: Path) -> None:
    """Graded trials have their grade's status; ungraded and unreadable ones are incomplete."""
    run = _import(
        tmp_path,
        {"scenario": "a", "messages": _SAID, "grades": {"human": True}},
        {"scenario": "a", "messages": _SAID, "grades": {"human": False}},
        {"scenario": "b", "messages": _SAID},
        "{broken",
        {"scenario": "c", "messages": [{"role": "robot"}], "grades": {"human": True}},
    )
    assert _rows(run) == [
        ("a", 0, "passed", ""),
        ("a", 1, "failed", "grader_failed"),
        ("b", 0, "incomplete", "not_graded"),
        ("talks-4", 0, "incomplete", "unreadable"),
        ("c", 0, "incomplete", "unreadable"),
    ]
    assert run.is_finished
    assert run.manifest.lane == "imported"
    assert "talks.jsonl:4: not JSON" in run.trials.reason[3]


def test_import_run_keeps_traces(tmp_path: Path) -> None:
    """What is read back from the run is the trace that was imported, to the last character."""
    arguments = json.dumps({"n": 2**70, "s": "\ud800\x00"})
    function = {"name": "f", "arguments": arguments}
    asks = {"role": "assistant", "tool_calls": [{"id": "c", "function": function}]}
    cut = {"role": "assistant", "tool_calls": [{"id": "d", "function": {**function,
           "arguments": arguments[:9]}}]}  # fmt: skip
    run = _import(tmp_path, {"scenario": "s", "messages": [*_SAID, asks, cut]})
    imported = next(iter(read("openai", tmp_path / "talks.jsonl").trials))
    assert run.trace("s", 0) == imported.trace
    assert run.trace("s", 0).tool_calls[0].args == {"n": 2**70, "s": "\ud800\x00"}


def test_import_run_numbers_trials_without_gaps(tmp_path: Path) -> None:
    """Trials numbered from 1, or with gaps, are numbered from 0 in their order."""
    records = [{"scenario": "s", "trial": n, "messages": _SAID, "tags": [str(n)]} for n in (7, 1)]
    run = _import(tmp_path, *records)
    assert [(row[1], tags) for row, tags in zip(_rows(run), run.trials.tags, strict=True)] == [
        (0, ("1",)),
        (1, ("7",)),
    ]


def test_import_run_scenarios_that_are_no_file_names(tmp_path: Path) -> None:
    """Scenario ids with slashes, dots or half characters are imported all the same."""
    ids = ["../up", "a/b", "x\ud800", "nul\x00", " "]
    run = _import(tmp_path, *({"scenario": name, "messages": _SAID} for name in ids))
    assert len(run.trials) == len(ids)
    assert {path.parent.name for path in run.folder.rglob("*.jsonl")} == {
        run.folder.name,
        "ledgers",
    }
    assert all(len(run.trace(row[0], row[1]).turns) == 1 for row in _rows(run))


def test_import_run_says_where_it_comes_from(tmp_path: Path) -> None:
    """The manifest names format, file and hash."""
    source = _import(tmp_path, {"messages": _SAID}).manifest.source
    assert (source["format"], source["path"]) == ("openai", "talks.jsonl")
    assert len(str(source["sha256"])) == 64


def test_import_run_same_file_gives_the_same_digest(tmp_path: Path) -> None:
    """Importing is deterministic: two imports of one file have one digest."""
    first = _import(tmp_path, {"messages": _SAID})
    second = import_run("openai", tmp_path / "talks.jsonl", out=tmp_path / "runs")
    assert first.digest == second.digest is not None


def test_import_run_unobserved_counts_are_unknown(tmp_path: Path) -> None:
    """Calls of the model that nobody saw are unknown, not 0."""
    frame = _import(tmp_path, {"messages": _SAID}, {"messages": [{"role": "robot"}]}).trials
    assert frame.n_model_calls.isna().all()
    assert frame.n_tool_calls.isna().tolist() == [False, True]
    assert frame.cost_usd.isna().all()


def test_import_run_leaves_nothing_behind_when_the_file_is_wrong(tmp_path: Path) -> None:
    """A refused file makes no run directory."""
    path = tmp_path / "a.json"
    path.write_text('{"resourceSpans": []}')
    with pytest.raises(TraceError, match="evalkit import otel"):
        import_run("openai", path, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
