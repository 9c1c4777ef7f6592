"""Runs as JSON for scripts: what ``evalkit run --json`` prints.

====================  ==========================================================
``format``            version of this shape; keys may be added within a version
``status``            ``passed``, ``failed`` or ``incomplete``, of all runs
``exit_code``         what the command exits with
``digest``            over the digests of all runs
``verdict``           a gate's ``{verdict, reasons, exit_code, checks, ...}``, or null
``runs``              a list, each run as below
====================  ==========================================================

A run: ``run_id, folder, suite, suite_hash, lane, agent, agent_hash, seed, created_at,
finished_at, status, digest, n_passed, n_failed, n_incomplete, n_planned``;
``pass_rate``: the row of :func:`evalkit.stats.pass_rates` over its scenarios;
``scenarios``: such a row a scenario, with its ``status``, ``headline`` and ``reasons``;
``trials``: ``scenario, trial, status, reason_code, reason, duration_s, cost_usd`` and
``grades``, each with ``grader, status, value, reason``. What is not known is null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from evalkit.grade import STATUSES, worst
from evalkit.ledger import combined_digest
from evalkit.outcomes import outcomes
from evalkit.publishing.verdicts import GateVerdict, some_runs

if TYPE_CHECKING:
    from evalkit.results import Run, TrialRecord

FORMAT: Final = 1
_EXIT_CODES: Final = {"passed": 0, "failed": 1, "incomplete": 2}
_MANIFEST: Final = (
    "suite", "suite_hash", "lane", "agent", "agent_hash", "seed", "created_at", "finished_at",
)  # fmt: skip
_TRIAL: Final = (
    "scenario", "trial", "status", "reason_code", "reason", "duration_s", "cost_usd",
)  # fmt: skip


def runs_json(runs: Iterable[Run] | Run, *, verdict: GateVerdict | None = None) -> dict[str, Any]:
    """Give runs as plain data that JSON can hold.

    Parameters
    ----------
    runs
        One or more.
    verdict
        A gate's; it decides ``exit_code``.

    Returns
    -------
    dict
        With the keys that the module's docstring lists.

    Raises
    ------
    ValueError
        If there is no run.
    """
    found = some_runs(runs)
    status = worst(run.status for run in found)
    return {
        "format": FORMAT,
        "status": status,
        "exit_code": _EXIT_CODES[status] if verdict is None else verdict.exit_code,
        "digest": combined_digest(run.digest or "" for run in found),
        "verdict": verdict and _verdict(verdict),
        "runs": [_run(run) for run in found],
    }


def pass_rate(run: Run) -> dict[str, Any]:
    """Give the run's pass rate over its scenarios with its interval and what it leaves out."""
    from evalkit.stats import pass_rates

    return _row(pass_rates(run).iloc[0].to_dict())


def scenario_rates(run: Run) -> dict[str, dict[str, Any]]:
    """Give each scenario's pass rate with its interval, by id."""
    from evalkit.stats import pass_rates

    rows = pass_rates(run, by="scenario").to_dict("records")
    return {str(row["scenario"]): _row(row) for row in rows}


def _row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Give Python's own value; null for a number that is none."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _verdict(verdict: GateVerdict) -> dict[str, Any]:
    """Give all that a verdict tells of itself, and at least what decided."""
    decided = {
        "verdict": str(verdict.verdict),
        "reasons": [str(reason) for reason in verdict.reasons],
        "exit_code": verdict.exit_code,
    }
    tell = getattr(verdict, "to_json", None)
    return decided if tell is None else decided | tell()


def _run(run: Run) -> dict[str, Any]:
    rates = scenario_rates(run)
    told = {outcome.scenario: outcome for outcome in outcomes(run)}
    return {
        "run_id": run.id,
        "folder": str(run.folder),
        **{name: getattr(run.manifest, name) for name in _MANIFEST},
        "status": run.status,
        "digest": run.digest,
        **{f"n_{status}": sum(r.status == status for r in run.records) for status in STATUSES},
        "n_planned": len(run.records),
        "pass_rate": pass_rate(run),
        "scenarios": [
            {
                **rates[scenario],
                "status": outcome.status,
                "headline": outcome.headline,
                "reasons": outcome.reasons,
            }
            for scenario, outcome in told.items()
        ],
        "trials": [_trial(record) for record in run.records],
    }


def _trial(record: TrialRecord) -> dict[str, Any]:
    grades = [
        {
            "grader": grade.grader,
            "status": grade.status,
            "value": grade.value,
            "reason": grade.reason,
        }
        for grade in record.grades
    ]
    return {**{name: _plain(getattr(record, name)) for name in _TRIAL}, "grades": grades}
