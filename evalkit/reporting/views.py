"""What the notebooks show of one run: each function takes a summary, gives HTML.

Every text that a run carries passes through :mod:`evalkit.markup`, which
escapes it. The figures are those of :class:`~evalkit.reporting.summary.Summary`;
nothing is computed twice.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from evalkit.markup import Safe, escape, join, table, tag
from evalkit.plots import dot_and_whisker, interval, percent
from evalkit.reporting.elements import (
    View,
    card,
    count,
    note,
    pairs,
    scroll,
    section,
    style_sheet,
)
from evalkit.reporting.rendering import COMMAND
from evalkit.reporting.summary import Spread, Summary, summarise
from evalkit.reporting.trials import failures, not_measured

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "View",
    "context",
    "cost_and_latency",
    "failures",
    "key_numbers",
    "not_measured",
    "pass_rates_by",
    "provenance",
    "reliability",
    "summarise",
    "verdict",
]

_SYMBOLS: Final = {"passed": "✓", "failed": "✕", "incomplete": "◌"}


def _level(summary: Summary) -> str:
    """Name the intervals, such as ``95% interval``."""
    return f"{percent(summary.confidence)} interval"


def context(summary: Summary) -> View:
    """Say in one line what was run, when; in a notebook, bring the style too."""
    manifest = summary.run.manifest
    n_scenarios, n_trials = len(summary.by_scenario), int(summary.overall["n_planned"])
    each = summary.trials_per_scenario
    trials = count(each, "trial") if each * n_scenarios == n_trials else count(n_trials, "trial")
    joint = " × " if each * n_scenarios == n_trials else ", "
    when = str(manifest.created_at).replace("T", " ").replace("+00:00", " UTC")
    line = join(
        [
            join(["Suite ", tag("strong", manifest.suite)]),
            f"{count(n_scenarios, 'scenario')}{joint}{trials}",
            f"{manifest.lane} lane",
            f"run {when}" if when else f"run {manifest.run_id}",
        ],
        sep=", ",
    )
    return View(join([style_sheet(), tag("p", line, class_="ek-context")]))


def verdict(summary: Summary) -> View:
    """Show the run's status in a word, with the rate, its interval and what is missing."""
    status = summary.status
    headline = tag(
        "h2",
        tag("span", f"{_SYMBOLS[status]} ", aria_hidden="true"),
        _headline(summary),
        class_="ek-headline",
        id="ek-verdict",
    )
    parts = [headline, tag("p", _rate_sentence(summary)), *_missing_sentences(summary)]
    if remark := _remark(summary):
        parts.append(note("Note: ", remark, "."))
    return View(
        tag("section", *parts, class_=f"ek-verdict ek-{status}", aria_labelledby="ek-verdict")
    )


def _remark(summary: Summary) -> str:
    """Return what else must be known of the rate; the count of incomplete trials is said above."""
    row = summary.overall
    said = f"{row['n_incomplete']} of {row['n_planned']} trials incomplete"
    return "; ".join(part for part in str(row["note"]).split("; ") if part != said)


def _headline(summary: Summary) -> str:
    """Say the status, and how many trials made it so."""
    row = summary.overall
    planned = int(row["n_planned"])
    if summary.status == "failed":
        where = count(summary.n_failing_scenarios, "scenario")
        return f"Failed: {row['n_failed']:,} of {count(planned, 'trial')} failed, in {where}"
    if summary.status == "incomplete":
        return (
            f"Incomplete: {row['n_incomplete']:,} of {count(planned, 'trial')} could not be "
            "measured, none failed"
        )
    return f"Passed: all {count(planned, 'trial')} passed"


def _rate_sentence(summary: Summary) -> Safe:
    """Say the mean of the scenario rates, with its interval and n."""
    row = summary.overall
    if math.isnan(row["rate"]):
        return escape("There is no pass rate: nothing was measured.")
    n = int(row["n_scenarios"])
    what = f"Mean of {n:,} scenario rates: " if n != 1 else "Rate of the one scenario: "
    rate = tag("strong", percent(row["rate"], digits=1))
    bounds = interval(row["rate_low"], row["rate_high"], digits=1)
    known = not math.isnan(row["rate_low"])
    said = f"{_level(summary)} {bounds}, {row['interval']}" if known else "no interval"
    measured = int(row["n_passed"] + row["n_failed"])
    return join([what, rate, f" ({said}), from {count(measured, 'measured trial')}."])


