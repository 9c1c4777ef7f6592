"""The databases of a suite: made of its fixtures, checked, and watched in its trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from evalkit.errors import Problem, SuiteError
from evalkit.sandbox.clock import DEFAULT_TIME
from evalkit.suite import Scenario, Suite
from evalkit.suite.expectations import DatabaseExpect
from evalkit.suite.known_names import placed_problems
from evalkit.trial.order import DatabaseLook, DatabaseLooks


def looks_of(scenario: Scenario) -> DatabaseLooks | None:
    """Say what is to be watched of a scenario's databases; ``None`` if nothing is.

    Canaries may get into a database that the agent makes by itself.
    """
    given = _fixtures(scenario)
    looks = list(_looks(scenario))
    if not (given or looks or scenario.canaries):
        return None
    names = dict.fromkeys((*given, *(look.database for look in looks)))
    queries = (
        DatabaseLook(look.database, look.expect.query, look.turn)
        for look in looks
        if look.expect.query is not None
    )
    return DatabaseLooks(tuple(names), tuple(dict.fromkeys(queries)))


def _fixtures(scenario: Scenario) -> Mapping[str, str]:
    return {} if scenario.fixtures is None else scenario.fixtures.database


class _Look(NamedTuple):
    """One expectation."""

    path: tuple[str | int, ...]
    """Its keys in the scenario."""
    turn: int | None
    """From 0; ``None`` for the end of the trial."""
    database: str
    expect: DatabaseExpect


def _looks(scenario: Scenario) -> Iterator[_Look]:
    only = next(iter(_fixtures(scenario)), "")
    for turn, place in ((None, scenario), *enumerate(scenario.turns)):
        path = () if turn is None else ("turns", turn)
        for index, look in enumerate((place.expect and place.expect.database) or ()):
            keys = (*path, "expect", "database", index)
            yield _Look(keys, turn, look.database or only, look)


def database_files(scenario: Scenario, folder: Path) -> dict[str, bytes | str]:
    """Make a scenario's databases, by where they go in the working directory.

    Raises
    ------
    SuiteError
        If a fixture is none.
    """
    return {
        name: _database_file(scenario, folder, source)
        for name, source in _fixtures(scenario).items()
    }


def _database_file(scenario: Scenario, folder: Path, source: str) -> bytes | str:
    from evalkit.sandbox.databases import HEADER, FixtureProblem, database_bytes

    path = folder / source
    now = DEFAULT_TIME if scenario.clock is None else scenario.clock.at
    try:
        content = database_bytes(path, now=now)
        with path.open("rb") as file:
            is_database = file.read(len(HEADER)) == HEADER
    except (FixtureProblem, OSError) as error:
        raise SuiteError([_fixture_problem(path, error)]) from error
    return str(path.resolve()) if is_database else content


def _fixture_problem(path: Path, error: Exception) -> Problem:
    return Problem(str(path), getattr(error, "line", None), "", str(error))


def database_problems(suite: Suite) -> list[Problem]:
    """List what is wrong with a suite's databases, and with what is asked of them.

    Parameters
    ----------
    suite
        A parsed suite; scripts of its fixtures are executed, in memory.
    """
    if not any(map(_has_databases, suite)):
        return []
    return _Check(suite).problems()


def _has_databases(scenario: Scenario) -> bool:
    return bool(_fixtures(scenario)) or any(True for _ in _looks(scenario))


class _Check:
    """One pass over the databases of a suite."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._folder = suite.path.parent if suite.path is not None else Path.cwd()
        self._content = cache(self._made)

    def problems(self) -> list[Problem]:
        """List them: of fixtures, then of queries."""
        found = (
            self._content(scenario.clock and scenario.clock.at, source)[1]
            for scenario in self._suite
            for source in _fixtures(scenario).values()
        )
        fixtures = list(dict.fromkeys(filter(None, found)))
        return fixtures or placed_problems(self._suite, self._query_problems())

    def _made(self, now: object, source: str) -> tuple[bytes, Problem | None]:
        from evalkit.sandbox.databases import FixtureProblem, database_bytes

        path = self._folder / source
        try:
            return database_bytes(path, now=now or DEFAULT_TIME), None  # type: ignore[arg-type]
        except (FixtureProblem, OSError) as error:
            return b"", _fixture_problem(path, error)

    def _query_problems(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        from evalkit.sandbox.queries import query_problem

        for index, scenario in enumerate(self._suite):
            given, now = _fixtures(scenario), scenario.clock and scenario.clock.at
            for look in _looks(scenario):
                query, name = look.expect.query, look.database
                content = self._content(now, given[name])[0] if name in given else b""
                problem = "" if query is None else query_problem(query, content)
                if problem:
                    yield ("scenarios", index, *look.path, "query"), problem
