"""What a run is compared with: found by name, file or directory, and refused with why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.baselines import Baseline
from evalkit.errors import BaselineError, LedgerError, UsageError
from evalkit.reporting.sides import find_side, name_of, unlike
from evalkit.results import Run

Make = Callable[..., Any]


def test_baseline_is_found_by_name_and_by_file(pin: Make, tmp_path: Path) -> None:
    """A name is looked for in the folder of baselines, a path is that of the file."""
    pin({"a": "p"})
    folder = str(tmp_path / "baselines")
    for given in ("main", tmp_path / "baselines" / "main.json"):
        found = find_side(given, folder=folder)
        assert isinstance(found, Baseline)
        assert name_of(found) == "main"


def test_run_is_found_by_its_directory_and_by_a_folder_of_runs(
    make_run: Make, tmp_path: Path
) -> None:
    """A folder of runs stands for its latest."""
    run = make_run({"a": "p"}, name="r1")
    make_run({"a": "p"}, name="r0")
    for given in (run.folder, str(run.folder), tmp_path / "runs"):
        found = find_side(given, folder="nowhere")
        assert isinstance(found, Run)
        assert name_of(found) == "r1"


def test_what_is_loaded_already_is_taken_as_it_is(make_run: Make) -> None:
    """A notebook may give a run or a baseline itself."""
    run = make_run({"a": "p"})
    assert find_side(run, folder="nowhere") is run


def test_name_of_both_is_the_baseline_and_a_path_the_directory(
    pin: Make, make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is pinned wins over a directory that happens to have its name."""
    pin({"a": "p"})
    make_run({"a": "p"}, name="main").folder.rename(tmp_path / "main")
    monkeypatch.chdir(tmp_path)
    assert isinstance(find_side("main", folder="baselines"), Baseline)
    assert isinstance(find_side("./main", folder="baselines"), Run)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("", UsageError, "needs something to compare with"),
        ("mian", UsageError, "Did you mean 'main'"),
        ("runs/nowhere", UsageError, "no such run directory"),
        ("nowhere.json", UsageError, "no such baseline"),
        ("..", LedgerError, "neither a run directory nor a folder of runs"),
    ],
)
def test_what_is_not_there_is_refused(
    pin: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    error: type[Exception],
    message: str,
) -> None:
    """The message says what is missing, and what is near."""
    pin({"a": "p"})
    (tmp_path / "inside" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "inside" / "deep")
    with pytest.raises(error, match=message):
        find_side(given, folder=str(tmp_path / "baselines"))


def test_edited_baseline_is_refused(pin: Make, tmp_path: Path) -> None:
    """A report never shows figures of a file whose seal is broken."""
    pin({"a": "pf"})
    path = tmp_path / "baselines" / "main.json"
    path.write_text(path.read_text().replace('"travel"', '"other"'))
    with pytest.raises(BaselineError, match="edited"):
        find_side("main", folder=str(tmp_path / "baselines"))


def test_runs_that_were_not_measured_alike_are_named(make_run: Make) -> None:
    """Suite, lane, further graders and versions of graders are compared; the agent is not."""
    one = make_run({"a": "p"}, name="r1", agent_hash="x")
    assert list(unlike(one, make_run({"a": "p"}, name="r2", agent_hash="y"))) == []
    more = {"suite": "s2", "more_graders": ("judge",), "graders": {"truth": "2"}}
    two = make_run({"a": "p"}, name="r3", lane="contract", **more)
    assert list(unlike(one, two)) == [
        "the suite is 'travel' in this run and 's2' in the other",
        "the lane is 'live' in this run and 'contract' in the other",
        "the list of further graders is empty in this run and 'judge' in the other",
        "grader 'truth' has the versions '1' and '2'",
    ]
