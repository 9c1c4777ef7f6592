"""One trial: what a worker is told, what it does, and who watches over it."""

from evalkit.trial.controller import FinishedTrial, run_here, run_in_processes
from evalkit.trial.order import TrialOrder, trial_seed
from evalkit.trial.readiness import LANES, unbuilt_checks, unbuilt_parts

__all__ = [
    "LANES",
    "FinishedTrial",
    "TrialOrder",
    "run_here",
    "run_in_processes",
    "trial_seed",
    "unbuilt_checks",
    "unbuilt_parts",
]
