"""Versions and the state of a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evalkit.provenance import git_state, version_of, versions


def git(folder: Path, *arguments: str) -> None:
    """Run git without anybody's own settings."""
    identity = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.test",
        "-c",
        "commit.gpgsign=false",
    ]
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a checkout with one commit."""
    git(tmp_path, "init", "-q")
    (tmp_path / "a.txt").write_text("one")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_git_state_names_commit_and_changes(checkout: Path) -> None:
    """A changed file makes a checkout dirty, one that git does not know does not."""
    clean = git_state(checkout)
    assert len(str(clean["commit"])) == 40
    assert clean["dirty"] is False
    (checkout / "new.txt").write_text("x")
    assert git_state(checkout) == clean
    (checkout / "a.txt").write_text("two")
    assert git_state(checkout) == {**clean, "dirty": True}


def test_git_state_outside_of_a_checkout_is_empty(tmp_path: Path) -> None:
    """No checkout and no folder are no errors: there is nothing to say."""
    assert git_state(tmp_path) == {}
    assert git_state(tmp_path / "gone") == {}


def test_git_state_never_says_clean_where_git_could_not_tell(checkout: Path) -> None:
    """A broken index is unknown, not clean."""
    (checkout / ".git" / "index").write_bytes(b"broken")
    assert git_state(checkout)["dirty"] is None


def test_git_state_leaves_no_trace(checkout: Path) -> None:
    """Somebody may be using git at the same moment: no file of theirs is touched."""
    index = checkout / ".git" / "index"
    before = index.read_bytes(), index.stat().st_mtime_ns
    (checkout / "a.txt").touch()
    git_state(checkout)
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before


def test_git_state_takes_any_file_name(checkout: Path) -> None:
    """A changed file whose name is no UTF-8 does not stop a run."""
    git(checkout, "config", "core.quotepath", "off")
    odd = checkout / "\udcff.txt"
    odd.write_text("x")
    git(checkout, "add", ".")
    assert git_state(checkout)["dirty"] is True


def test_versions_name_python_and_what_is_installed() -> None:
    """What is not installed is left out, not called None."""
    found = versions(["pytest", "no-such-package-at-all"])
    assert found["python"].startswith("3.")
    assert found["pytest"] == version_of("pytest")
    assert "no-such-package-at-all" not in found
    assert version_of("no-such-package-at-all") is None
