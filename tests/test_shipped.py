"""Shipped files are found in a checkout and in a wheel, or the error says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit import shipped
from evalkit.errors import UsageError


@pytest.fixture(params=["checkout", "wheel"])
def layout(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay files out as a checkout or as an installed wheel does; return the folder of suites."""
    package = tmp_path / "evalkit"
    package.mkdir()
    root = tmp_path / "data" if request.param == "checkout" else package / "_shipped"
    for folder in ("suites", "traces"):
        (root / folder).mkdir(parents=True)
    (root / "suites" / "travel.yaml").write_text("a: 1")
    (root / "suites" / "career.yml").write_text("a: 1")
    (root / "suites" / "fixtures").mkdir()
    (root / "suites" / "notes.txt").write_text("no suite")
    monkeypatch.setattr(shipped, "_PACKAGE", package)
    return root / "suites"


@pytest.mark.parametrize("name", ["travel", "travel.yaml"])
def test_suite_is_found_in_both_layouts(layout: Path, name: str) -> None:
    """A suite is found by its name, with or without its ending."""
    assert shipped.suite(name) == layout / "travel.yaml"


def test_names_lists_files_of_the_kind_only(layout: Path) -> None:
    """Folders and files of other kinds are not listed."""
    assert shipped.names("suite") == ["career", "travel"]
    assert shipped.names("trace") == []


@pytest.mark.parametrize("name", ["travle", "../suites/travel", "", "notes.txt", "fixtures"])
def test_unknown_name_lists_what_there_is(layout: Path, name: str) -> None:
    """A name that is not shipped, a path among them, is an error that lists what is."""
    with pytest.raises(UsageError, match="There are: career, travel"):
        shipped.suite(name)


def test_near_name_is_suggested(layout: Path) -> None:
    """A slip of the pen gets a suggestion."""
    with pytest.raises(UsageError, match="Did you mean 'travel'"):
        shipped.suite("travle")


def test_unknown_kind_is_an_error() -> None:
    """Only kinds that are shipped can be listed."""
    with pytest.raises(UsageError, match="notebook, suite, trace"):
        shipped.names("nonsense")


def test_pass_rates_is_shipped() -> None:
    """The first report's notebook is found in this very layout."""
    assert shipped.notebook("pass_rates").is_file()
