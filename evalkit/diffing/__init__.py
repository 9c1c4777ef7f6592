"""Where two ledgers differ, event by event, without real times.

Two runs of the same thing should be equal byte for byte. Where an agent works in
parallel, or makes up ids of its own, they are equal in :func:`canonical` order.
"""

from __future__ import annotations

from evalkit.diffing.comparing import (
    Difference,
    TrialDifference,
    first_difference,
    leaves_that_differ,
    trials_that_differ,
)
from evalkit.diffing.ordering import ABSENT, canonical

__all__ = [
    "ABSENT",
    "Difference",
    "TrialDifference",
    "canonical",
    "first_difference",
    "leaves_that_differ",
    "trials_that_differ",
]
