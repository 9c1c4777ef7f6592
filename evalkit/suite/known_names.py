"""Whether the graders and tools that a suite names exist; the callers say which do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from evalkit.errors import Problem, SuiteError
from evalkit.suite.expectations import Expect, PathExpect
from evalkit.suite.fields import KeyPath, suggestion
from evalkit.suite.model_script import ModelScript, ToolsStep
from evalkit.suite.models import Scenario, Suite
from evalkit.suite.problems import written_path
from evalkit.suite.yaml_reader import Document, read_yaml, show_path

_NEARLY: Final = 0.84
"""How alike a banned name and a tool must be to be taken for a slip; one letter of six."""


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
    return placed_problems(suite, found)


def tool_problems(suite: Suite, declared: Mapping[str, Collection[str] | None]) -> list[Problem]:
    """List the tools and arguments that a suite names and the agent does not have.

    Parameters
    ----------
    suite
        A parsed suite; its file is read again for line numbers if there is a problem.
    declared
        All tools of the agent: names of the arguments by tool; ``None`` for a tool that
        takes any.

    Notes
    -----
    What is expected must exist. A ban may name what the agent must never get, so only one
    that is nearly the name of a tool is a problem: it would never fire. A scripted model
    may ask for wrong arguments on purpose, but for a missing tool only by
    ``fault: wrong_tool``.
    """
    found = (
        problem
        for index, scenario in enumerate(suite)
        for named in _named_tools(scenario)
        for problem in _tool_problem(named, declared, path=("scenarios", index, *named.path))
    )
    return placed_problems(suite, found)


def names_tools(suite: Suite) -> bool:
    """Say whether a suite names any tool, so that asking the agent is worth it."""
    return any(True for scenario in suite for _ in _named_tools(scenario))


class _Named(NamedTuple):
    """A tool that a suite names."""

    path: KeyPath
    tool: str
    args: Collection[str] = ()
    """Names of arguments that must exist."""
    is_ban: bool = False


def _named_tools(scenario: Scenario) -> Iterator[_Named]:
    """Give each tool that expectations, bans and scripts name."""
    scopes: list[tuple[KeyPath, Any]] = [((), scenario)]
    scopes += [(("turns", index), turn) for index, turn in enumerate(scenario.turns)]
    for path, scope in scopes:
        yield from _expected(scope.expect, (*path, "expect"))
        for index, ban in enumerate(scope.forbid.tools if scope.forbid else ()):
            yield _Named((*path, "forbid", "tools", index), ban.tool, ban.args, is_ban=True)
        yield from _scripted(getattr(scope, "model", None), (*path, "model"))


def _expected(expect: Expect | None, path: KeyPath) -> Iterator[_Named]:
    if expect is not None and expect.tools is not None:
        for index, call in enumerate(expect.tools.calls):
            yield _Named((*path, "tools", "calls", index), call.tool, call.args)
        extra = expect.tools.extra_calls
        for name in extra if isinstance(extra, tuple) else ():
            yield _Named((*path, "tools", "extra_calls"), name)
    route = None if expect is None else expect.path
    for name in route.poll if isinstance(route, PathExpect) else ():
        yield _Named((*path, "path", "poll"), name)


def _scripted(model: ModelScript | None, path: KeyPath) -> Iterator[_Named]:
    for name, script in model.scripts.items() if model is not None else ():
        for index, step in enumerate(script.steps):
            for use in step.tools if isinstance(step, ToolsStep) else ():
                yield _Named((*path, "scripts", name, "steps", index), use.tool)


def _tool_problem(
    named: _Named, declared: Mapping[str, Collection[str] | None], *, path: KeyPath
) -> Iterator[tuple[KeyPath, str]]:
    tool = named.tool
    if tool not in declared:
        if not named.is_ban:
            yield path, f"the agent has no tool {tool!r}.{suggestion(tool, declared)}"
        elif near := get_close_matches(tool, sorted(declared), n=1, cutoff=_NEARLY):
            message = f"a ban of {tool!r} never fires: the agent has no such tool"
            yield path, f"{message}. Did you mean `{near[0]}`?"
        return
    known = declared[tool]
    for name in named.args if known is not None else ():
        if name not in (known or ()):
            hint = suggestion(name, known or ())
            yield (*path, "args", name), f"{tool!r} takes no argument {name!r}.{hint}"


def placed_problems(suite: Suite, found: Iterable[tuple[KeyPath, str]]) -> list[Problem]:
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
