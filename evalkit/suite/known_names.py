"""Whether the graders and tools that a suite names exist; the callers say which do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from evalkit.errors import Problem, SuiteError
from evalkit.suite.fields import KeyPath, suggestion
from evalkit.suite.models import Scenario, Suite
from evalkit.suite.problems import written_path
from evalkit.suite.yaml_reader import Document, read_yaml, show_path


def grader_problems(suite: Suite, known: Collection[str]) -> list[Problem]:
    """List the graders that a suite names and nobody registered.

    Parameters
    ----------
    suite
        A parsed suite; its file is read again for line numbers if there is a problem.
    known
        Names of all registered graders.
    """
    found = (
        (
            ("scenarios", index, "graders", position),
            f"there is no grader {use.name!r}.{suggestion(use.name, known)}",
        )
        for index, scenario in enumerate(suite)
        for position, use in enumerate(scenario.graders)
        if use.name not in known
    )
    return _placed(suite, found)


def tool_problems(suite: Suite, declared: Mapping[str, Collection[str] | None]) -> list[Problem]:
    """List the tools and arguments that a suite names and the agent does not have.

    Parameters
    ----------
    suite
        A parsed suite; its file is read again for line numbers if there is a problem.
    declared
        Names of the arguments by tool; ``None`` for a tool that takes any.
    """
    found = (
        problem
        for index, scenario in enumerate(suite)
        for path, tool, args in _named_tools(scenario)
        for problem in _tool_problem(tool, args, declared, path=("scenarios", index, *path))
    )
    return _placed(suite, found)


def _named_tools(scenario: Scenario) -> Iterator[tuple[KeyPath, str, Collection[str]]]:
    """Give each tool that expectations and bans name, with its place and arguments."""
    scopes: list[tuple[KeyPath, Any]] = [((), scenario)]
    scopes += [(("turns", index), turn) for index, turn in enumerate(scenario.turns)]
    for path, scope in scopes:
        calls = scope.expect.tools.calls if scope.expect and scope.expect.tools else ()
        for index, call in enumerate(calls):
            yield (*path, "expect", "tools", "calls", index), call.tool, call.args
        for index, ban in enumerate(scope.forbid.tools if scope.forbid else ()):
            yield (*path, "forbid", "tools", index), ban.tool, ban.args


def _tool_problem(
    tool: str,
    args: Collection[str],
    declared: Mapping[str, Collection[str] | None],
    *,
    path: KeyPath,
) -> Iterator[tuple[KeyPath, str]]:
    if tool not in declared:
        yield path, f"the agent has no tool {tool!r}.{suggestion(tool, declared)}"
        return
    known = declared[tool]
    for name in args if known is not None else ():
        if name not in (known or ()):
            hint = suggestion(name, known or ())
            yield (*path, "args", name), f"{tool!r} takes no argument {name!r}.{hint}"


def _placed(suite: Suite, found: Iterable[tuple[KeyPath, str]]) -> list[Problem]:
    """Give problems of a parsed suite their lines, from its file as it is now."""
    problems = list(found)
    if not problems:
        return []
    where = str(suite.path) if suite.path else suite.name
    document = _document_again(suite)
    return [
        Problem(where, document.line(path), show_path(path), message)
        for path, message in (
            (written_path(place, document.data) or place, message) for place, message in problems
        )
    ]


def _document_again(suite: Suite) -> Document:
    try:
        return read_yaml(suite.path) if suite.path else Document(None, {})
    except SuiteError:
        return Document(None, {})
