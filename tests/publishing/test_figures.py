"""JSON for scripts: whole, stable, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evalkit.publishing import runs_json
from evalkit.results import Run, TrialRecord


def test_json_is_whole(some_run: Run, decided: Any) -> None:
    """Status, counts, rates with intervals, reasons by scenario, each trial's grades."""
    told = runs_json(some_run, verdict=decided("FAIL", ("low",), 1))
    assert told["status"] == "failed"
    assert told["exit_code"] == 1
    assert told["verdict"] == {"verdict": "FAIL", "reasons": ["low"], "exit_code": 1}
    (run,) = told["runs"]
    assert [run[f"n_{name}"] for name in ("passed", "failed", "incomplete", "planned")] == [
        2,
        3,
        1,
        6,
    ]
    assert run["pass_rate"]["rate_low"] < run["pass_rate"]["rate"] < run["pass_rate"]["rate_high"]
    by_id = {each["scenario"]: each for each in run["scenarios"]}
    assert by_id["bad"]["reasons"] == "truth: missing/incorrect: book"
    assert by_id["lost"]["rate"] is None
    assert by_id["flaky"]["headline"] == "2 of 3 trials failed: truth: called book twice"
    assert run["trials"][1]["grades"] == [
        {"grader": "truth", "status": "failed", "value": 0.0, "reason": "missing/incorrect: book"}
    ]


KEYS = {
    "": ["format", "status", "exit_code", "digest", "verdict", "runs"],
    "run": [
        "run_id", "folder", "suite", "suite_hash", "lane", "agent", "agent_hash", "seed",
        "created_at", "finished_at", "status", "digest", "n_passed", "n_failed", "n_incomplete",
        "n_planned", "pass_rate", "scenarios", "trials",
    ],
    "trial": [
        "scenario", "trial", "status", "reason_code", "reason", "duration_s", "cost_usd", "grades",
    ],
}  # fmt: skip


def test_keys_are_the_documented_ones(some_run: Run) -> None:
    """Scripts rely on them: a change is a new format."""
    told = runs_json(some_run)
    assert told["format"] == 1
    assert list(told) == KEYS[""]
    assert list(told["runs"][0]) == KEYS["run"]
    assert list(told["runs"][0]["trials"][0]) == KEYS["trial"]


def test_unknown_is_null_and_any_text_is_json(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord]
) -> None:
    """NaN is no JSON."""
    run = run_of(record("a\ud800", status="incomplete", reason="\x00\ud800", cost_usd=float("nan")))
    told = json.loads(json.dumps(runs_json(run), allow_nan=False))
    assert told["exit_code"] == 2
    assert told["runs"][0]["pass_rate"]["rate"] is None
    assert told["runs"][0]["trials"][0]["cost_usd"] is None


def test_no_run_is_an_error() -> None:
    """Nothing measured is no pass."""
    with pytest.raises(ValueError, match="at least one"):
        runs_json([])
