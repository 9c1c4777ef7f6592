"""Scenarios: newly failing, newly passing, side by side, and those on one side only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalkit.markup import Safe, join, table, tag
from evalkit.plots import pair_of_rates, percent, points
from evalkit.reporting.comparing.comparison import Comparison
from evalkit.reporting.elements import View, count, note, scroll, section
from evalkit.reporting.trials import failing_reasons, fold_failures

if TYPE_CHECKING:
    import pandas as pd

_CHANGES = ("removed", "changed", "added")


def newly_failing(comparison: Comparison, *, limit: int = 50) -> View | None:
    """Show the scenarios that passed most of their trials before and do not now, with reasons.

    Parameters
    ----------
    comparison
        From :func:`~evalkit.reporting.comparing.compare_with`.
    limit
        Show so many scenarios and say how many are left out.
    """
    rows = _flipped(comparison, "failing")
    if not rows:
        return None
    shown = rows[: max(limit, 0)]
    trials, reasons = _failed_trials(comparison), failing_reasons(comparison.run.grades)
    folds = [
        fold_failures(trials[row["scenario"]], _chip(row), reasons=reasons, is_open=row is rows[0])
        for row in shown
    ]
    lead = tag(
        "p", f"{count(len(rows), 'scenario')} passed most of their trials before, and do not now."
    )
    rest = _left_out(len(rows) - len(shown))
    return section("newly-failing", "Newly failing", lead, *folds, rest, *_few(comparison))


def _flipped(comparison: Comparison, newly: str) -> list[dict[str, Any]]:
    """Return the scenarios that are newly failing or passing, those that lost most first."""
    found = comparison.compared.loc[comparison.compared["newly"] == newly]
    return [{str(name): value for name, value in r.items()} for r in found.to_dict("records")]


def _failed_trials(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    """Return the failed trials of the run by scenario."""
    found: dict[str, list[dict[str, Any]]] = {}
    failed = comparison.run.trials.loc[comparison.run.trials["status"] == "failed"]
    for trial in failed.to_dict("records"):
        found.setdefault(str(trial["scenario"]), []).append(
            {str(name): value for name, value in trial.items()}
        )
    return found


def _chip(row: Mapping[str, Any]) -> str:
    """Say how many trials passed before and now."""
    return f"was {_passed(row, '_baseline')}, now {_passed(row)}"


def _passed(row: Mapping[str, Any], side: str = "") -> str:
    """Say how many trials of a scenario passed on a side."""
    n = int(row[f"n_measured{side}"])
    return f"{round(row[f'rate{side}'] * n):,} of {n:,}" if n else "not measured"


def _few(comparison: Comparison) -> list[Safe]:
    """Say where so few trials cannot show that a scenario changed."""
    if comparison.is_scripted or comparison.overall["k_low"] >= 5:
        return []
    return [note("Below five trials a side, no single scenario can be told from chance.")]


def _left_out(n: int) -> Safe:
    """Say how many scenarios are not shown."""
    return note(f"{count(n, 'more scenario')} not shown.") if n > 0 else Safe()


def newly_passing(comparison: Comparison, *, limit: int = 50) -> View | None:
    """List the scenarios that pass most of their trials now and did not before."""
    rows = list(reversed(_flipped(comparison, "passing")))
    if not rows:
        return None
    cells = [
        {"scenario": row["scenario"], "was": _passed(row, "_baseline"), "now": _passed(row)}
        for row in rows
    ]
    html = table(cells, numbers=("was", "now"), limit=limit)
    return section("newly-passing", "Newly passing", scroll(html, "newly passing"))


def rates_side_by_side(comparison: Comparison, *, limit: int = 100) -> View | None:
    """Draw both rates of each scenario that differs, the largest loss first.

    Parameters
    ----------
    comparison
        From :func:`~evalkit.reporting.comparing.compare_with`.
    limit
        Show so many scenarios and say how many are left out.
    """
    compared = comparison.compared
    if not len(compared):
        return None
    differ = compared.loc[compared["difference"] != 0]
    lead = tag("p", _counted(compared))
    if not len(differ):
        return section("by-scenario", "By scenario", lead)
    rows = [_row(record) for record in differ.head(max(limit, 0)).to_dict("records")]
    columns = {
        "scenario": "scenario",
        "before": "baseline" if comparison.is_pinned else "other run",
        "now": "this run",
        "points": "points",
        "picture": _legend(comparison),
    }
    html = table(
        rows, columns=columns, numbers=("before", "now", "points"), class_="ek-rates ek-beside"
    )
    rest = _left_out(len(differ) - len(rows))
    box = scroll(html, "rates by scenario")
    return section("by-scenario", "By scenario", lead, box, rest)


def _counted(compared: pd.DataFrame) -> str:
    """Count the scenarios with a lower, a higher and the same rate."""
    lower, higher = (compared["difference"] < 0).sum(), (compared["difference"] > 0).sum()
    same = len(compared) - lower - higher
    return (
        f"Of {count(len(compared), 'compared scenario')}, {lower:,} have a lower rate than before, "
        f"{higher:,} a higher one, {same:,} the same. Those that differ, the largest loss first:"
        if lower + higher
        else f"All {count(len(compared), 'compared scenario')} have the same rate as before."
    )


def _row(record: Mapping[Any, Any]) -> dict[str, object]:
    """Turn a scenario into the cells of its row."""
    rate, before = float(record["rate"]), float(record["rate_baseline"])
    return {
        "scenario": record["scenario"],
        "before": _rate_cell(before, _passed(record, "_baseline")),
        "now": _rate_cell(rate, _passed(record)),
        "points": points(float(record["difference"])),
        "picture": pair_of_rates(rate, before, label=str(record["scenario"])[:120]),
    }


def _rate_cell(rate: float, passed: str) -> Safe:
    """Write a rate with the trials behind it."""
    return join([tag("span", percent(rate)), tag("span", passed, class_="ek-aside")], sep=" ")


def _legend(comparison: Comparison) -> Safe:
    """State the scale above the pictures, and what ring and dot mean."""
    ring = "baseline" if comparison.is_pinned else "other run"
    ends = join(tag("span", share) for share in ("0%", "50%", "100%"))
    return join(
        [
            tag("span", f"○ {ring}, ● this run", class_="ek-scale-text"),
            tag("span", ends, class_="ek-scale", aria_hidden="true"),
        ]
    )


def not_compared(comparison: Comparison, *, limit: int = 50) -> View | None:
    """List the scenarios that were removed, changed or added, with the rate they have.

    Parameters
    ----------
    comparison
        From :func:`~evalkit.reporting.comparing.compare_with`.
    limit
        Show so many scenarios and say how many are left out.
    """
    rows = comparison.scenarios.loc[comparison.scenarios["change"].isin(_CHANGES)]
    if not len(rows):
        return None
    records = sorted(rows.to_dict("records"), key=_by_suspicion)
    cells = [
        {
            "scenario": record["scenario"],
            "change": record["change"],
            "before": _side(record, "_baseline"),
            "now": _side(record),
        }
        for record in records
    ]
    columns = {
        "scenario": "scenario",
        "change": "what",
        "before": "passed in baseline" if comparison.is_pinned else "passed in other run",
        "now": "passed in this run",
    }
    html = table(cells, columns=columns, numbers=("before", "now"), limit=limit)
    remark = note(
        "In no difference above. Changed: same id, other content. Without a scenario that had "
        "failed, the comparison flatters the run."
    )
    box = scroll(html, "scenarios that are not compared")
    return section("not-compared", "Added, removed, changed", box, remark)


def _by_suspicion(record: Mapping[Any, Any]) -> tuple[int, float]:
    """Sort what was removed first, and within it what had failed."""
    rate = float(record["rate_baseline"])
    return _CHANGES.index(str(record["change"])), 2.0 if math.isnan(rate) else rate


def _side(record: Mapping[Any, Any], side: str = "") -> object:
    """Say how many trials passed on a side; a dash where it does not have the scenario."""
    planned = record[f"n_measured{side}"] + record[f"n_incomplete{side}"]
    return _passed(record, side) if planned else tag("span", "not there", class_="unknown")
