"""Agents lie beside these tests, in files that are imported in trials only."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

collect_ignore = ["agents"]

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]


def write_suite(folder: Path, agent: Any, scenarios: Sequence[Mapping[str, Any]]) -> Path:
    """Write a suite beside the agents, which are copied there."""
    shutil.copytree(HERE / "agents", folder, dirs_exist_ok=True)
    path = folder / "written.yaml"
    path.write_text(json.dumps({"suite": "written", "agent": agent, "scenarios": scenarios}))
    return path


@pytest.fixture(name="write_suite", scope="session")
def write_suite_fixture() -> Callable[[Path, Any, Sequence[Mapping[str, Any]]], Path]:
    """Give :func:`write_suite` to tests, which cannot import each other."""
    return write_suite


class Mark:
    """A runner's environment, which it and all that it starts can be told by."""

    def __init__(self, folder: Path) -> None:
        self._value = str(folder / uuid.uuid4().hex)
        self.tmp = folder / "tmp"
        self.tmp.mkdir()
        # Trials get PYTHONPATH, and no variable that nobody has allowed.
        paths = os.pathsep.join([str(CHECKOUT), self._value])
        self.env = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(self.tmp)}

    def living(self) -> list[str]:
        """Name the processes that are still there; they may take a moment to go."""
        deadline = time.monotonic() + 5
        while (found := list(self._bearers())) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def _bearers(self) -> Iterator[str]:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self._value.encode() in (process / "environ").read_bytes():
                    yield (process / "cmdline").read_text()
            except OSError:
                continue


@pytest.fixture(name="make_mark", scope="session")
def make_mark_fixture() -> Callable[[Path], Mark]:
    """Make the environment of a runner, in a folder of the test's."""
    return Mark
