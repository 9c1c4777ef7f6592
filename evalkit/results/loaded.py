"""A run read back from its directory, as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.errors import LedgerError, UsageError
from evalkit.grade import Status, worst
from evalkit.ledger import Event, read_events
from evalkit.reading import trace_of
from evalkit.results import frames
from evalkit.results.directory import (
    MANIFEST,
    ledger_name,
    read_manifest,
    read_records,
    seal_of,
)
from evalkit.results.records import Manifest, PlannedScenario, TrialRecord
from evalkit.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

_SHOWN_ROWS = 100
"""Trials that a notebook shows of a run."""


class Run:
    """One run: its manifest, its trials, and its frames.

    Frames are made when first asked for, and kept; their columns are listed in
    :data:`evalkit.results.frames.COLUMNS`. A planned trial that has no result
    stands there as ``incomplete``.

    Parameters
    ----------
    folder
        The run directory.

    Raises
    ------
    LedgerError
        If the folder is no run directory, or a broken one.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest = read_manifest(self.folder)
        finished = read_records(self.folder)
        self._planned = frozenset(self.manifest.keys())
        unplanned = finished.keys() - self._planned
        if unplanned:
            scenario, trial = min(unplanned)
            raise LedgerError(f"{self.folder}: trial {trial} of {scenario!r} is not in the plan")
        self.records: tuple[TrialRecord, ...] = tuple(
            finished.get((planned.id, trial)) or _unfinished(planned, trial)
            for planned in self.manifest.plan
            for trial in range(planned.n_trials)
        )
        self._finished = frozenset(finished)

    @property
    def id(self) -> str:
        """The run's id, which names its folder too."""
        return self.manifest.run_id

    @property
    def digest(self) -> str | None:
        """Digest over all ledgers; ``None`` while trials are missing."""
        return self.manifest.digest

    @property
    def status(self) -> Status:
        """Failed if any trial failed, else incomplete if any is (or there is none), else passed."""
        return worst(record.status for record in self.records) if self.records else "incomplete"

    @property
    def is_unchanged(self) -> bool:
        """Whether manifest and trials are still those that the runner sealed."""
        return self.manifest.seal in (None, seal_of(self.folder, self.manifest))

    @property
    def is_finished(self) -> bool:
        """Whether every planned trial has a result."""
        return self._finished == self._planned

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a planned trial."""
        return frames.frame("trials", frames.trial_rows(self.manifest, self.records))

    @cached_property
    def grades(self) -> pd.DataFrame:
        """One row a grade."""
        return frames.frame(
            "grades",
            [
                row
                for record in self.records
                for row in frames.grade_rows(
                    (self.id, record.scenario, record.trial), record.grades
                )
            ],
        )

    @cached_property
    def tool_calls(self) -> pd.DataFrame:
        """One row an attempt to use a tool."""
        return frames.frame("tool_calls", self._rows_of_traces(frames.tool_call_rows))

    @cached_property
    def model_calls(self) -> pd.DataFrame:
        """One row a request to a model."""
        return frames.frame("model_calls", self._rows_of_traces(frames.model_call_rows))

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row an event of a ledger."""
        return frames.frame(
            "events",
            [
                row
                for scenario, trial in self._with_ledger()
                for row in frames.event_rows(
                    (self.id, scenario, trial), self.ledger(scenario, trial)
                )
            ],
        )

    def ledger_path(self, scenario: str, trial: int = 0) -> Path:
        """Say where the ledger of one trial lies."""
        return self.folder / self.manifest.ledgers / ledger_name(scenario, trial)

    def ledger(self, scenario: str, trial: int = 0) -> tuple[Event, ...]:
        """Read the events of one trial.

        Raises
        ------
        UsageError
            If the run has no such trial.
        LedgerError
            If the ledger is missing or broken.
        """
        if (scenario, trial) not in self._planned:
            raise UsageError(self._no_such_trial(scenario, trial))
        return read_events(self.ledger_path(scenario, trial))

    def trace(self, scenario: str, trial: int = 0) -> Trace:
        """Read what one trial did; raises as :meth:`ledger` does."""
        return trace_of(self.ledger(scenario, trial))

    def record(self, scenario: str, trial: int = 0) -> TrialRecord:
        """Give the record of one trial.

        Raises
        ------
        UsageError
            If the run has no such trial.
        """
        for record in self.records:
            if (record.scenario, record.trial) == (scenario, trial):
                return record
        raise UsageError(self._no_such_trial(scenario, trial))

    def _no_such_trial(self, scenario: str, trial: int) -> str:
        import difflib

        planned = {entry.id: entry.n_trials for entry in self.manifest.plan}
        if scenario in planned:
            return f"{self.id}: {scenario!r} has trials 0 to {planned[scenario] - 1}, not {trial}"
        near = difflib.get_close_matches(scenario, planned, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{self.id}: no scenario {scenario!r} in this run{hint}"

    def _with_ledger(self) -> Iterator[tuple[str, int]]:
        """Give the finished trials; a trial that never started has no ledger to miss."""
        return (key for key in self.manifest.keys() if key in self._finished)  # noqa: SIM118 - not a mapping

    def _rows_of_traces(
        self, rows_of: Callable[[tuple[str, str, int], Trace], list[tuple[Any, ...]]]
    ) -> list[tuple[Any, ...]]:
        return [
            row
            for scenario, trial in self._with_ledger()
            for row in rows_of((self.id, scenario, trial), self.trace(scenario, trial))
        ]

    def __repr__(self) -> str:
        return f"<Run {self.id}: {summary(self.records)}>"

    def _repr_html_(self) -> str:
        from evalkit.markup import escape, table

        title = f"<p><strong>{escape(self.id)}</strong>: {escape(summary(self.records))}</p>"
        columns = ["scenario", "trial", "status", "reason", "n_tool_calls", "duration_s"]
        # Failed, incomplete, passed: the alphabet happens to know what matters first.
        worst_first = self.trials[columns].sort_values("status", kind="stable")
        return title + table(worst_first, limit=_SHOWN_ROWS)


def summary(records: Sequence[TrialRecord]) -> str:
    """Count the statuses in words."""
    counts = {
        status: sum(record.status == status for record in records)
        for status in ("passed", "failed", "incomplete")
    }
    return ", ".join(f"{n} {status}" for status, n in counts.items()) + f" of {len(records)} trials"


def _unfinished(planned: PlannedScenario, trial: int) -> TrialRecord:
    """Stand in for a planned trial that has no result; nothing leaves the plan silently."""
    return TrialRecord(
        scenario=planned.id,
        trial=trial,
        status="incomplete",
        reason_code="interrupted",
        reason="the run ended before this trial did; go on with: evalkit run --resume",
        tags=planned.tags,
        cluster=planned.cluster,
    )


class Runs:
    """Several runs, their frames stacked."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = tuple(runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @cached_property
    def trials(self) -> pd.DataFrame:
        """Every run's trials."""
        return self._stacked("trials")

    @cached_property
    def grades(self) -> pd.DataFrame:
        """Every run's grades."""
        return self._stacked("grades")

    @cached_property
    def tool_calls(self) -> pd.DataFrame:
        """Every run's tool calls."""
        return self._stacked("tool_calls")

    @cached_property
    def model_calls(self) -> pd.DataFrame:
        """Every run's model calls."""
        return self._stacked("model_calls")

    @cached_property
    def events(self) -> pd.DataFrame:
        """Every run's events."""
        return self._stacked("events")

    def _stacked(self, name: str) -> pd.DataFrame:
        import pandas as pd

        if not self.runs:
            return frames.frame(name, [])
        stacked: list[pd.DataFrame] = [getattr(run, name) for run in self.runs]
        return pd.concat(stacked, ignore_index=True)

    def __repr__(self) -> str:
        return f"<{len(self.runs)} runs: {', '.join(run.id for run in self.runs)}>"

    def _repr_html_(self) -> str:
        return "".join(run._repr_html_() for run in self.runs)


def load_run(folder: str | PathLike[str]) -> Run:
    """Load a run from its directory.

    Parameters
    ----------
    folder
        The run directory, or a folder of runs: then the latest in it.

    Returns
    -------
    Run
        With ``.trials``, ``.grades``, ``.tool_calls``, ``.model_calls`` and
        ``.events`` as DataFrames.

    Raises
    ------
    LedgerError
        If there is no run, or it is broken.
    """
    path = Path(folder)
    if (path / MANIFEST).exists() or not path.is_dir():
        return Run(path)
    inside = sorted(child for child in path.iterdir() if (child / MANIFEST).exists())
    if not inside:
        raise LedgerError(f"{path}: neither a run directory nor a folder of runs")
    return Run(inside[-1])


def load_runs(folders: Iterable[str | PathLike[str]] | str | PathLike[str]) -> Runs:
    """Load several runs and stack their frames.

    Parameters
    ----------
    folders
        Run directories; or one folder: a run, or a folder whose runs are all loaded.

    Raises
    ------
    LedgerError
        If one of them is no run, or the folder holds none.
    """
    if isinstance(folders, str | PathLike):
        return Runs(map(Run, _runs_in(Path(folders))))
    return Runs(map(Run, folders))


def _runs_in(folder: Path) -> list[Path]:
    if (folder / MANIFEST).exists():
        return [folder]
    found = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    if not found:
        raise LedgerError(f"{folder}: no runs in this folder")
    return found
