"""Graders: functions of one trial that give a grade.

Importing this package registers the built-in ones, in the order in which they
grade: ``truth``, ``path``, ``answer``, ``component``, ``prompt``, ``log``, ``errors``,
``files``, ``database``, ``state``, ``http``, ``wire_agreement``, ``canary``. Own graders
are made with :func:`grader`; :func:`grade_trial` applies all that a trial calls for.
"""

from __future__ import annotations

# Imported in the order in which they are registered, and so grade.
# isort: off
from evalkit.graders.truth import grade_truth
from evalkit.graders.path import grade_path
from evalkit.graders.answer import grade_answer
from evalkit.graders.component import grade_component
from evalkit.graders.prompt import grade_prompt
from evalkit.graders.logs import grade_errors, grade_log
from evalkit.graders.files import grade_files
from evalkit.graders.database import grade_database
from evalkit.graders.state import grade_state
from evalkit.graders.http import grade_http
from evalkit.graders.wire_agreement import grade_wire_agreement
from evalkit.graders.canary import grade_canary, planted_in
# isort: on

from evalkit.graders.base import (
    Grader,
    Outcome,
    Trial,
    add_grader,
    as_grade,
    find_grader,
    grade_trial,
    grader,
    graders_for,
    known_graders,
)

__all__ = [
    "Grader",
    "Outcome",
    "Trial",
    "add_grader",
    "as_grade",
    "find_grader",
    "grade_answer",
    "grade_canary",
    "grade_component",
    "grade_database",
    "grade_errors",
    "grade_files",
    "grade_http",
    "grade_log",
    "grade_path",
    "grade_prompt",
    "grade_state",
    "grade_trial",
    "grade_truth",
    "grade_wire_agreement",
    "grader",
    "graders_for",
    "known_graders",
    "planted_in",
]
