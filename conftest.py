"""What every test and example has: graders of its own, and a folder for the README."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_configure() -> None:
    """Let what tests start be interrupted, also where CI runs them in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _graders_stay_as_they_were() -> Iterator[None]:
    """Take back the graders that a test or an example registers."""
    from evalkit.graders import base

    before = dict(base._registry)
    yield
    base._registry.clear()
    base._registry.update(before)


@pytest.fixture(autouse=True)
def _readme_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    if request.node.path.name != "README.md":
        yield
        return
    monkeypatch = pytest.MonkeyPatch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "suites").symlink_to(Path(__file__).parent / "data" / "suites")
    monkeypatch.chdir(tmp_path)
    yield
    monkeypatch.undo()
