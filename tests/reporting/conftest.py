"""Runs to compare: a letter a trial, written as real run directories."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.baselines import Baseline, pin_baseline
from evalkit.grade import Ending, Grade
from evalkit.ledger import digest, event_line
from evalkit.recording import ledger_of
from evalkit.reporting.elements import View
from evalkit.results import Manifest, PlannedScenario, Run, RunWriter, load_run, trial_record
from evalkit.trace import Trace

MakeRun = Callable[..., Run]

_TRACE = replace(Trace.from_calls(reply="hi"), models_observed=True)


def write_run(
    folder: Path,
    outcomes: Mapping[str, str],
    *,
    name: str,
    lane: str = "live",
    tags: Mapping[str, tuple[str, ...]] | None = None,
    hashes: Mapping[str, str] | None = None,
    reason: str = "called forbidden tool: book",
    grader: str = "truth",
    columns: Mapping[str, Any] | None = None,
    **more: Any,
) -> Run:
    """Write a run: p passed, f failed, i incomplete, - never ran."""
    plan = tuple(
        PlannedScenario(
            each,
            len(letters),
            hash=(hashes or {}).get(each, f"hash-{each}"),
            tags=(tags or {}).get(each, ()),
        )
        for each, letters in outcomes.items()
    )
    given: dict[str, Any] = {
        "suite": "travel",
        "suite_hash": "5" * 64,
        "agent": "mine:agent",
        "agent_hash": "a" * 64,
        "graders": {grader: "1", "path": "1"},
        "created_at": "2026-11-30T17:45:00+00:00",
        "git": {"commit": "c" * 40, "dirty": False},
        "versions": {"evalkit-lab": "0.3.0"},
        "seed": sum(map(ord, name)),
    }
    manifest = Manifest(**{**given, "run_id": name, "lane": lane, "plan": plan} | more)
    writer = RunWriter.create(folder / name, manifest)
    for planned in plan:
        for number, letter in enumerate(outcomes[planned.id]):
            if letter != "-":
                _add(writer, (planned, number), _grades(letter, grader, reason), columns or {})
    writer.finish()
    return load_run(writer.folder)


def _grades(letter: str, grader: str, reason: str) -> tuple[Grade, ...]:
    if letter == "i":
        return (Grade.incomplete(grader, f"nobody looked: {reason}"), Grade("path", 1.0))
    passed = letter == "p"
    return (Grade(grader, float(passed), reason="" if passed else reason), Grade("path", 1.0))


def _add(
    writer: RunWriter,
    key: tuple[PlannedScenario, int],
    grades: tuple[Grade, ...],
    columns: Mapping[str, Any],
) -> None:
    planned, number = key
    lane = "live"
    events = ledger_of(_TRACE, scenario=planned.id, trial=number, lane=lane, ending=Ending())
    record = trial_record(
        planned.id,
        number,
        _TRACE,
        ending=Ending(),
        grades=grades,
        digest=digest(events),
        tags=planned.tags,
    )
    writer.add(replace(record, **columns), b"".join(map(event_line, events)))


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Give :func:`write_run` into the test's folder."""

    def make(outcomes: Mapping[str, str], *, name: str = "r1", **more: Any) -> Run:
        folder = tmp_path / "runs"
        while (folder / name).exists():  # a test may compare several pairs
            folder = folder.with_name(f"{folder.name}x")
        return write_run(folder, outcomes, name=name, **more)

    return make


Pin = Callable[..., Baseline]


@pytest.fixture
def pin(tmp_path: Path, make_run: MakeRun) -> Pin:
    """Pin three equal runs as the baseline ``main``."""

    def pinned(outcomes: Mapping[str, str], **more: Any) -> Baseline:
        runs = [make_run(outcomes, name=f"b{i}", seed=i, **more) for i in range(3)]
        return pin_baseline("main", runs, folder=tmp_path / "baselines")

    return pinned


@pytest.fixture(name="text_of", scope="session")
def text_fixture() -> Callable[[View | None], str]:
    """Give a function that says what a reader sees of a view."""
    return text_of


def text_of(view: View | None) -> str:
    """Return what a reader sees of a view."""
    assert view is not None
    words = re.sub(r"<title>.*?</title>|<[^>]*>", " ", view._repr_html_())
    return re.sub(r"\s+", " ", html.unescape(words)).replace(" ,", ",").strip()
