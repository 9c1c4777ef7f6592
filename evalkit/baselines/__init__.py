"""Baselines: sealed results of several runs, which a gate compares a run with.

A baseline pools at least three complete runs of one suite and one agent as
trials. Its file in ``data/baselines`` holds ids, counts and hashes only, is
reviewed like code, and is never overwritten. What a gate decides with it does
not live here.
"""

from evalkit.baselines.files import DEFAULT_FOLDER, list_baselines, load_baseline
from evalkit.baselines.pairing import BaselineMatch, match_baseline
from evalkit.baselines.pinning import pin_baseline
from evalkit.baselines.records import Baseline, PinnedGrader, PinnedRun, PinnedScenario
from evalkit.baselines.verifying import Finding, verify_baseline

__all__ = [
    "DEFAULT_FOLDER",
    "Baseline",
    "BaselineMatch",
    "Finding",
    "PinnedGrader",
    "PinnedRun",
    "PinnedScenario",
    "list_baselines",
    "load_baseline",
    "match_baseline",
    "pin_baseline",
    "verify_baseline",
]
