"""From a failure to a scenario: drafts of suite files out of trials that were recorded.

A draft's model script replays what the model answered then; its expectations come
from the suite of the run, or stand there for review. Drafts are text for people:
nothing here runs them.
"""

from __future__ import annotations

from evalkit.drafting.draft import Draft, LeftOut, Undraftable
from evalkit.drafting.drafts import DraftedSuite, draft_scenario, draft_suite
from evalkit.drafting.files import write_drafts

__all__ = [
    "Draft",
    "DraftedSuite",
    "LeftOut",
    "Undraftable",
    "draft_scenario",
    "draft_suite",
    "write_drafts",
]
