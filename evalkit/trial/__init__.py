"""One trial: what a worker is told, what it does, and who watches over it."""

from evalkit.trial.controller import FinishedTrial, Surroundings, run_here, run_in_processes
from evalkit.trial.files import files_of
from evalkit.trial.order import Advance, Staging, TrialOrder, trial_seed
from evalkit.trial.readiness import LANES, unbuilt_checks, unbuilt_parts

__all__ = [
    "LANES",
    "Advance",
    "FinishedTrial",
    "Staging",
    "Surroundings",
    "TrialOrder",
    "files_of",
    "run_here",
    "run_in_processes",
    "trial_seed",
    "unbuilt_checks",
    "unbuilt_parts",
]
