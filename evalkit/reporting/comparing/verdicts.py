"""The verdict, what decided it, and the first figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from evalkit.baselines import Baseline
from evalkit.gating import Check, Verdict
from evalkit.markup import Safe, clip, join, table, tag
from evalkit.plots import difference_scale, percent, points, points_interval, whisker
from evalkit.reporting.comparing.comparison import Comparison
from evalkit.reporting.elements import View, card, count, note, scroll, style_sheet

_SYMBOLS: Final = {"PASS": "✓", "FAIL": "✕", "INCONCLUSIVE": "?", "INVALID": "◌"}
_CLASSES: Final = {"PASS": "passed", "FAIL": "failed"}
_MEANS: Final = {
    "INCONCLUSIVE": ": too little to tell, and no pass",
    "INVALID": ": nothing was decided",
}
_LONG: Final = 600
"""Characters of a reason before it is folded."""
_MOST: Final = 8
"""Reasons that are shown; the rest is among the checks below them."""


def context(comparison: Comparison) -> View:
    """Say in one line what is compared; in a notebook, bring the style too."""
    manifest = comparison.run.manifest
    size = f"{count(len(manifest.plan), 'scenario')}, {count(manifest.n_planned, 'trial')}"
    line = [
        "Run ",
        tag("strong", manifest.run_id),
        f" ({size}) of suite ",
        tag("strong", manifest.suite),
        f", {manifest.lane} lane, against ",
        tag("strong", comparison.other),
        f" ({_size(comparison)})",
    ]
    return View(join([style_sheet(), tag("p", *line, class_="ek-context")]))


def _size(comparison: Comparison) -> str:
    """Say how much stands behind the other side."""
    side = comparison.baseline
    trials = count(len(side.trials), "trial")
    if isinstance(side, Baseline):
        return f"pinned, {count(len(side.runs), 'run')}, {trials}"
    return f"{count(len(side.manifest.plan), 'scenario')}, {trials}"


def verdict(comparison: Comparison) -> View:
    """Show the verdict in a word, its reasons, and the interval that decided.

    Two single runs get no verdict, in plain words, but in the contract lane,
    whose rule looks at the run alone.
    """
    said = comparison.verdict
    symbol, words = _gated(comparison, said) if said else _compared(comparison)
    headline = tag(
        "h2",
        tag("span", f"{symbol} ", aria_hidden="true"),
        words,
        class_="ek-headline",
        id="ek-verdict",
    )
    parts = [headline, *_reasons(comparison), *_figures(comparison), *_asides(comparison)]
    class_ = f"ek-verdict ek-{_CLASSES.get(said.verdict, 'open') if said else 'open'}"
    return View(tag("section", *parts, class_=class_, aria_labelledby="ek-verdict"))


def _gated(comparison: Comparison, said: Verdict) -> tuple[str, str]:
    """Return the symbol and the headline of a verdict."""
    about = f" against {comparison.other}" if comparison.is_pinned else " in the contract lane"
    return _SYMBOLS[said.verdict], f"{said.verdict}{about}{_MEANS.get(said.verdict, '')}"


def _compared(comparison: Comparison) -> tuple[str, str]:
    """Return the symbol and the headline where nothing is gated."""
    row, other = comparison.overall, comparison.other
    size = points(abs(row["difference"])).lstrip("+")
    if not comparison.n_compared:
        return "◌", f"Nothing to compare with {other}"
    if row["difference_high"] < 0:
        return "↓", f"Lower than {other} by {size} points"
    if row["difference_low"] > 0:
        return "↑", f"Higher than {other} by {size} points"
    if math.isnan(row["difference_low"]):
        return "◌", f"{points(row['difference'])} points against {other}, without an interval"
    return "?", f"No clear difference from {other}: the interval spans zero"


def _reasons(comparison: Comparison) -> Iterator[Safe]:
    """Say why; where nothing is gated, say that and what would be."""
    said = comparison.verdict
    for reason in (said.reasons if said else ())[:_MOST]:
        yield tag("div", clip(reason, limit=_LONG), class_="ek-reason")
    if comparison.regression is None or comparison.regression.reason not in _shown(said):
        yield tag("p", _rates_sentence(comparison))
    if not comparison.is_pinned:
        yield tag("p", tag("strong", "Two single runs are compared. "), _no_gate(comparison))
    for caution in comparison.cautions:
        yield tag("div", tag("strong", "Not measured alike: "), clip(caution), class_="ek-reason")


def _shown(said: Verdict | None) -> tuple[str, ...]:
    """Return the reasons that are shown."""
    return said.reasons[:_MOST] if said else ()


def _no_gate(comparison: Comparison) -> str:
    """Say that no baseline was there to gate by."""
    if comparison.verdict is not None:
        return "The verdict is that of the contract rule, which looks at this run alone."
    return (
        "No gate is applied: one run does not show how its own results vary. For a verdict, "
        "pin at least three runs (evalkit baseline pin) and name that baseline."
    )


def _rates_sentence(comparison: Comparison) -> str:
    """Say both rates over the paired scenarios, their difference and its interval."""
    row, n = comparison.overall, comparison.n_compared
    if not n:
        return (
            "No scenario that is the same on both sides has a rate on both, so there is nothing "
            "to compare. Are both of one suite? What each side holds is listed below."
        )
    said = (
        f"Pass rate {percent(row['rate'], digits=1)} against "
        f"{percent(row['rate_baseline'], digits=1)} in {comparison.other}, mean of "
        f"{count(n, 'paired scenario')}: {points(row['difference'])} points"
    )
    if math.isnan(row["difference_low"]):
        return f"{said}, no interval."
    return f"{said}, {_level(comparison)} {_bounds(comparison)}."


def _level(comparison: Comparison) -> str:
    """Name the intervals, such as ``95% interval``."""
    return f"{percent(comparison.confidence)} interval"


def _bounds(comparison: Comparison) -> str:
    """Write the interval of the difference over all scenarios."""
    row = comparison.overall
    return points_interval(row["difference_low"], row["difference_high"])


def _figures(comparison: Comparison) -> Iterator[Safe]:
    """Draw the interval of the difference, and that of the rate where a floor was held."""
    row = comparison.overall
    low, high = row["difference_low"], row["difference_high"]
    if not math.isnan(low):
        margin = comparison.margin if comparison.is_pinned else None
        picture = difference_scale(row["difference"], low, high, margin=margin)
        caption = tag("figcaption", _caption(comparison))
        yield tag("figure", picture.html, caption, class_="ek-figure")
    checks = comparison.verdict.checks if comparison.verdict else ()
    yield from (
        _floor(check) for check in checks if check.name == "floor" and check.low is not None
    )


def _caption(comparison: Comparison) -> str:
    """Say what the picture of the difference shows, and whether it decided."""
    row = comparison.overall
    said = f"Difference of the pass rates, {_level(comparison)} ({row['interval']})."
    if row["test"] != "none":
        said += f" {row['test'][0].upper()}{row['test'][1:]}: {p_text(row['p_value'])}."
    decided = comparison.regression is not None and comparison.regression.low is not None
    if comparison.is_pinned and not decided:
        said += " It describes; it decided nothing."
    return said


def p_text(p_value: float) -> str:
    """Write a p-value; a tiny one is never written as zero."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def _floor(check: Check) -> Safe:
    """Draw the run's rate against the floor."""
    numbers = [math.nan if x is None else x for x in (check.estimate, check.low, check.high)]
    picture = whisker(*numbers, label="pass rate of the run", reference=check.limit)
    floor = percent(math.nan if check.limit is None else check.limit, digits=1)
    caption = tag("figcaption", f"Pass rate of the run, 0% to 100%; dashes: the floor of {floor}.")
    return tag("figure", picture, caption, class_="ek-figure")


