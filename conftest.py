"""The README's examples run in a folder of their own that has the shipped data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


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
