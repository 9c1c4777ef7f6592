"""A step summary for GitHub: verdict first, failures next, then rates and provenance.

It is written as HTML blocks of one line each, as GitHub's own toolkit writes its
tables: inside of them nothing is Markdown, so that escaping HTML is all that an
agent's text needs. What GitHub would still turn into links afterwards (mentions,
issues, addresses) stands in ``code``, where it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from evalkit.grade import worst
from evalkit.markup import Safe, join, tag
from evalkit.outcomes import Outcome, outcomes
from evalkit.publishing.figures import pass_rate, scenario_rates
from evalkit.publishing.verdicts import GateVerdict, some_runs
from evalkit.results import summary
from evalkit.terminal import one_line, percent

if TYPE_CHECKING:
    from evalkit.results import Run

MAX_BYTES: Final = 1024 * 1024
"""What GitHub takes as the summary of a step; of more it shows nothing."""
_LIMITS: Final = (100, 25, 5, 0)
"""Scenarios that are shown: as many as there is room for."""
_REASONS: Final = 3_000
_ICONS: Final = {"passed": "✅", "failed": "❌", "incomplete": "⚠️"}
_LINKED: Final = re.compile(r"[@#]|://|www\.|\b[0-9a-f]{7,}\b", re.IGNORECASE)


def github_summary(
    runs: Iterable[Run] | Run,
    *,
    verdict: GateVerdict | None = None,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Sum runs up for ``$GITHUB_STEP_SUMMARY``.

    Parameters
    ----------
    runs
        One or more.
    verdict
        A gate's; it comes first.
    max_bytes
        Room that there is, in bytes of UTF-8: where all does not fit, fewer
        scenarios are shown, and the rest is counted.

    Returns
    -------
    str
        GitHub Markdown in which no text of an agent is markup.

    Raises
    ------
    ValueError
        If there is no run.
    """
    found = some_runs(runs)
    for limit in _LIMITS:
        text = "\n\n".join(_blocks(found, verdict, limit=limit))
        if len(text.encode("utf-8", "backslashreplace")) < max_bytes:
            return f"{text}\n"
    return f"{_line(tag('h2', _headline(found, verdict)))}\n"


def _blocks(runs: Sequence[Run], verdict: GateVerdict | None, *, limit: int) -> list[str]:
    blocks = [tag("h2", _headline(runs, verdict))]
    if verdict is not None and verdict.reasons:
        blocks.append(tag("ul", *(tag("li", _said(reason)) for reason in verdict.reasons)))
    blocks.append(tag("p", _counts(runs)))
    blocks += _failures(runs, limit=limit)
    blocks.append(_rates(runs))
    blocks += [_by_scenario(run, limit=limit) for run in runs if limit and _is_repeated(run)]
    blocks.append(_provenance(runs))
    return [_line(block) for block in blocks]


def _line(block: Safe) -> str:
    """Keep an HTML block on one line: a blank line would end it, and Markdown begin."""
    return str(block).replace("\n", "&#10;")


def _headline(runs: Sequence[Run], verdict: GateVerdict | None) -> str:
    if verdict is not None:
        icon = "❌" if verdict.exit_code else "✅" if verdict.verdict == "PASS" else "⚠️"
        return f"{icon} evalkit gate: {one_line(verdict.verdict)}"
    status = worst(run.status for run in runs)
    return f"{_ICONS[status]} evalkit: {status.upper()}"


def _counts(runs: Sequence[Run]) -> str:
    """Count scenarios, then trials."""
    found = [outcome.status for run in runs for outcome in outcomes(run)]
    n_failed, n_incomplete = found.count("failed"), found.count("incomplete")
    told = f"{n_failed} of {len(found)} scenarios failed"
    if n_incomplete:
        told = f"{told}, {n_incomplete} could not be measured"
    return f"{told} ({summary([record for run in runs for record in run.records])})."


def _failures(runs: Sequence[Run], *, limit: int) -> list[Safe]:
    """Show what is not passed, failed before incomplete."""
    pairs = [(run, outcome) for run in runs for outcome in outcomes(run)]
    failing = [pair for pair in pairs if pair[1].status != "passed"]
    failing.sort(key=lambda pair: pair[1].status != "failed")
    if not failing:
        return []
    rows = [_failure(run, outcome) for run, outcome in failing[:limit]]
    left_out = len(failing) - len(rows)
    more = [tag("p", f"... and {left_out:,} more scenarios that are not passed.")]
    table = [_table(("scenario", "status", "passed", "why"), rows)] if rows else []
    return [tag("h3", "What is not passed"), *table, *(more if left_out else [])]