def _missing_sentences(summary: Summary) -> Iterator[Safe]:
    """Say what was not measured and how far it could move the rate."""
    row = summary.overall
    if not row["n_incomplete"]:
        return
    lead = f"{row['n_incomplete']:,} of {count(int(row['n_planned']), 'trial')}"
    low, high = (percent(row[name], digits=1) for name in ("rate_if_failed", "rate_if_passed"))
    yield tag(
        "p",
        tag("strong", f"{lead} not measured"),
        f" and in no rate: had they all failed, the rate would be {low}; "
        f"had they all passed, {high}.",
    )


def key_numbers(summary: Summary) -> View:
    """Show the four or five figures that a reader looks for first."""
    row = summary.overall
    bounds = _bounds(summary, row["rate_low"], row["rate_high"])
    missing = f"{row['n_incomplete']:,} not measured"
    cards = [
        ("Pass rate", percent(row["rate"], digits=1), bounds),
        ("Failed trials", f"{row['n_failed']:,}", f"of {row['n_planned']:,} planned; {missing}"),
        *_reliability_card(summary),
        ("Cost", *_cost(summary.spread("cost_usd"))),
        ("Duration, p95", *_duration(summary.spread("duration_s"))),
    ]
    return View(tag("dl", *(card(*each) for each in cards), class_="ek-keys"))


def _bounds(summary: Summary, low: float, high: float) -> str:
    """Write an interval with its level, or that there is none."""
    if math.isnan(low) or math.isnan(high):
        return "no interval"
    return f"{interval(low, high, digits=1)} ({_level(summary)})"


def _reliability_card(summary: Summary) -> Iterator[tuple[str, str, str]]:
    """Give pass^k for the largest k that has an estimate; none with one trial each."""
    for row in summary.reliability.dropna(subset="estimate").tail(1).to_dict("records"):
        bounds = _bounds(summary, row["estimate_low"], row["estimate_high"])
        yield f"All {row['k']} trials pass", percent(row["estimate"], digits=1), bounds


def _cost(cost: Spread) -> tuple[str, str]:
    """Write the total cost if every trial's is known, and what one cost."""
    if cost.is_complete:
        return f"${cost.total:,.2f}", f"${cost.total / cost.n_trials:.4f} a trial"
    if not cost.n_known:
        return "unknown", "no trial reported it"
    known = f"{cost.n_known:,} of {cost.n_trials:,} trials: ${cost.total:,.2f}"
    return "unknown", f"known for {known}"


def _duration(duration: Spread) -> tuple[str, str]:
    """Write the 95th percentile of the durations and their median."""
    if not duration.n_known:
        return "unknown", "no trial reported it"
    part = "" if duration.is_complete else f"; {duration.n_known:,} trials known"
    return _seconds(duration.p95), f"median {_seconds(duration.median)}{part}"


def _seconds(seconds: float) -> str:
    """Write a duration in the unit that suits it."""
    if seconds < 0.0995:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"


def pass_rates_by(
    summary: Summary, by: str, *, limit: int | None = None, minimum: int = 1
) -> View | None:
    """Show pass rates as dots and whiskers on one scale, the lowest first.

    Parameters
    ----------
    summary
        From :func:`summarise`.
    by
        ``scenario``, ``tag``, ``grader`` or a column of the trials.
    limit
        Show so many rows and say how many are left out.
    minimum
        Show nothing where there are fewer rows than that.
    """
    rates = summary.by_scenario if by == "scenario" else summary.rates(by)
    if len(rates) < minimum or (by == "tag" and set(rates["tag"]) == {"(no tag)"}):
        return None
    shown = rates if limit is None else rates.head(limit)
    picture = dot_and_whisker(
        shown, by=by, reference=float(summary.overall["rate"]), confidence=summary.confidence
    )
    return section(f"by-{by}", f"Pass rate by {by}", picture.html, _about(rates, len(shown)))


