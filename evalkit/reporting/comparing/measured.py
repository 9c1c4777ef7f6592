"""What was not measured; what trials cost, how long they took, how often they called."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evalkit.baselines import Baseline
from evalkit.markup import Safe, table, tag
from evalkit.reporting.comparing.comparison import Comparison
from evalkit.reporting.elements import View, count, note, scroll, section
from evalkit.reporting.sides import Side
from evalkit.reporting.trials import left_out

if TYPE_CHECKING:
    import pandas as pd

_NAMED: Final = 10
_QUANTITIES: Final[Mapping[str, str]] = {
    "cost_usd": "cost, USD",
    "duration_s": "duration, seconds",
    "n_tool_calls": "tool calls",
    "n_model_calls": "model calls",
    "n_turns": "turns",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
}


def not_measured(comparison: Comparison, *, limit: int = 50) -> View | None:
    """Show what has no result on either side, with the reasons of the run's trials.

    Parameters
    ----------
    comparison
        From :func:`~evalkit.reporting.comparing.compare_with`.
    limit
        Show so many trials and say how many are left out.
    """
    trials = comparison.run.trials
    incomplete = trials.loc[trials["status"] == "incomplete"]
    lines = [tag("p", line) for line in _gaps(comparison, len(incomplete))]
    if not lines:
        return None
    shown = incomplete.head(max(limit, 0))
    rows = table(shown, columns=["scenario", "trial", "reason_code", "reason"])
    box = scroll(rows, "trials that were not measured") if len(shown) else Safe()
    rest = left_out(len(incomplete) - max(limit, 0), "incomplete")
    return section("not-measured", "What was not measured", *lines, box, rest)


def _gaps(comparison: Comparison, n_incomplete: int) -> Iterator[str]:
    """Say what is missing on each side."""
    scenarios = comparison.scenarios
    if n_incomplete:
        planned = count(comparison.run.manifest.n_planned, "planned trial")
        yield f"In this run, {n_incomplete:,} of {planned} have no result; they are in no rate."
    before = int(scenarios["n_incomplete_baseline"].sum())
    if before:
        total = count(len(comparison.baseline.trials), "trial")
        yield f"In {comparison.other}, {before:,} of {total} have no result."
    unrated = list(comparison.unrated["scenario"].astype(str))
    if unrated:
        more = f" and {len(unrated) - _NAMED:,} more" if len(unrated) > _NAMED else ""
        names = ", ".join(name[:120] for name in unrated[:_NAMED])
        what = count(len(unrated), "scenario")
        yield f"Without a rate on a side, and so not compared: {what} ({names}{more})."


class Mean(NamedTuple):
    """A mean over the trials for which a quantity is known."""

    value: float
    n_known: int
    n_trials: int

    @property
    def is_known(self) -> bool:
        """Whether it is known for any trial."""
        return self.n_known > 0


def cost_and_calls(comparison: Comparison) -> View | None:
    """Show what a trial costs and does on both sides, where both are known.

    Means over the trials of the paired scenarios. A pinned baseline keeps the
    cost of all its trials only; it is compared where all its scenarios are.
    """
    paired = comparison.scenarios.loc[comparison.scenarios["change"] == "same", "scenario"]
    if not len(paired):
        return None
    means = {
        name: (_mean(comparison.baseline, name, paired), _mean(comparison.run, name, paired))
        for name in _QUANTITIES
    }
    known = {name: pair for name, pair in means.items() if all(mean.is_known for mean in pair)}
    unknown = [_QUANTITIES[name] for name in means if name not in known]
    parts = [_known(known, comparison)] if known else []
    if unknown:
        kept = " A baseline keeps no times and no counts." if comparison.is_pinned else ""
        parts.append(note(f"Not known on both sides: {'; '.join(unknown)}.{kept}"))
    return section("cost", "Cost, time and calls", *parts)


def _known(means: Mapping[str, tuple[Mean, Mean]], comparison: Comparison) -> Safe:
    """List the quantities that are known on both sides."""
    rows = [_quantity(_QUANTITIES[name], *pair) for name, pair in means.items()]
    columns = {
        "quantity": "mean a trial",
        "before": "baseline" if comparison.is_pinned else "other run",
        "now": "this run",
        "change": "change",
    }
    html = table(rows, columns=columns, numbers=("before", "now", "change"))
    remark = note("Over the trials of the paired scenarios. They describe; there is no interval.")
    return tag("div", scroll(html, "cost, time and calls"), remark)


def _quantity(name: str, before: Mean, now: Mean) -> dict[str, object]:
    """Describe one quantity in a row."""
    return {
        "quantity": name,
        "before": _written(before),
        "now": _written(now),
        "change": _change(before.value, now.value),
    }


def _written(mean: Mean) -> str:
    """Write a mean, with the number of trials where some are unknown."""
    part = (
        "" if mean.n_known == mean.n_trials else f" ({mean.n_known:,} of {mean.n_trials:,} known)"
    )
    return f"{mean.value:,.4g}{part}"


def _change(before: float, now: float) -> str:
    """Write a change in percent of what was before."""
    if before == now:
        return "none"
    if not before:
        return "from zero"
    share = 100 * (now - before) / before
    return "under 1%" if abs(share) < 0.5 else f"{share:+,.0f}%".replace("-", "−")


def _mean(side: Side, name: str, paired: pd.Series[Any]) -> Mean:
    """Average a quantity over the trials of the paired scenarios."""
    trials = side.trials.loc[side.trials["scenario"].isin(paired)]
    if isinstance(side, Baseline):
        whole = name == "cost_usd" and side.cost_usd is not None and len(trials) == len(side.trials)
        if not whole:
            return Mean(math.nan, 0, len(trials))
        return Mean((side.cost_usd or 0.0) / len(trials), len(trials), len(trials))
    values = trials[name].astype("float64").dropna()
    return Mean(float(values.mean()) if len(values) else math.nan, len(values), len(trials))
