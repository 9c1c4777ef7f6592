"""What a run is compared with, and whether the two can be compared at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalkit.gating.evidence import Evidence
from evalkit.gating.integrity import runs_in

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Reference:
    """A baseline, and how its scenarios stand to those of the run."""

    name: str
    data: Any
    """Anything with a frame ``trials``, or that frame."""
    scenarios: pd.DataFrame
    """What :func:`evalkit.stats.compare_scenarios` gives."""
    problems: tuple[str, ...] = ()
    """Why the two cannot be compared."""


def reference_of(run: Any, evidence: Evidence, baseline: Any, *, folder: str) -> Reference | None:
    """Find the baseline, and hold it beside the run.

    Raises
    ------
    BaselineError
        If a baseline is named that is not there, or that was edited.
    """
    if baseline is None:
        return None
    from evalkit.baselines import Baseline, load_baseline, match_baseline
    from evalkit.stats import compare_scenarios

    found = load_baseline(baseline, folder=folder) if isinstance(baseline, str) else baseline
    runs = runs_in(run) if isinstance(found, Baseline) else ()
    problems = [problem for one in runs for problem in match_baseline(one, found).problems]
    return Reference(
        name=str(getattr(found, "name", "") or getattr(found, "id", "") or "given"),
        data=found,
        scenarios=compare_scenarios(evidence, found),
        problems=tuple(dict.fromkeys(problems)),
    )
