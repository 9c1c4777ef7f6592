"""Suite x agent x trials -> graded run: loading, planning, running, grading again."""

from evalkit.run.loading import load_suite
from evalkit.run.planning import default_lane
from evalkit.run.regrading import grade_run
from evalkit.run.running import resume_run, run_suite

__all__ = ["default_lane", "grade_run", "load_suite", "resume_run", "run_suite"]
