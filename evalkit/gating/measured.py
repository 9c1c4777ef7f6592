"""Whether enough was measured to decide at all, and of the same thing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from evalkit.gating.evidence import Evidence
from evalkit.gating.reference import Reference
from evalkit.gating.rules import MAX_MISSING, MIN_BASELINE_TRIALS, MIN_COVERAGE, Rules
from evalkit.gating.verdicts import Check
from evalkit.terminal import percent, some_of

if TYPE_CHECKING:
    import pandas as pd

MEASURED: Final = "trials"
"""Name of the check that enough was measured."""


def check_measured(evidence: Evidence) -> list[Check]:
    """Say whether enough of the plan has a result."""
    if not evidence.n_planned:
        return [Check(MEASURED, "INVALID", "no trial was planned, so nothing was measured")]
    if not evidence.lane and "lane" in evidence.trials.columns:
        said = "the trials come from several lanes; gate the runs of each lane by themselves"
        return [Check(MEASURED, "INVALID", said)]
    share = evidence.n_incomplete / evidence.n_planned
    said = f"{evidence.n_incomplete} of {evidence.n_planned} planned trials have no result"
    if not evidence.n_incomplete:
        said = f"all {evidence.n_planned} planned trials have a result"
    if share > MAX_MISSING:
        more = f", more than {percent(MAX_MISSING)}; see their reasons, mend the cause, run again"
        return [Check(MEASURED, "INVALID", said + more, estimate=share, limit=MAX_MISSING)]
    return [Check(MEASURED, "PASS", said, estimate=share, limit=MAX_MISSING)]


def check_comparable(reference: Reference, rules: Rules) -> list[Check]:
    """Say whether run and baseline hold the same scenarios, often enough."""
    return [
        *_same_kind(reference),
        *_coverage(reference, rules),
        *_repeated(reference),
        *_lost_failures(reference, rules),
    ]


def scenario_notes(reference: Reference) -> Iterator[str]:
    """Name the scenarios that changed sides, and those that are not in both or not the same."""
    scenarios = reference.scenarios
    for word in ("failing", "passing"):
        named = _names(scenarios.loc[scenarios["newly"] == word])
        if named:
            yield f"newly {word}, most of its trials: {named}"
    for change in ("added", "removed", "changed"):
        found = scenarios.loc[scenarios["change"] == change]
        failing = int((found["rate"] < 1).sum())
        now = f"; {failing} of them failing" if failing else ""
        if len(found):
            yield f"{change} since baseline {reference.name!r}: {_names(found)}{now}"


def _same_kind(reference: Reference) -> Iterator[Check]:
    """Ask that both are of one suite, one lane and the same graders."""
    for problem in reference.problems:
        said = f"not comparable with baseline {reference.name!r}: {problem}"
        yield Check("baseline", "INVALID", said)


def _coverage(reference: Reference, rules: Rules) -> Iterator[Check]:
    """Ask that nearly all scenarios are in both."""
    scenarios, name = reference.scenarios, reference.name
    same = scenarios["change"] == "same"
    n_same = int(same.sum())
    n_all = int((same | ~scenarios["scenario"].isin(rules.accept)).sum())
    if not n_same:
        said = (
            f"the run has no scenario in common with baseline {name!r}: "
            "is it one of the same suite? Else pin a new baseline"
        )
        yield Check("scenarios", "INVALID", said)
    elif n_same / n_all < MIN_COVERAGE:
        said = (
            f"only {n_same} of {n_all} scenarios are the same in the run and in baseline "
            f"{name!r}; accept the others by id, or pin a new baseline"
        )
        yield Check("scenarios", "INVALID", said, estimate=n_same / n_all, limit=MIN_COVERAGE)


def _repeated(reference: Reference) -> Iterator[Check]:
    """Ask that the baseline knows how its own trials vary."""
    known = reference.scenarios.loc[reference.scenarios["change"] != "added"]
    thin = known.loc[known["n_measured_baseline"] < MIN_BASELINE_TRIALS]
    if len(thin):
        said = (
            f"baseline {reference.name!r} has fewer than {MIN_BASELINE_TRIALS} measured trials "
            f"of {_names(thin)}; pin at least three runs"
        )
        yield Check("baseline", "INVALID", said)


def _lost_failures(reference: Reference, rules: Rules) -> Iterator[Check]:
    """Refuse to pass where a scenario that had failed is no longer there to fail."""
    scenarios = reference.scenarios
    gone = scenarios.loc[
        scenarios["change"].isin(["removed", "changed"])
        & (scenarios["rate_baseline"] < 1)
        & ~scenarios["scenario"].isin(rules.accept)
    ]
    if len(gone):
        said = (
            f"removed or changed since baseline {reference.name!r}, where they had failed: "
            f"{_names(gone)}; without them the comparison flatters the run: accept them by id "
            "if that was the intention"
        )
        yield Check("scenarios", "INCONCLUSIVE", said)


def _names(scenarios: pd.DataFrame) -> str:
    """Name the first scenarios, and count the rest."""
    return some_of(scenarios["scenario"].tolist())