def _failure(run: Run, outcome: Outcome) -> list[object]:
    name = join((_code(outcome.scenario), tag("br"), tag("sub", _said(run.manifest.suite))))
    status = f"{_ICONS[outcome.status]} {outcome.status}"
    why = _code(one_line(outcome.headline, limit=300))
    reasons = outcome.reasons
    if reasons.strip() != outcome.headline:
        if len(reasons) > _REASONS:
            reasons = f"{reasons[:_REASONS]} ... and {len(reasons) - _REASONS:,} more characters"
        fold = tag("details", tag("summary", "all reasons"), tag("pre", tag("code", reasons)))
        why = join((why, fold))
    return [name, status, f"{outcome.count('passed')}/{len(outcome.records)}", why]


def _rates(runs: Sequence[Run]) -> Safe:
    """Show each run's pass rate, its interval, and what it leaves out."""
    head = ("suite", "lane", "status", "passed", "failed", "incomplete", "planned", "pass rate")
    rows = []
    notes = []
    for run in runs:
        row = pass_rate(run)
        counts = [row[f"n_{name}"] for name in ("passed", "failed", "incomplete", "planned")]
        name, lane = _code(run.manifest.suite), _said(run.manifest.lane)
        rows.append([name, lane, run.status, *counts, _rate(row)])
        if row["note"]:
            notes.append(tag("li", _code(run.manifest.suite), ": ", _said(row["note"])))
    return join((_table(head, rows), tag("ul", *notes) if notes else Safe()))


def _rate(row: dict[str, Any]) -> str:
    """Say a rate with its interval, and its bounds where trials are incomplete."""
    told = percent(row["rate"])
    if row["rate_low"] is not None:
        told = f"{told} (95% {percent(row['rate_low'])} to {percent(row['rate_high'])})"
    if row["n_incomplete"]:
        low, high = percent(row["rate_if_failed"]), percent(row["rate_if_passed"])
        told = f"{told}; {low} to {high} with the incomplete as failed or passed"
    return told


def _is_repeated(run: Run) -> bool:
    return any(planned.n_trials > 1 for planned in run.manifest.plan)


def _by_scenario(run: Run, *, limit: int) -> Safe:
    """Fold the rates by scenario of a run with several trials, lowest first."""
    rates = sorted(
        scenario_rates(run).items(),
        key=lambda each: -1.0 if each[1]["rate"] is None else each[1]["rate"],
    )
    rows = [
        [_code(scenario), f"{row['n_passed']}/{row['n_planned']}", _rate(row)]
        for scenario, row in rates[:limit]
    ]
    title = join((_code(run.manifest.suite), " by scenario, lowest rate first"))
    more = f"... and {len(rates) - limit:,} more, none lower" if len(rates) > limit else ""
    table = _table(("scenario", "passed", "pass rate"), rows)
    return tag("details", tag("summary", title), table, tag("p", more) if more else Safe())


def _provenance(runs: Sequence[Run]) -> Safe:
    """Fold what a figure is worth nothing without."""
    head = ("run", "agent", "seed", "suite hash", "network barrier", "digest")
    rows = [
        [
            _code(run.id),
            _code(run.manifest.agent or "–"),
            run.manifest.seed,
            _code(run.manifest.suite_hash[:12] or "–"),
            run.manifest.barrier or "–",
            _code(run.digest or "none: trials are missing"),
        ]
        for run in runs
    ]
    return tag("details", tag("summary", "Where this comes from"), _table(head, rows))


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Safe:
    lines = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    return tag("table", tag("tr", *(tag("th", name) for name in head)), *lines)


def _code(text: object) -> Safe:
    """Show a text of somebody else's on one line, where GitHub links nothing."""
    return tag("code", one_line(text, limit=300))


def _said(text: object) -> Safe | str:
    """Show a sentence; as code where GitHub could turn a part of it into a link."""
    line = one_line(text, limit=600)
    return tag("code", line) if _LINKED.search(line) else line
