"""A run directory that contradicts itself, or a frame in other words, never passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evalkit.errors import UsageError
from evalkit.gating import gate
from evalkit.grade import Ending, Grade
from evalkit.results import Manifest, PlannedScenario, RunWriter, load_run, load_runs, trial_record
from evalkit.trace import Trace

Lines = list[dict[str, Any]]
N_SCENARIOS = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a run whose scenario ``s3`` must pass, and fails its second trial."""
    plan = tuple(
        PlannedScenario(f"s{i}", 2, must_pass=i == 3, min_pass_rate=None)
        for i in range(N_SCENARIOS)
    )
    writer = RunWriter.create(tmp_path / "run", Manifest("run", "s", "live", plan))
    trace = Trace.from_calls([("book", {})], reply="Done.")
    for scenario, trial in writer.missing:
        failed = (scenario, trial) == ("s3", 1)
        grade = Grade("truth", 0.0, reason="no") if failed else Grade("truth", 1.0)
        more: dict[str, Any] = {
            "ending": Ending(),
            "grades": (grade,),
            "digest": f"{scenario}{trial}",
        }
        writer.add(trial_record(scenario, trial, trace, **more))
    writer.finish()
    return tmp_path / "run"


def edit_lines(folder: Path, change: Callable[[Lines], Lines]) -> None:
    """Change what trials.jsonl says."""
    path = folder / "trials.jsonl"
    lines = change([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def edit_plan(folder: Path, **changes: Any) -> None:
    """Change the plan of ``s3``; with nothing to change, take it out."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    entry = next(entry for entry in manifest["plan"] if entry["id"] == "s3")
    entry.update(changes)
    if not changes:
        manifest["plan"].remove(entry)
    path.write_text(json.dumps(manifest))


def without(scenario: str, trial: int | None = None) -> Callable[[Lines], Lines]:
    """Drop lines."""
    return lambda lines: [
        line
        for line in lines
        if line["scenario"] != scenario or (trial is not None and line["trial"] != trial)
    ]


def as_passed(lines: Lines) -> Lines:
    """Call every trial passed."""
    return [{**line, "status": "passed"} for line in lines]


def test_a_run_as_it_was_written_is_decided_by_what_it_says(folder: Path) -> None:
    """Nothing contradicts itself in what the runner wrote: its must-pass scenario failed."""
    verdict = gate(load_run(folder), floor=0.5)
    assert verdict.verdict == "FAIL"
    assert "run directory" not in {check.name for check in verdict.checks}


@pytest.mark.parametrize("lane", ["live", "contract"])
@pytest.mark.parametrize(
    ("plan", "lines", "reason"),
    [
        pytest.param({}, without("s3"), "were changed after the run", id="scenario-gone"),
        pytest.param(
            {"n_trials": 1}, without("s3", 1), "were changed after the run", id="trial-gone"
        ),
        pytest.param({"n_trials": 0}, without("s3"), "holds no trial of s3", id="no-trials"),
        pytest.param(
            {"must_pass": False}, as_passed, "their grades say otherwise: s3.1 (truth", id="status"
        ),
    ],
)
def test_an_edited_run_directory_is_invalid(
    folder: Path, plan: dict[str, Any], lines: Callable[[Lines], Lines], reason: str, lane: str
) -> None:
    """A failed trial that was edited away does not turn the verdict into a pass."""
    edit_plan(folder, **plan)
    edit_lines(folder, lines)
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"live"', f'"{lane}"'))
    verdict = gate(load_run(folder), floor=0.5)
    assert (verdict.verdict, verdict.exit_code) == ("INVALID", 2)
    assert any(reason in said for said in verdict.reasons)


def mended(lines: Lines) -> Lines:
    """Call every trial passed, and its grades too."""
    good = {"value": 1.0, "passed": True, "reason": "", "reason_code": ""}
    grades = [[{**grade, **good} for grade in line["grades"]] for line in lines]
    clean = {"status": "passed", "reason_code": "", "reason": ""}
    return [{**line, **clean, "grades": one} for line, one in zip(lines, grades, strict=True)]


@pytest.mark.parametrize(
    ("plan", "lines", "lane"),
    [
        pytest.param({"id": "s3"}, mended, "live", id="status-and-grades"),
        pytest.param({"must_pass": False}, list, "live", id="demand"),
        pytest.param({"id": "s3"}, list, "imported", id="lane"),
    ],
)
def test_a_run_that_was_changed_consistently_is_invalid(
    folder: Path, plan: dict[str, Any], lines: Callable[[Lines], Lines], lane: str
) -> None:
    """The seal covers what was found, what was demanded and in which lane."""
    edit_plan(folder, **plan)
    if lines is not list:
        edit_lines(folder, lines)
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"live"', f'"{lane}"'))
    verdict = gate(load_run(folder), floor=0.5)
    assert "INVALID" in {check.outcome for check in verdict.checks}
    assert not verdict.passed
    assert "were changed after the run" in str(verdict)


def test_several_runs_keep_what_their_suite_demands(folder: Path) -> None:
    """Runs that are gated together fail like each of them where a must-pass scenario failed."""
    verdict = gate(load_runs([folder]), floor=0.5)
    assert verdict.verdict == "FAIL"
    assert verdict.reasons == ("must pass, and failed: s3 (1 of 2 trials)",)


def frame(**columns: Any) -> pd.DataFrame:
    """Give the trials of a run that passed, with some columns changed."""
    rows = [(f"s{i}", trial) for i in range(N_SCENARIOS) for trial in range(2)]
    told = {"status": "passed", "lane": "live", "run_id": "r"} | columns
    return pd.DataFrame(rows, columns=["scenario", "trial"]).assign(**told)


@pytest.mark.parametrize("lane", ["live", "contract"])
@pytest.mark.parametrize("word", ["error", "Failed", "PASSED", "", None])
def test_a_status_that_is_none_of_the_three_is_refused(word: str | None, lane: str) -> None:
    """What is neither failed nor incomplete has not passed for that."""
    statuses = ["passed"] * (2 * N_SCENARIOS - 1) + [word]
    with pytest.raises(UsageError, match=r"status .* is not one of passed, failed, incomplete"):
        gate(frame(status=statuses, lane=lane), floor=0.5)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param({"lane": "Contract"}, "lane 'Contract' is not one of contract", id="lane"),
        pytest.param({"scenario": None}, "rows without a scenario", id="scenario"),
    ],
)
def test_rows_that_cannot_be_placed_are_refused(columns: dict[str, Any], message: str) -> None:
    """A lane in other words, or no scenario, must not choose a milder rule."""
    with pytest.raises(UsageError, match=message):
        gate(frame(**columns), floor=0.5)


@pytest.mark.parametrize(
    ("demand", "word"), [("must_pass", "must pass, and failed"), ("min_pass_rate", "asked for is")]
)
def test_a_demand_on_one_trial_holds_for_its_scenario(demand: str, word: str) -> None:
    """A demand that stands in the rows that passed alone is not met by them alone."""
    trials = frame(status=["failed"] + ["passed"] * (2 * N_SCENARIOS - 1))
    passed = trials["status"] == "passed"
    asked = passed if demand == "must_pass" else passed.map({True: 1.0})
    verdict = gate(trials.assign(**{demand: asked}), floor=0.5)
    assert verdict.verdict == "FAIL"
    assert word in verdict.reasons[0]


def test_a_part_that_gates_needs_a_baseline() -> None:
    """A part that was named, and could not be held against anything, is no pass."""
    with pytest.raises(UsageError, match="gate_on tag:security: a part is held against a baseline"):
        gate(frame(), floor=0.5, gate_on=["tag:security"])


def test_one_accepted_id_is_not_its_letters() -> None:
    """A single id means the scenario, as a list of one does."""
    lost = frame(status="passed").query("scenario != 's3'")
    before = pd.concat([frame(run_id=run, status="failed") for run in ("a", "b")])
    one, several = (gate(lost, baseline=before, accept=given) for given in ("s3", ["s3"]))
    assert one == several
    assert gate(lost, baseline=before) != one


def test_categorical_statuses_are_counted_like_words() -> None:
    """A frame that was read with categories is no other evidence."""
    statuses = ["incomplete"] + ["passed"] * (2 * N_SCENARIOS - 1)
    plain = frame(status=statuses)
    assert gate(plain.astype({"status": "category"}), floor=0.5) == gate(plain, floor=0.5)
