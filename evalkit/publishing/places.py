"""Where a scenario stands in its suite's file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalkit.errors import SuiteError

if TYPE_CHECKING:
    from evalkit.results import Run


class Place(NamedTuple):
    """A file, and a 1-based line where it is known."""

    file: Path
    line: int | None

    def below(self, root: Path) -> str | None:
        """Give the file's path relative to a folder; ``None`` if it lies outside."""
        file, root = self.file.resolve(), root.resolve()
        return file.relative_to(root).as_posix() if file.is_relative_to(root) else None

    def __str__(self) -> str:
        shown = self.below(Path.cwd()) or str(self.file)
        return shown if self.line is None else f"{shown}:{self.line}"


def scenario_place(run: Run, scenario: str) -> Place | None:
    """Say where a scenario of a run is written; ``None`` if its suite came from memory.

    The line is looked up in the file as it is now: none where the scenario has gone.
    """
    if not run.manifest.suite_path:
        return None
    file = Path(run.manifest.suite_path)
    return Place(file, scenario_lines(file).get(scenario))


def scenario_lines(file: Path) -> Mapping[str, int]:
    """Give the 1-based line of each scenario of a suite file, by id.

    Empty for a file that is gone or no YAML: a place is a help, never a condition.
    """
    try:
        return _lines(file, file.stat().st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=64)
def _lines(file: Path, _changed_at: int) -> Mapping[str, int]:
    from evalkit.suite.yaml_reader import read_yaml

    if file.suffix not in {".yaml", ".yml"}:
        return {}
    try:
        document = read_yaml(file)
    except SuiteError:
        return {}
    written = document.data.get("scenarios") if isinstance(document.data, dict) else None
    found = {}
    for index, scenario in enumerate(written if isinstance(written, list) else ()):
        if isinstance(scenario, dict) and isinstance(scenario.get("id"), str):
            found[scenario["id"]] = document.line(("scenarios", index)) or 1
    return found
