"""Runs to pin: small ones written by hand, and real ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.grade import Ending, Grade
from evalkit.ledger import digest, event_line
from evalkit.recording import ledger_of
from evalkit.results import (
    Manifest,
    PlannedScenario,
    Run,
    RunWriter,
    load_run,
    trial_record,
)
from evalkit.trace import Trace

_GRADES: Mapping[str, tuple[Grade, ...]] = {
    "p": (Grade("truth", 1.0), Grade("path", 1.0)),
    "f": (Grade("truth", 0.5, False, reason="SECRET REASON"), Grade("path", 1.0)),
    # NaN beside a fault: the trial is failed, the grader could not measure.
    "n": (Grade("truth", 0.0), Grade.incomplete("path", "nobody looked")),
    "i": (Grade("truth", 1.0), Grade.incomplete("path", "nobody looked")),
    "-": (),
}
"""Letter -> the grades of a trial; ``-`` is one that never ran."""

MakeRun = Callable[..., Run]


def write_run(
    folder: Path,
    outcomes: Mapping[str, str],
    *,
    name: str = "r0",
    trace: Trace | None = None,
    hashes: Mapping[str, str] | None = None,
    seed: int | None = None,
    **more: Any,
) -> Run:
    """Write a run: scenario -> a letter a trial."""
    plan = tuple(
        PlannedScenario(
            each, len(trials), hash=(hashes or {}).get(each, f"hash-{each}"), tags=("t",)
        )
        for each, trials in outcomes.items()
    )
    given: dict[str, Any] = {
        "suite": "s",
        "suite_hash": "5" * 64,
        "lane": "live",
        "agent": "mine:agent",
        "agent_hash": "a" * 64,
        "graders": {"truth": "1", "path": "1", "unused": name},
        "created_at": f"2026-01-05T09:00:{len(name):02}+00:00",
        "git": {"commit": "c" * 40, "dirty": False},
    }
    seed = int(hashlib.sha256(name.encode()).hexdigest()[:6], 16) if seed is None else seed
    manifest = Manifest(**{**given, "run_id": name, "plan": plan, "seed": seed} | more)
    writer = RunWriter.create(folder / name, manifest)
    for scenario, letters in outcomes.items():
        for number, letter in enumerate(letters):
            if letter != "-":
                _add(writer, (scenario, number), letter, trace)
    writer.finish()
    return load_run(writer.folder)


def _add(writer: RunWriter, key: tuple[str, int], letter: str, trace: Trace | None) -> None:
    scenario, number = key
    trace = trace or replace(Trace.from_calls(reply="SECRET REPLY"), models_observed=True)
    events = ledger_of(trace, scenario=scenario, trial=number, lane="live", ending=Ending())
    record = trial_record(
        *key, trace, ending=Ending(), grades=_GRADES[letter], digest=digest(events), tags=("t",)
    )
    writer.add(record, b"".join(map(event_line, events)))


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Give :func:`write_run` into the test's folder."""

    def make(outcomes: Mapping[str, str] | None = None, **more: Any) -> Run:
        return write_run(tmp_path / "runs", outcomes or {"a": "ppf", "b": "ppp"}, **more)

    return make


@pytest.fixture
def runs(make_run: MakeRun) -> list[Run]:
    """Give three runs of one suite that differ a little."""
    return [
        make_run({"a": "ppf", "b": "ppp"}, name="r0"),
        make_run({"a": "pff", "b": "ppp"}, name="r1"),
        make_run({"a": "ppp", "b": "ppn"}, name="r2"),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder for baselines that does not exist yet."""
    return tmp_path / "baselines"


@pytest.fixture(name="write_run", scope="session")
def write_fixture() -> Callable[..., Run]:
    """Give :func:`write_run` to tests, which cannot import each other."""
    return write_run
