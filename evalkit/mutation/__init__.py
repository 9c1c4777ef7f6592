"""Mutation testing of suites: passing trials are broken on purpose, and must not pass.

=====================  ========================================================
module                 what it holds
=====================  ========================================================
mutating               ``mutate_suite``: choose, break, grade again, report
operators              every way to break a trial, in one list
breaking_calls         ... on tool calls
breaking_arguments     ... on their arguments
breaking_replies       ... on replies and the model
values, contradiction  an argument changed by its look; a reply turned round
altering               a trace with one thing changed
making                 all mutants of one trial
originals              the trials that may be broken
judging                whether the suite notices, and what would
closing_calls          expectations of tools that would
closing_replies        expectations of replies that would
pasting                a suggestion as YAML, and a scenario with it pasted in
report, wording        what comes out
=====================  ========================================================

No agent runs here, and no grader is written here: what a suite notices is decided
by :mod:`evalkit.graders` alone.
"""

from __future__ import annotations

from evalkit.mutation.mutating import MAX_MUTANTS, mutate_suite
from evalkit.mutation.operators import OPERATORS
from evalkit.mutation.records import (
    KINDS,
    LeftOut,
    Mutant,
    MutantResult,
    Operator,
    Subject,
    Suggestion,
)
from evalkit.mutation.report import MutationReport

__all__ = [
    "KINDS",
    "MAX_MUTANTS",
    "OPERATORS",
    "LeftOut",
    "Mutant",
    "MutantResult",
    "MutationReport",
    "Operator",
    "Subject",
    "Suggestion",
    "mutate_suite",
]
