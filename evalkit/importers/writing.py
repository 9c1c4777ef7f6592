"""Writing what was imported as a run directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final

import yaml

from evalkit.errors import TraceError
from evalkit.grade import Ending
from evalkit.importers.records import Imported, ImportedTrial
from evalkit.importers.registry import read
from evalkit.ledger import JSON, digest, event_line
from evalkit.recording import ledger_of
from evalkit.results import (
    Manifest,
    PlannedScenario,
    Run,
    RunWriter,
    load_run,
    new_run_id,
    trial_record,
)

SUITE_FILE: Final = "suite.yaml"
"""File in the run directory with the expectations that were imported."""


def import_run(
    format: str,  # noqa: A002
    path: str | PathLike[str],
    *,
    out: str | PathLike[str] = "data/runs",
    **options: Any,
) -> Run:
    """Import what another tool recorded as a run.

    A record that cannot be read is a trial that is ``incomplete`` (``unreadable``),
    and one that nobody graded is too (``not_graded``). Expectations that the file
    holds are written as ``suite.yaml`` into the run directory.

    Parameters
    ----------
    format
        Name of the format, one of :data:`evalkit.importers.FORMATS`.
    path
        A file or a folder.
    out
        Folder in which the run directory is made.
    **options
        As the format takes; see :func:`evalkit.importers.read`.

    Returns
    -------
    Run
        In the lane ``imported``.

    Raises
    ------
    UsageError
        If the format or an option is unknown.
    TraceError
        If the path cannot be read, is of another format, or holds no trial.
    LedgerError
        If the run directory cannot be written.
    """
    imported = read(format, path, **options)
    # Two readings, so that memory does not grow with the file: first what is planned.
    plan = _plan(imported)
    run_id = new_run_id(imported.name)
    manifest = Manifest(
        run_id=run_id,
        suite=imported.name,
        lane="imported",
        plan=tuple(planned.scenario(name) for name, planned in plan.items()),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        source=imported.source,
    )
    writer = RunWriter.create(Path(out) / run_id, manifest)
    if imported.suite is not None:
        _write_suite(writer.folder / SUITE_FILE, imported.suite)
    for trial in _renumbered(imported, plan):
        _add(writer, trial)
    writer.finish()
    return load_run(writer.folder)


@dataclass(slots=True)
class _Planned:
    """What the first reading finds out about one scenario."""

    numbers: list[int] = field(default_factory=list)
    tags: dict[str, None] = field(default_factory=dict)

    def scenario(self, name: str) -> PlannedScenario:
        return PlannedScenario(id=name, n_trials=len(self.numbers), tags=tuple(self.tags))


def _plan(imported: Imported) -> dict[str, _Planned]:
    plan: dict[str, _Planned] = {}
    for trial in imported.trials:
        planned = plan.setdefault(trial.scenario, _Planned())
        planned.numbers.append(trial.trial)
        planned.tags.update(dict.fromkeys(trial.tags))
    if not plan:
        raise TraceError(f"{imported.path}: nothing to import: it holds no trial")
    for planned in plan.values():
        planned.numbers.sort()
    return plan


def _renumbered(imported: Imported, plan: Mapping[str, _Planned]) -> Iterator[ImportedTrial]:
    """Give the trials of each scenario numbers from 0 without gaps, in their order."""
    places = {
        (name, number): place
        for name, planned in plan.items()
        for place, number in enumerate(planned.numbers)
    }
    for trial in imported.trials:
        yield replace(trial, trial=places[trial.scenario, trial.trial])


def _add(writer: RunWriter, trial: ImportedTrial) -> None:
    ending = Ending("incomplete", "unreadable", trial.problem) if trial.problem else Ending()
    ledger = ledger_of(
        trial.trace, scenario=trial.scenario, trial=trial.trial, lane="imported", ending=ending
    )
    record = trial_record(
        trial.scenario,
        trial.trial,
        trial.trace,
        ending=ending,
        grades=trial.grades,
        tags=trial.tags,
        digest=digest(ledger),
    )
    writer.add(record, b"".join(map(event_line, ledger)))


class _Dumper(yaml.SafeDumper):
    """Writes every value out where it stands: no anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _write_suite(path: Path, suite: Mapping[str, JSON]) -> None:
    text = yaml.dump(dict(suite), Dumper=_Dumper, sort_keys=False, width=100)
    path.write_text(f"# Written by evalkit import.\n{text}", encoding="utf-8")
