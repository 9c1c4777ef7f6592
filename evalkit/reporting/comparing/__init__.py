"""What ``compare_runs`` shows: a run against a pinned baseline, or against another run.

=============  ================================================================
module         what it holds
=============  ================================================================
comparison     all figures, computed once
verdicts       the verdict, what decided it, the first figures
scenarios      newly failing and passing, rates side by side, what is in one only
parts          differences by tag and by grader
measured       what was not measured; cost, time and calls
sources        where both sides come from
=============  ================================================================

The verdict is :mod:`evalkit.gating`'s, the statistics are :mod:`evalkit.stats`'.
Every text that a run carries passes through :mod:`evalkit.markup`.
"""

from __future__ import annotations

from evalkit.reporting.comparing.comparison import Comparison, compare_with
from evalkit.reporting.comparing.measured import cost_and_calls, not_measured
from evalkit.reporting.comparing.parts import differences_by
from evalkit.reporting.comparing.scenarios import (
    newly_failing,
    newly_passing,
    not_compared,
    rates_side_by_side,
)
from evalkit.reporting.comparing.sources import provenance
from evalkit.reporting.comparing.verdicts import context, key_numbers, verdict

__all__ = [
    "Comparison",
    "compare_with",
    "context",
    "cost_and_calls",
    "differences_by",
    "key_numbers",
    "newly_failing",
    "newly_passing",
    "not_compared",
    "not_measured",
    "provenance",
    "rates_side_by_side",
    "verdict",
]
