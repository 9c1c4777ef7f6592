"""Runs with any text in them, and a gate's verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalkit.grade import Grade
from evalkit.results import Manifest, PlannedScenario, Run, TrialRecord


class MadeUpRun(Run):
    """A run that needs no disk."""

    def __init__(self, manifest: Manifest, records: Sequence[TrialRecord]) -> None:
        self.folder = Path("data/runs") / manifest.run_id
        self.manifest = manifest
        self.records = tuple(records)
        self._planned = frozenset(manifest.keys())
        self._finished = self._planned


def record(
    scenario: str, trial: int = 0, *, status: Any = "failed", reason: str = "", **more: Any
) -> TrialRecord:
    """Make a trial that one grader decided."""
    passed = {"passed": True, "failed": False, "incomplete": None}[status]
    value = None if passed is None else float(passed)
    grade = Grade("truth", value, passed, reason=reason)
    code = {"passed": "", "failed": "grader_failed", "incomplete": "grader_incomplete"}[status]
    told = f"truth: {reason}" if status != "passed" else ""
    given = {"duration_s": 0.5, "grades": (grade,), "reason": told, "reason_code": code} | more
    return TrialRecord(scenario, trial, status, **given)


def run_of(*records: TrialRecord, **more: Any) -> Run:
    """Make a run of these trials."""
    depth: dict[str, int] = {}
    for each in records:
        depth[each.scenario] = depth.get(each.scenario, 0) + 1
    bars = more.pop("bars", {})
    plan = tuple(PlannedScenario(name, n, **bars.get(name, {})) for name, n in depth.items())
    about = {
        "run_id": "r1",
        "suite": "travel",
        "lane": "live",
        "plan": plan,
        "created_at": "2026-01-05T09:00:00+00:00",
        "agent": "my:agent",
        "digest": "d" * 64,
    }
    return MadeUpRun(Manifest(**{**about, **more}), records)


@dataclass(frozen=True)
class Decided:
    """A gate's verdict, as any gate may give it."""

    verdict: str
    reasons: tuple[str, ...]
    exit_code: int


@pytest.fixture(name="record")
def record_fixture() -> Callable[..., TrialRecord]:
    """Give :func:`record` to tests, which cannot import each other."""
    return record


@pytest.fixture(name="run_of")
def run_fixture() -> Callable[..., Run]:
    """Give :func:`run_of` to tests."""
    return run_of


@pytest.fixture
def decided() -> type[Decided]:
    """Give :class:`Decided` to tests."""
    return Decided


@pytest.fixture
def some_run() -> Run:
    """Four scenarios: one passed, one failed, one incomplete, one in part."""
    return run_of(
        record("good", status="passed"),
        record("bad", status="failed", reason="missing/incorrect: book"),
        record("lost", status="incomplete", reason="nobody saw the calls"),
        record("flaky", 0, status="passed"),
        record("flaky", 1, status="failed", reason="called book twice"),
        record("flaky", 2, status="failed", reason="called book twice"),
    )
