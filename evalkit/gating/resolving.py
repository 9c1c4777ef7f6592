"""What so many scenarios and trials can tell at all, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalkit.gating.evidence import Evidence
from evalkit.gating.reference import Reference
from evalkit.gating.rules import Rules

if TYPE_CHECKING:
    import pandas as pd


def resolution(evidence: Evidence, reference: Reference | None, rules: Rules) -> str:
    """Say which drops the suite detects, and whether the margin is among them."""
    from evalkit.stats import resolution_text

    row = _drops(evidence, reference, rules).iloc[0]
    said = str(resolution_text(row))
    drop = row["drop_few_break"]
    if reference is None or drop != drop or drop <= rules.margin:
        return said
    return f"{said}; a margin of {100 * rules.margin:g} points is below what this suite can resolve"


def _drops(evidence: Evidence, reference: Reference | None, rules: Rules) -> pd.DataFrame:
    """Plan with what is known of the agent: by its baseline, else by the run itself."""
    from evalkit.stats import detectable_drops

    two_sided: dict[str, Any] = {"confidence": rules.level, "sides": 2}
    if reference is None:
        return detectable_drops(evidence, **two_sided)
    same = reference.scenarios.loc[
        (reference.scenarios["change"] == "same") & (reference.scenarios["n_measured"] > 0)
    ]
    k = float(same["n_measured"].mean()) if len(same) else None
    return detectable_drops(reference.data, n_scenarios=len(same) or None, n_trials=k, **two_sided)
