"""Run directories to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.grade import Ending, Grade
from evalkit.ledger import digest, event_line
from evalkit.recording import ledger_of
from evalkit.results import Manifest, PlannedScenario, RunWriter, TrialRecord, trial_record
from evalkit.trace import Trace


def manifest_of(plan: dict[str, int], **more: Any) -> Manifest:
    """Plan so many trials of each scenario."""
    scenarios = tuple(
        PlannedScenario(name, n, hash=f"of-{name}", tags=("t",)) for name, n in plan.items()
    )
    given = {"run_id": "r1", "suite": "s", "lane": "live", "plan": scenarios} | more
    return Manifest(**given)


def add_trial(  # one trial from end to end, as a runner writes it
    writer: RunWriter,
    scenario: str,
    trial: int = 0,
    *,
    trace: Trace | None = None,
    ending: Ending | None = None,
    grades: tuple[Grade, ...] = (Grade("truth", 1.0),),
) -> TrialRecord:
    """Write one trial with its ledger."""
    trace = Trace.from_calls([("book", {"id": 1})], reply="Done.") if trace is None else trace
    ending = ending or Ending(duration_s=0.5)
    events = ledger_of(trace, scenario=scenario, trial=trial, lane="live", ending=ending)
    record = trial_record(
        scenario, trial, trace, ending=ending, grades=grades, digest=digest(events), seed=trial
    )
    writer.add(record, b"".join(map(event_line, events)))
    return record


@pytest.fixture(name="manifest_of")
def manifest_fixture() -> Callable[..., Manifest]:
    """Give :func:`manifest_of` to tests, which cannot import each other."""
    return manifest_of


@pytest.fixture(name="add_trial")
def add_fixture() -> Callable[..., TrialRecord]:
    """Give :func:`add_trial` to tests."""
    return add_trial


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a whole run: scenario -> traces of its trials."""

    def make(traces: dict[str, list[Trace]], *, name: str = "r1", **more: Any) -> Path:
        plan = {scenario: len(each) for scenario, each in traces.items()}
        writer = RunWriter.create(tmp_path / name, manifest_of(plan, run_id=name, **more))
        for scenario, each in traces.items():
            for trial, trace in enumerate(each):
                add_trial(writer, scenario, trial, trace=trace)
        writer.finish()
        return writer.folder

    return make
