"""A run on disk and as frames: its directory, its records, its DataFrames."""

from evalkit.results.directory import (
    RunWriter,
    ledger_name,
    new_run_id,
    read_manifest,
    read_records,
    write_manifest,
)
from evalkit.results.loaded import Run, Runs, load_run, load_runs, summary
from evalkit.results.records import Manifest, PlannedScenario, TrialRecord, trial_record

__all__ = [
    "Manifest",
    "PlannedScenario",
    "Run",
    "RunWriter",
    "Runs",
    "TrialRecord",
    "ledger_name",
    "load_run",
    "load_runs",
    "new_run_id",
    "read_manifest",
    "read_records",
    "summary",
    "trial_record",
    "write_manifest",
]
