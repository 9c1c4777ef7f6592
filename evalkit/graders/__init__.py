"""Graders: functions of one trial that give a grade.

Importing this package registers the built-in ones, in the order in which they
grade: ``truth``, ``path``, ``answer``, ``component``. Own graders are made with
:func:`grader`; :func:`grade_trial` applies all that a trial calls for.
"""

from __future__ import annotations

# Imported in the order in which they are registered, and so grade.
# isort: off
from evalkit.graders.truth import grade_truth
from evalkit.graders.path import grade_path
from evalkit.graders.answer import grade_answer
from evalkit.graders.component import grade_component
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
    "grade_component",
    "grade_path",
    "grade_trial",
    "grade_truth",
    "grader",
    "graders_for",
    "known_graders",
]
