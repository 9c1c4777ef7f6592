"""Verifying a baseline against its runs, and against the suite as it is now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import evalkit as ek
from evalkit.baselines import pin_baseline, verify_baseline
from evalkit.baselines.files import write_baseline
from evalkit.baselines.records import with_rates
from evalkit.errors import UsageError
from evalkit.results import Run

MakeRun = Callable[..., Run]


def test_a_baseline_follows_from_its_runs(runs: list[Run], folder: Path) -> None:
    """Nothing is found where nothing is wrong; any number of its runs may be at hand."""
    pin_baseline("main", runs, folder=folder)
    assert verify_baseline("main", folder=folder) == ()
    assert verify_baseline("main", runs=runs, folder=folder) == ()
    assert verify_baseline("main", runs=[runs[2].folder], folder=folder) == ()


def test_an_edited_file_is_found(runs: list[Run], folder: Path) -> None:
    """Editing is a finding, not an exception."""
    pin_baseline("main", runs, folder=folder)
    path = folder / "main.json"
    path.write_text(path.read_text().replace("[2, 1, 3]", "[3, 3, 3]"))
    (found,) = verify_baseline("main", runs=runs, folder=folder)
    assert (found.kind, found.is_wrong) == ("edited", True)


def test_counts_that_are_not_the_runs_are_found(runs: list[Run], folder: Path) -> None:
    """Somebody who seals better counts anew is found by the runs."""
    honest = pin_baseline("main", runs, folder=folder)
    better = replace(honest.scenarios[0], passed=(3, 3, 3), failed=(0, 0, 0))
    forged = with_rates(replace(honest, name="better", scenarios=(better, honest.scenarios[1])))
    write_baseline(forged, folder)
    assert verify_baseline("better", folder=folder) == ()
    found = verify_baseline("better", runs=runs, folder=folder)
    assert [(each.about, each.message) for each in found] == [
        ("r0", "a: 2 passed and 1 failed in the run, 3 passed and 0 failed in the baseline"),
        ("r1", "a: 1 passed and 2 failed in the run, 3 passed and 0 failed in the baseline"),
    ]
    said = replace(honest.by_grader[1], mean=(1.0, 1.0, 1.0))
    counts = (honest.by_grader[0], said, *honest.by_grader[2:])
    write_baseline(replace(honest, name="kinder", by_grader=counts), folder)
    assert (
        "counts of grader 'truth'" in verify_baseline("kinder", runs=runs, folder=folder)[0].message
    )


def test_runs_that_are_none_of_its_own_are_found(
    runs: list[Run], make_run: MakeRun, folder: Path, tmp_path: Path
) -> None:
    """Another run, one that is gone, and one of the same id with other content."""
    pin_baseline("main", runs, folder=folder)
    other = make_run(name="other")
    found = verify_baseline("main", runs=[other, tmp_path / "gone"], folder=folder)
    assert [each.kind for each in found] == ["run", "run"]
    assert "is none of the 3 runs" in found[0].message
    assert "not a run directory" in found[1].message
    again = ek.load_run(runs[0].folder)
    again.manifest = replace(again.manifest, digest="0" * 64, agent="other:agent")
    told = [each.message for each in verify_baseline("main", runs=[again], folder=folder)]
    assert any("digest is not that of its trials" in each for each in told)
    assert any(
        "its agent is 'other:agent', the baseline says 'mine:agent'" in each for each in told
    )


def suite_of(**replies: str) -> ek.Suite:
    """Make a suite: scenario -> what its reply must contain."""
    return ek.load_suite(
        [
            {"task_id": each, "input": "Hi", "success_contains": [word]}
            for each, word in replies.items()
        ],
        name="s",
    )


def test_what_became_of_the_suite_is_found(make_run: MakeRun, folder: Path) -> None:
    """Scenarios that are new, gone or changed are named, with what they did before."""
    before = suite_of(kept="hello", changed="hello", gone="hello")
    hashes = {scenario.id: scenario.hash for scenario in before}
    letters = {"kept": "p", "changed": "p", "gone": "f"}
    runs = [make_run(letters, name=f"r{n}", hashes=hashes) for n in range(3)]
    pin_baseline("main", runs, folder=folder)
    assert verify_baseline("main", suite=before, folder=folder) == ()
    now = suite_of(kept="hello", changed="good morning", new="hello")
    found = verify_baseline("main", suite=now, folder=folder)
    assert {(each.kind, each.about): each.message for each in found} == {
        ("added", "new"): "is new; the baseline has no trial of it",
        ("changed", "changed"): "has other content now",
        ("removed", "gone"): "is gone from the suite; it failed 3 of 3 trials",
    }
    assert not any(each.is_wrong for each in found)


def test_another_suite_is_wrong(runs: list[Run], folder: Path) -> None:
    """A baseline says nothing about a suite of another name."""
    pin_baseline("main", runs, folder=folder)
    records = [{"task_id": "a", "input": "Hi", "success_contains": ["x"]}]
    other = ek.load_suite(records, name="other")
    (found,) = verify_baseline("main", suite=other, folder=folder)
    assert (found.kind, found.is_wrong) == ("suite", True)


def test_a_name_that_is_unknown_is_misuse(folder: Path) -> None:
    """There is nothing to verify."""
    with pytest.raises(UsageError, match="no such baseline; there is none"):
        verify_baseline("main", folder=folder)
