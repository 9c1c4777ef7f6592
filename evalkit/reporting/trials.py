"""The trials that did not pass, one by one, with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from evalkit.grade import REASON_CODES
from evalkit.markup import Safe, join, table, tag
from evalkit.reporting.elements import View, count, note, pairs, scroll, section
from evalkit.reporting.summary import Summary

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Reasons",
    "failing_reasons",
    "failures",
    "first_line",
    "fold_failures",
    "left_out",
    "not_measured",
]

Reasons: TypeAlias = dict[tuple[str, int], list[tuple[str, str]]]
"""By scenario and trial: each failing grader with its reason."""


def failures(summary: Summary, *, limit: int = 50) -> View | None:
    """Show the failed trials with the graders' reasons, worst scenario first.

    Parameters
    ----------
    summary
        From :func:`~evalkit.reporting.summary.summarise`.
    limit
        Show whole scenarios until so many failed trials are shown, and say how
        many are left out.
    """
    trials = _sorted_trials(summary, "failed")
    if not trials:
        return None
    reasons = failing_reasons(summary.run.grades)
    planned = dict(summary.by_scenario[["scenario", "n_planned"]].to_numpy().tolist())
    folds: list[Safe] = []
    n_shown = 0
    for scenario, group in groupby(trials, key=lambda trial: str(trial["scenario"])):
        if n_shown >= limit:
            break
        failed = list(group)
        chip = f"{len(failed)} of {planned[scenario]} failed"
        folds.append(fold_failures(failed, chip, reasons=reasons, is_open=not folds))
        n_shown += len(failed)
    lead = tag("p", _lead(summary, len(trials)))
    rest = left_out(len(trials) - n_shown, "failed")
    return section("failures", "What failed", lead, *folds, rest)


def _lead(summary: Summary, n: int) -> str:
    """Say how many trials of how many scenarios failed."""
    where = count(summary.n_failing_scenarios, "scenario")
    return f"{count(n, 'trial')} failed, in {where}. Lowest rate first."


def _sorted_trials(summary: Summary, status: str) -> list[dict[str, Any]]:
    """Return the trials of a status, those of the worst scenario first."""
    trials = summary.run.trials
    place = {name: i for i, name in enumerate(summary.by_scenario["scenario"])}
    found: list[dict[str, Any]] = trials[trials["status"] == status].to_dict("records")
    return sorted(found, key=lambda t: (place.get(t["scenario"], -1), t["trial"]))


def failing_reasons(grades: pd.DataFrame) -> Reasons:
    """Collect what the failing graders said of each trial."""
    found: Reasons = {}
    failing = grades[grades["passed"].eq(other=False).fillna(value=False)]
    for row in failing.to_dict("records"):
        key = (str(row["scenario"]), int(row["trial"]))
        found.setdefault(key, []).append((str(row["grader"]), str(row["reason"])))
    return found


def fold_failures(
    trials: Sequence[Mapping[str, Any]], chip: str, *, reasons: Reasons, is_open: bool = False
) -> Safe:
    """Fold a scenario's failures: a summary line, and each reason with its trials.

    Parameters
    ----------
    trials
        Rows of the trials frame: the failed trials of one scenario, at least one.
    chip
        What the summary line says first.
    reasons
        From :func:`failing_reasons`.
    is_open
        Whether the evidence is unfolded.
    """
    said: dict[tuple[str, str], list[int]] = {}
    for trial in trials:
        for reason in _said_of(trial, reasons):
            said.setdefault(reason, []).append(int(trial["trial"]))
    line = tag(
        "summary",
        tag("span", chip, class_="ek-chip ek-failed"),
        tag("code", first_line(trials[0]["scenario"], limit=120), class_="ek-id"),
        tag("span", first_line(trials[0]["reason"]), class_="ek-why"),
    )
    evidence = pairs((_where(*key, numbers), key[1]) for key, numbers in said.items())
    return tag("details", line, evidence, class_="ek-trial", open=is_open)


def _said_of(trial: Mapping[str, Any], reasons: Reasons) -> list[tuple[str, str]]:
    """Return who found what wrong with a trial; its own reason if no grader did."""
    said = reasons.get((str(trial["scenario"]), int(trial["trial"])), [])
    code = str(trial["reason_code"])
    if said and code == "grader_failed":
        return said
    return [(code, str(trial["reason"] or REASON_CODES.get(code, ""))), *said]


def _where(grader: str, _reason: str, trials: Sequence[int]) -> Safe:
    """Name the grader, and the trials of which it said the same."""
    word = "trial" if len(trials) == 1 else "trials"
    numbers = ", ".join(map(str, trials))
    return join([tag("strong", grader), tag("span", f"{word} {numbers}")], sep=" ")


def first_line(text: object, *, limit: int = 300) -> str:
    """Return the first line of a text, not longer than a summary line should be."""
    line = str(text).strip().partition("\n")[0]
    return line if len(line) <= limit else f"{line[:limit]}…"


def not_measured(summary: Summary, *, limit: int = 50) -> View | None:
    """Show each trial that could not be measured, with the reason.

    Parameters
    ----------
    summary
        From :func:`~evalkit.reporting.summary.summarise`.
    limit
        Show so many trials and say how many are left out.
    """
    trials = _sorted_trials(summary, "incomplete")
    if not trials:
        return None
    shown = trials[: max(limit, 0)]
    rows = table(shown, columns=["scenario", "trial", "reason_code", "reason"])
    return section(
        "not-measured",
        "What was not measured",
        scroll(rows, "trials that were not measured"),
        left_out(len(trials) - len(shown), "incomplete"),
    )


def left_out(n: int, status: str) -> Safe:
    """Say how many trials are not shown and where they are."""
    if n <= 0:
        return Safe()
    code = tag("code", f"run.trials.query(\"status == '{status}'\")")
    return note(f"{count(n, 'more trial')} not shown; all are in ", code, ".")
