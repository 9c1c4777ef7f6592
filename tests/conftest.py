"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def require(condition: object, reason: str) -> None:
    """Skip the test where a part is missing; in CI a missing part is a failure."""
    if condition:
        return
    if os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
        pytest.fail(f"EVALKIT_REQUIRE_ALL=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def public_data() -> Path:
    """Folder of the public data sets; the test is skipped where none is named."""
    folder = os.environ.get("EVALKIT_PUBLIC_DATA")
    if not folder:
        pytest.skip("EVALKIT_PUBLIC_DATA names no folder of public data")
    path = Path(folder)
    require(path.is_dir(), f"EVALKIT_PUBLIC_DATA={folder} is no folder")
    return path


@pytest.fixture(autouse=True)
def _tools_of_this_test_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests have wrapped with `ek.tool`: a process knows it for good."""
    monkeypatch.setattr("evalkit.observing._names", set())
