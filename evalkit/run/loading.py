"""The public way to load a suite: parsed, validated, and its graders known."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from evalkit.errors import SuiteError
from evalkit.graders import known_graders
from evalkit.run.databases import database_problems
from evalkit.run.worlds import port_problems
from evalkit.suite import Suite
from evalkit.suite.known_names import grader_problems
from evalkit.suite.loading import parse_suite
from evalkit.suite.records import suite_from_records

PathLike: TypeAlias = str | os.PathLike[str]


def load_suite(source: PathLike | Iterable[dict[str, Any]], *, name: str = "records") -> Suite:
    """Load a suite and check it whole.

    Parameters
    ----------
    source
        A suite file (YAML); or older golden-set records: a ``.jsonl``, ``.json``
        or ``.csv`` file, or a list of mappings with ``task_id``, ``input``,
        ``expect_tools``, ``forbid_tools``, ``success_contains``.
    name
        Name of a suite that is made from a list of records.

    Raises
    ------
    SuiteError
        With every problem at once: file, line, key path, what would be right.

    Examples
    --------
    >>> suite = load_suite([{"task_id": "hello", "input": "Hi", "success_contains": ["hello"]}])
    >>> suite.scenarios[0].id
    'hello'
    """
    if isinstance(source, str | os.PathLike):
        suite = parse_suite(Path(source))
    else:
        suite = suite_from_records(list(source), name=name)
    problems = [
        *grader_problems(suite, known_graders()),
        *database_problems(suite),
        *port_problems(suite),
    ]
    if problems:
        raise SuiteError(problems)
    return suite