def _about(rates: pd.DataFrame, n_shown: int) -> Safe:
    """Say how rows are sorted, which intervals they have and what is left out."""
    methods = [m for m in dict.fromkeys(rates["interval"]) if m != "none"]
    said = f" Intervals: {', '.join(methods)}." if methods else " No intervals."
    more = len(rates) - n_shown
    left = f" {count(more, 'row')} with higher rates not shown." if more > 0 else ""
    return note(f"Lowest rate first.{said}{left}")


def reliability(summary: Summary) -> View | None:
    """Show how often all of k trials pass; nothing with one trial a scenario."""
    if not len(summary.reliability):
        return None
    rows = summary.reliability.rename(
        columns={"estimate": "rate", "estimate_low": "rate_low", "estimate_high": "rate_high"}
    )
    rows["k"] = [f"{k} of {k} trials pass" for k in rows["k"]]
    picture = dot_and_whisker(rows, by="k", heading="pass^k", confidence=summary.confidence)
    notes = [note for note in dict.fromkeys(rows["note"]) if note]
    said = f" Note: {'; '.join(notes)}." if notes else ""
    return section(
        "reliability",
        "Does it succeed every time?",
        picture.html,
        note(f"Unbiased estimate for each scenario, averaged over scenarios.{said}"),
    )


def cost_and_latency(summary: Summary) -> View:
    """Show cost, tokens and duration, with the number of trials that they are known for."""
    names = {
        "cost_usd": "cost, USD",
        "input_tokens": "input tokens",
        "output_tokens": "output tokens",
        "duration_s": "duration, seconds",
    }
    rows = [
        _quantity(name, summary.spread(column), adds_up=column != "duration_s")
        for column, name in names.items()
    ]
    columns = ["quantity", "trials known", "total", "median", "p95", "longest"]
    html = scroll(table(rows, columns=columns, numbers=columns[1:]), "cost and latency")
    remark = note("A total is given where every trial's value is known; unknown is never zero.")
    return section("cost", "Cost and latency", html, remark)


def _quantity(name: str, spread: Spread, *, adds_up: bool) -> dict[str, object]:
    """Describe one quantity in a row."""
    unknown = tag("span", "unknown", class_="unknown")
    numbers = {"median": spread.median, "p95": spread.p95, "longest": spread.longest}
    shown = {key: f"{value:,.4g}" if spread.n_known else unknown for key, value in numbers.items()}
    total = f"{spread.total:,.10g}" if spread.is_complete and adds_up else unknown
    return {
        "quantity": name,
        "trials known": f"{spread.n_known:,} of {spread.n_trials:,}",
        "total": total if adds_up else "",
        **shown,
    }


def provenance(summary: Summary) -> View:
    """Show what is needed to trace and rebuild the report."""
    m = summary.run.manifest
    facts: list[tuple[str, object]] = [
        ("run", m.run_id),
        ("suite", f"{m.suite}, hash {m.suite_hash or 'unknown'}"),
        ("agent", m.agent or "unknown"),
        ("lane", m.lane),
        ("seed", m.seed),
        ("created", m.created_at or "unknown"),
        ("models", ", ".join(m.models) or "unknown"),
        ("git", git_words(m.git)),
        ("versions", ", ".join(f"{k} {v}" for k, v in m.versions.items()) or "unknown"),
        ("digest", m.digest or "none, the run is not finished"),
        ("source", ", ".join(f"{k} {v}" for k, v in m.source.items())),
        ("regraded from", m.parent),
        ("rebuild", os.environ.get(COMMAND) or f"evalkit report pass_rates --run {m.run_id}"),
    ]
    shown = [(term, text) for term, text in facts if text != ""]
    title = tag("h2", "Where this comes from", id="ek-provenance")
    html = tag("section", title, pairs(shown), class_="ek-source", aria_labelledby="ek-provenance")
    return View(html)


def git_words(git: Mapping[str, Any]) -> str:
    """Write the state of the repository in which the run was made."""
    words = (
        (key if value else f"not {key}") if isinstance(value, bool) else f"{key} {value}"
        for key, value in git.items()
    )
    return ", ".join(words) or "unknown"
