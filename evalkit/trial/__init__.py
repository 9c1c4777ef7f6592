"""One trial: what a worker is told, what it does, and who watches over it.

Everything is imported when it is first used: the server that trials are forked from
needs the worker only, and each of its forks pays for what it holds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.trial.controller import ProcessTrials, Surroundings, run_here
    from evalkit.trial.files import files_of
    from evalkit.trial.flight import FinishedTrial
    from evalkit.trial.order import Advance, Deliver, Restart, Staging, TrialOrder, trial_seed
    from evalkit.trial.outcome import database_gap, databases_of, states_of, written_into
    from evalkit.trial.readiness import LANES, clock_parts, unbuilt_parts

__all__ = [
    "LANES",
    "Advance",
    "Deliver",
    "FinishedTrial",
    "ProcessTrials",
    "Restart",
    "Staging",
    "Surroundings",
    "TrialOrder",
    "clock_parts",
    "database_gap",
    "databases_of",
    "files_of",
    "run_here",
    "states_of",
    "trial_seed",
    "unbuilt_parts",
    "written_into",
]

_HOME = {
    **dict.fromkeys(("ProcessTrials", "Surroundings", "run_here"), "controller"),
    "files_of": "files",
    "FinishedTrial": "flight",
    **dict.fromkeys(("Advance", "Deliver", "Restart", "Staging"), "order"),
    **dict.fromkeys(("TrialOrder", "trial_seed"), "order"),
    **dict.fromkeys(("database_gap", "databases_of", "states_of", "written_into"), "outcome"),
    **dict.fromkeys(("LANES", "clock_parts", "unbuilt_parts"), "readiness"),
}
"""Module that each public name comes from."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"evalkit.trial.{_HOME[name]}"), name)
    raise AttributeError(f"module 'evalkit.trial' has no attribute {name!r}")
