"""Parts of a run, by tag, grader and rubric: looked at, and blocking only where named.

What is only watched is listed where it stands out after Benjamini and Hochberg's
correction. What may fail a build is held to Holm's, step by step, by intervals of
its own, so that the number printed is the one that decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evalkit.errors import UsageError
from evalkit.gating.evidence import Evidence
from evalkit.gating.reference import Reference
from evalkit.gating.regression import points, regression_check
from evalkit.gating.rules import Rules
from evalkit.gating.verdicts import Check, as_floats
from evalkit.terminal import percent

if TYPE_CHECKING:
    import pandas as pd

KINDS: Final = ("tag", "grader")
_NOTABLE: Final = 0.05


class Part(NamedTuple):
    """Part of a run that may gate: its kind, and its name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def parts_of(names: Sequence[str]) -> list[Part]:
    """Read names such as ``tag:security`` or ``grader:truth``.

    Raises
    ------
    UsageError
        If one names no part that can gate. A rubric cannot as long as its judge has no
        calibration record: until then every judge counts as uncalibrated.
    """
    parts = [Part(*name.partition(":")[::2]) for name in names]
    for part, name in zip(parts, names, strict=True):
        if part.kind == "rubric":
            raise UsageError(
                f"{name}: its judge is not calibrated, so it is watched and cannot gate"
            )
        if part.kind not in KINDS or not part.name:
            raise UsageError(f"{name}: a part that gates is tag:NAME or grader:NAME")
    return parts


def check_parts(evidence: Evidence, reference: Reference, rules: Rules) -> list[Check]:
    """Hold the parts that were named to the rule of the whole, with Holm's correction.

    The part with the smallest p-value is held to the strictest level; from the first that
    does not fail on, the rest is held to that one's level.
    """
    parts = parts_of(rules.gate_on)
    pair = _Pair(evidence, reference)
    order = sorted(parts, key=lambda part: _p_value(pair.row(part, rules.level)))
    checks: list[Check] = []
    level = rules.level
    for rank, part in enumerate(order):
        if all(check.outcome == "FAIL" for check in checks):
            level = 1 - (1 - rules.level) / (len(order) - rank)
        checks.append(pair.check(part, replace(rules, confidence=level, looks=1)))
    return checks


def watch(evidence: Evidence, baseline: Any) -> Iterator[str]:
    """Name the parts that stand out, and say that they decide nothing."""
    for kind in (*KINDS, "rubric"):
        rows = _compared(evidence, baseline, kind=kind, level=0.95)
        if rows is None or len(rows) < 2:  # a single part is the whole
            continue
        for _, row in rows.loc[(rows["p_bh"] <= _NOTABLE) & (rows["difference"] < 0)].iterrows():
            yield (
                f"look here: {kind} {row[kind]} fell by {points(row['difference']).lstrip('-')} "
                f"points, to {percent(row['rate'])} (watched, does not decide)"
            )


class _Pair(NamedTuple):
    """A run and its baseline, to be compared part by part."""

    evidence: Evidence
    reference: Reference

    def row(self, part: Part, level: float) -> pd.Series[Any] | None:
        """Compare one part; ``None`` where one side does not have it."""
        rows = _compared(self.evidence, self.reference.data, kind=part.kind, level=level)
        own = None if rows is None else rows.loc[rows[part.kind] == part.name]
        return None if own is None or not len(own) else own.iloc[0]

    def check(self, part: Part, rules: Rules) -> Check:
        """Hold one part to the rule."""
        row, name = self.row(part, rules.level), self.reference.name
        if row is None:
            said = f"{part} is not in the run, or not in baseline {name!r}"
            return Check(f"regression of {part}", "INVALID", said)
        return regression_check(row, what=str(part), name=name, rules=rules)


def _p_value(row: pd.Series[Any] | None) -> float:
    (value,) = as_floats(1.0 if row is None else row["p_value"])
    return 1.0 if value is None else value


def _compared(evidence: Evidence, baseline: Any, *, kind: str, level: float) -> pd.DataFrame | None:
    """Compare by tag, grader or rubric; ``None`` where one side knows no such thing."""
    from evalkit.stats import compare

    if not _knows(evidence, kind) or not _knows(baseline, kind):
        return None
    return compare(evidence, baseline, by=kind, confidence=level)


def _knows(run: Any, kind: str) -> bool:
    """Say whether a run has tags, grades or rubrics at all."""
    trials = getattr(run, "trials", run)
    if kind == "tag":
        return "tags" in trials.columns and bool(trials["tags"].map(len).any())
    grades = getattr(run, "grades", None)
    if grades is None or not len(grades):
        return False
    return kind == "grader" or bool((grades["rubric"] != "").any())
