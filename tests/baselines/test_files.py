"""Baseline files: the seal, links, names, and the list of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.baselines import Baseline, list_baselines, load_baseline, pin_baseline
from evalkit.baselines.sealing import _hash, baseline_from
from evalkit.errors import BaselineError, UsageError
from evalkit.results import Run


@pytest.fixture
def pinned(runs: list[Run], folder: Path) -> Baseline:
    """Pin the three runs as ``main``."""
    return pin_baseline("main", runs, folder=folder)


@pytest.fixture
def path(pinned: Baseline, folder: Path) -> Path:
    """Give the file of ``main``."""
    return folder / "main.json"


def sealed_again(text: str, **changes: Any) -> str:
    """Change a file as somebody does who knows how to seal it."""
    content = {**json.loads(text), **changes}
    del content["sha256"]
    return json.dumps({**content, "sha256": _hash(content)})


@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    place=st.integers(min_value=0),
    edit=st.sampled_from(["replace", "insert", "delete"]),
    character=st.sampled_from('019afz"{}[],: \n\r\t\\'),
)
@example(place=-1, edit="delete", character="\n")
@example(place=1, edit="insert", character="\r")
def test_any_edit_of_one_character_is_refused(
    path: Path, place: int, edit: str, character: str
) -> None:
    """Counts, hashes, names, even layout: what was reviewed is what is used."""
    text = path.read_text()
    place %= len(text)
    kept = text[place + (edit != "insert") :]
    edited = text[:place] + ("" if edit == "delete" else character) + kept
    if edited == text:
        return
    other = path.with_name("edited.json")
    other.write_bytes(edited.encode())
    with pytest.raises(BaselineError):
        load_baseline(other)
    with pytest.raises(BaselineError):
        baseline_from(edited, where="here")


def test_windows_newlines_are_no_edit(path: Path, pinned: Baseline) -> None:
    """What git does to every line of a checkout changes nothing that was said."""
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_baseline(path) == pinned


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 0.99}, "its rates do not follow from its counts"),
        ({"runs": []}, "it pools 0 runs, at least 3 are needed"),
        ({"scenarios": []}, "its counts are not those of its runs"),
        ({"by_grader": [{"scenario": "z", "grader": "truth", "rubric": "", "passed": [1, 1, 1],
                         "failed": [0, 0, 0], "mean": [1, 1, 1]}]}, "its counts are not those"),
        ({"cost": "free"}, "its cost is 'free'"),
        ({"cost": "metered"}, "its cost is 'metered' with None USD"),
        ({"lane": 3}, "lane is no str"),
        ({"rate": "1"}, "rate is no float"),
        ({"rate": 7}, "rate is no float"),
        ({"cost_usd": -1}, "cost_usd is no float"),
        ({"models": "m"}, "models is no tuple"),
        ({"graders": {"truth": 1}}, "graders is no Mapping"),
        ({"runs": [1, 2, 3]}, "PinnedRun is no JSON object"),
        ({"runs": {}}, "runs is no list"),
        ({"note": "the agent said so"}, "'note' missing or unknown"),
        ({"format": 2}, "written by a newer evalkit (format 2"),
        ({"format": True}, "names no format"),
        ({}, "its layout is not the one"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)  # fmt: skip
def test_a_file_that_was_sealed_by_hand_is_checked(
    path: Path, changes: dict[str, Any], message: str
) -> None:
    """Types, fields, counts and rates must be those of a baseline, whoever sealed it."""
    path.write_text(sealed_again(path.read_text(), **changes))
    with pytest.raises(BaselineError) as caught:
        load_baseline(path)
    assert message in str(caught.value)


def test_counts_that_no_suite_has_are_refused(path: Path) -> None:
    """A file must not make its reader build a frame of a billion rows."""
    scenarios = json.loads(path.read_text())["scenarios"]
    scenarios[0]["passed"] = [10**9] * 3
    path.write_text(sealed_again(path.read_text(), scenarios=scenarios))
    with pytest.raises(BaselineError, match="passed is no tuple"):
        load_baseline(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"format": NaN}', b'{"format": 1}'],
    ids=["empty", "null", "list", "object", "binary", "deep", "NaN", "no seal"],
)
def test_what_is_no_baseline_is_refused(folder: Path, content: bytes) -> None:
    """Anything can lie in the folder; the message names the file."""
    folder.mkdir()
    (folder / "main.json").write_bytes(content)
    with pytest.raises(BaselineError, match=r"main\.json"):
        load_baseline("main", folder=folder)


def test_links_and_pipes_are_refused(path: Path) -> None:
    """A baseline is a file of its own, so that what was reviewed is what is read."""
    link, pipe = path.with_name("link.json"), path.with_name("pipe.json")
    link.symlink_to(path)
    with pytest.raises(BaselineError, match="is a symbolic link"):
        load_baseline("link", folder=path.parent)
    os.mkfifo(pipe)
    with pytest.raises(BaselineError, match="is no file"):
        load_baseline(pipe)
    path.with_name("folder.json").mkdir()
    with pytest.raises(BaselineError, match=r"folder\.json: "):
        load_baseline("folder", folder=path.parent)


def test_a_renamed_file_is_refused(path: Path) -> None:
    """A copy under another name would be the same baseline twice."""
    path.rename(path.with_name("other.json"))
    with pytest.raises(BaselineError, match="is the baseline 'main' under another name"):
        load_baseline("other", folder=path.parent)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mian", "Did you mean 'main'?"),
        ("zzz", "there are main"),
        ("../main", "is no name of a baseline"),
        ("", "is no name of a baseline"),
    ],
)
def test_unknown_names_are_explained(path: Path, name: str, message: str) -> None:
    """A name is looked for in the folder, and nowhere else."""
    with pytest.raises(UsageError) as caught:
        load_baseline(name, folder=path.parent)
    assert message in str(caught.value)


def test_list_names_what_cannot_be_used(path: Path, runs: list[Run]) -> None:
    """An edited baseline is a row with its problem, not a missing row."""
    folder = path.parent
    pin_baseline("other", runs, folder=folder)
    path.write_text(path.read_text().replace("[2, 1, 3]", "[3, 3, 3]"))
    listed = list_baselines(folder).set_index("name")
    assert list(listed.index) == ["main", "other"]
    assert "was edited" in str(listed.loc["main", "problem"])
    assert listed.loc["other", "problem"] == ""
    assert (listed.loc["other", "n_runs"], listed.loc["other", "n_trials"]) == (3, 18)
    assert listed.loc["other", "median_rate"] == pytest.approx(0.833333)


def test_a_folder_that_does_not_exist_has_no_baselines(folder: Path) -> None:
    """An empty list has its columns all the same."""
    listed = list_baselines(folder)
    assert listed.empty
    assert {"name", "rate", "problem"} <= set(listed.columns)


def test_a_notebook_escapes_what_a_baseline_holds(make_run: Any, folder: Path) -> None:
    """Scenario ids come from files of others."""
    runs = [make_run({"<img src=x>": "p"}, name=f"r{n}") for n in range(3)]
    shown = pin_baseline("main", runs, folder=folder)._repr_html_()
    assert "<img" not in shown
    assert "&lt;img src=x&gt;" in shown
