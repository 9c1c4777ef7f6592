"""A run in a few lines of text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from evalkit.grade import Status, worst
from evalkit.results import TrialRecord, summary
from evalkit.terminal import columns, one_line, percent, printable

if TYPE_CHECKING:
    from evalkit.results import Run

MAX_SCENARIOS: Final = 60
"""Scenarios that a terminal is shown; of more, the worst."""


def run_text(run: Run) -> str:
    """Say how a run went: a line a scenario, the rate, where it lies."""
    lines = [
        printable(
            f"{run.manifest.suite}  ({run.manifest.lane} lane, agent {run.manifest.agent or '-'})"
        ),
        "",
        _scenario_table(run),
        "",
        f"{run.status.upper()}: {summary(run.records)}",
        rate_line(run),
        f"run     {printable(run.folder)}",
        f"digest  {run.digest or 'none: trials are missing'}",
    ]
    return "\n".join(line for line in lines if line is not None)


def _scenario_table(run: Run) -> str:
    by_scenario: dict[str, list[TrialRecord]] = {}
    for record in run.records:
        by_scenario.setdefault(record.scenario, []).append(record)
    rows = [
        (
            scenario,
            worst(record.status for record in records),
            f"{sum(record.status == 'passed' for record in records)}/{len(records)}",
            _first_reason(records),
        )
        for scenario, records in by_scenario.items()
    ]
    shown = rows if len(rows) <= MAX_SCENARIOS else _worst_first(rows)[:MAX_SCENARIOS]
    table = columns(shown, head=("scenario", "status", "passed", "reason"), right="llr")
    left_out = len(rows) - len(shown)
    return f"{table}\n... and {left_out} more scenarios, none worse" if left_out else table


def _worst_first(rows: list[tuple[str, Status, str, str]]) -> list[tuple[str, Status, str, str]]:
    return sorted(rows, key=lambda row: ("failed", "incomplete", "passed").index(row[1]))


def _first_reason(records: Sequence[TrialRecord]) -> str:
    """Give the first line of the first reason; a traceback is for ``evalkit show``."""
    decisive = worst(record.status for record in records)
    reason = next(record.reason for record in records if record.status == decisive)
    return one_line(reason.strip().partition("\n")[0])


def rate_line(run: Run) -> str:
    """Say the pass rate with its interval, and what it leaves out."""
    from evalkit.stats import pass_rates

    row = pass_rates(run).iloc[0]
    interval = (
        f", 95% interval {percent(row.rate_low)} to {percent(row.rate_high)} ({row.interval})"
        if row.rate_low == row.rate_low
        else ""
    )
    note = f"; {row.note}" if row.note else ""
    over = "1 scenario" if row.n_scenarios == 1 else f"{row.n_scenarios} scenarios"
    return f"pass rate {percent(row.rate)} over {over}{interval}{printable(note)}"