def _asides(comparison: Comparison) -> Iterator[Safe]:
    """Say what the suite can resolve, and fold what else was looked at."""
    if comparison.resolution:
        yield note("What this suite can resolve: ", clip(comparison.resolution, limit=_LONG), ".")
    said = comparison.verdict
    if said is not None:
        yield _fold("Everything that the gate looked at", _checks(said), *_notes(said.notes))
    if comparison.overall["note"]:
        yield _fold(
            "What to know of these numbers", *_notes(comparison.overall["note"].split("; "))
        )


def _fold(summary: str, *parts: object) -> Safe:
    """Fold what is for a second look."""
    return tag("details", tag("summary", summary), *parts, class_="more ek-aside-fold")


def _checks(said: Verdict) -> Safe:
    """List the checks of the gate, gravest first."""
    rows = [{"check": c.name, "outcome": c.outcome, "what it found": c.reason} for c in said.checks]
    return scroll(table(rows), "checks of the gate")


def _notes(notes: tuple[str, ...] | list[str]) -> Iterator[Safe]:
    """List remarks."""
    if notes:
        yield tag("ul", *(tag("li", clip(each)) for each in notes))


def key_numbers(comparison: Comparison) -> View:
    """Show the figures that a reader looks for first."""
    row = comparison.overall
    was = f"was {percent(row['rate_baseline'], digits=1)}, same scenarios"
    apart = count(int(row["n_newly_passing"]), "newly passing scenario")
    missing = int(comparison.scenarios["n_incomplete"].sum())
    cards = [
        ("Pass rate", percent(row["rate"], digits=1), was),
        ("Difference, points", points(row["difference"]), _difference_detail(comparison)),
        ("Newly failing", f"{row['n_newly_failing']:,}", apart),
        ("Not compared", f"{comparison.n_not_compared:,}", _not_compared_detail(comparison)),
        ("Not measured", f"{missing:,}", f"of {count(comparison.run.manifest.n_planned, 'trial')}"),
    ]
    return View(tag("dl", *(card(*each) for each in cards), class_="ek-keys"))


def _difference_detail(comparison: Comparison) -> str:
    """Write the interval of the difference, or that there is none."""
    if math.isnan(comparison.overall["difference_low"]):
        return "no interval"
    return f"{_bounds(comparison)} ({_level(comparison)})"


def _not_compared_detail(comparison: Comparison) -> str:
    """Say why scenarios are not compared."""
    row = comparison.overall
    parts = [f"{row[f'n_{word}']:,} {word}" for word in ("added", "removed", "changed")]
    return ", ".join(part for part in parts if not part.startswith("0 ")) or "no scenario left out"
