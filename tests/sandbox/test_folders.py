"""What of the machine's files a trial sees."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from evalkit.sandbox import folders
from evalkit.sandbox.folders import plan_view


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Make a home with keys and a project, and say that it is the user's."""
    home = tmp_path / "home"
    for name in (".ssh", ".pyenv/shims", ".cargo/bin", ".local/bin", "bin", "project/src"):
        (home / name).mkdir(parents=True)
    (home / ".netrc").write_text("real-secret")
    (home / "notes.txt").write_text("x")
    (home / "node" / "v20" / "bin").mkdir(parents=True)
    monkeypatch.setattr(folders, "_homes", lambda: (str(home),))
    monkeypatch.setattr(folders, "_SHARED", ())
    monkeypatch.setattr(folders, "_needed", lambda: iter(()))
    return home


def test_only_what_is_asked_for_is_kept(home):
    """Everything else of a home is hidden, and what lies elsewhere is left as it is."""
    view = plan_view([home / "project", home / "project" / "src", "/usr/lib", home / "missing"])
    assert view == ((str(home),), (str(home / "project"),))


@pytest.mark.parametrize("asked", ["", ".."])
def test_home_itself_is_kept_without_keys(home, asked):
    """An agent right in a home needs its files, and not those that begin with a dot."""
    view = plan_view([home / asked])
    assert {Path(path).name for path in view.kept} == {"bin", "notes.txt", "project", "node"}


def test_sockets_are_never_kept(home):
    """They lead out of any network."""
    with socket.socket(socket.AF_UNIX) as sock:
        before = Path.cwd()
        os.chdir(home)
        try:
            sock.bind("agent.sock")
        finally:
            os.chdir(before)
        assert "agent.sock" not in {Path(path).name for path in plan_view([home]).kept}


def test_target_of_a_link_is_kept(home, tmp_path):
    """A path that leads into a home by a link is kept at both ends."""
    (home / "link").symlink_to(home / "project")
    view = plan_view([home / "link"])
    assert view.kept == (str(home / "link"), str(home / "project"))


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        (".pyenv/shims", ".pyenv"),
        ("node/v20/bin", "node/v20"),
        (".cargo/bin", ".cargo/bin"),
        (".local/bin", ".local/bin"),
        ("bin", "bin"),
    ],
)
def test_programs_bring_what_they_need_and_no_keys(home, entry, kept):
    """`bin` brings its neighbours, but not right below a home, where keys lie."""
    assert folders._prefix(str(home / entry)) == str(home / kept)


def test_folders_that_an_allowed_variable_names_are_needed(monkeypatch):
    """What other programs load from is there, or the variable would name nothing."""
    monkeypatch.setenv("NODE_PATH", os.pathsep.join(["/home/u/modules", "relative", ""]))
    monkeypatch.setenv("VIRTUAL_ENV", "/home/u/.venv")
    needed = set(folders._needed())
    assert {"/home/u/modules", "/home/u/.venv"} <= needed
    assert not {"relative", ""} & needed


def test_interpreter_and_modules_are_needed():
    """A trial can import what its server can, and start the interpreter."""
    needed = set(folders._needed())
    assert {sys.prefix, sys.base_prefix, sys.executable} <= needed
    assert str(Path(folders.__file__).parent) in needed


def test_root_is_no_home(monkeypatch):
    """A machine whose user lives in / keeps its files."""
    monkeypatch.setenv("HOME", "/")
    assert "/" not in plan_view().hidden
