"""The gate says whether a run is good enough, and whether it is worse than its baseline.

=============  ================================================================
module         what it holds
=============  ================================================================
deciding       ``gate``: all checks, one verdict
rules          what the gate is asked to hold a run to
reference      what it compares that with
evidence       what it sees of a run: trials, grades, what the suite demands
integrity      whether a run directory contradicts itself
contract       the rule of the contract lane: every planned trial passed
certain        what needs no statistics: must-pass, thresholds, leaks
measured       whether enough was measured to decide at all
floor          the pass rate against a bar
regression     the run against its baseline
watching       what is looked at and blocks only where it is named
resolving      what so many scenarios and trials can tell at all
verdicts       the records that come out
wording        the verdict as text
=============  ================================================================

How wide an interval is, and what a suite can resolve, is decided in
:mod:`evalkit.stats`; what a baseline is, in :mod:`evalkit.baselines`.
"""

from __future__ import annotations

from evalkit.gating.deciding import gate
from evalkit.gating.rules import Rules
from evalkit.gating.verdicts import Check, Verdict
from evalkit.gating.wording import verdict_text

__all__ = ["Check", "Rules", "Verdict", "gate", "verdict_text"]
