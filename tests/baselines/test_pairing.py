"""Which scenarios of a run a baseline can be compared with, and when it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.baselines import Baseline, match_baseline, pin_baseline
from evalkit.results import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def pinned(runs: list[Run], folder: Path) -> Baseline:
    """Pin the three runs: each of both scenarios failed at least once."""
    return pin_baseline("main", runs, folder=folder)


def test_the_same_scenarios_match(pinned: Baseline, make_run: MakeRun) -> None:
    """Another agent, model or number of trials is what a gate is for."""
    run = make_run({"b": "p", "a": "f"}, name="now", agent_hash="b" * 64, models=("m",))
    match = match_baseline(run, pinned)
    assert match.same == ("a", "b")
    assert (match.changed, match.added, match.removed, match.failed_before) == ((), (), (), ())
    assert match.problems == ()
    assert match.is_comparable


def test_what_is_not_the_same_is_sorted_out(make_run: MakeRun, folder: Path) -> None:
    """Removed and changed scenarios that failed before are named: they may hide a regression."""
    then = {"same": "p", "changed": "p", "changed-bad": "f", "gone": "p", "gone-bad": "f"}
    runs = [make_run(then, name=f"r{n}") for n in range(3)]
    pinned = pin_baseline("main", runs, folder=folder)
    now = {"same": "p", "changed": "p", "changed-bad": "p", "new": "p"}
    match = match_baseline(
        make_run(now, name="now", hashes={"changed": "x", "changed-bad": "y"}), pinned
    )
    assert match.same == ("same",)
    assert match.changed == ("changed", "changed-bad")
    assert match.added == ("new",)
    assert match.removed == ("gone", "gone-bad")
    assert match.failed_before == ("changed-bad", "gone-bad")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"suite": "t"}, "the run is of suite 't', baseline 'main' of 's'"),
        ({"lane": "quality"}, "the run is of the quality lane, baseline 'main' of the live lane"),
        ({"graders": {"truth": "2", "path": "1"}}, "grader 'truth' has version 2 in the run and 1"),
        ({"graders": {}}, "grader 'path' has version unknown in the run"),
        ({"more_graders": ("extra",)}, "grader 'extra' was asked for in the run only"),
        ({"hashes": {"a": "x", "b": "y"}}, "no scenario of the run is the same"),
        ({"parent": "r1"}, "the run is part of baseline 'main'"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_what_cannot_be_compared_is_a_problem(
    pinned: Baseline, make_run: MakeRun, more: dict[str, Any], message: str
) -> None:
    """Other suite, lane or graders, nothing in common, or the baseline's own run graded again."""
    match = match_baseline(make_run(name="now", **more), pinned)
    assert any(message in problem for problem in match.problems)
    assert not match.is_comparable


def test_a_run_is_not_compared_with_itself(pinned: Baseline, runs: list[Run]) -> None:
    """A part of the baseline would look unchanged whatever it did."""
    (problem,) = match_baseline(runs[1], pinned).problems
    assert "would be compared with itself" in problem
