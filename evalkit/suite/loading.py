"""From a suite file, or the same data in memory, to a checked :class:`Suite`.

Everything that is wrong is collected and raised at once. Names of graders and
tools are checked by functions that are told which exist: this layer knows none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalkit.errors import Problem, SuiteError
from evalkit.suite.checks import scenario_problems
from evalkit.suite.defaults import with_defaults
from evalkit.suite.delivery_checks import agent_problems
from evalkit.suite.fields import KeyPath
from evalkit.suite.hashing import with_hashes
from evalkit.suite.models import Scenario, Suite
from evalkit.suite.problems import sentences, shown, written_path
from evalkit.suite.variables import fill_scenario
from evalkit.suite.yaml_reader import Document, read_yaml, show_path

_STAND_IN = Scenario.model_construct(id="stand-in", turns=())


def parse_suite(path: str | Path) -> Suite:
    """Read and check one suite file.

    Parameters
    ----------
    path
        The YAML file; its folder is where fixtures are looked for.

    Raises
    ------
    SuiteError
        With every problem that was found, each with file, line and key path.
    """
    path = Path(path)
    return _Reading(read_yaml(path), where=str(path), folder=path.parent).suite(path)


def suite_from_data(data: Any, *, folder: Path | None = None, where: str = "suite") -> Suite:
    """Check a suite that is already in memory, in the form that the file has.

    Parameters
    ----------
    data
        Mappings, lists and scalars as YAML would give them.
    folder
        Where fixtures are looked for; without it their files are not checked.
    where
        Stands for the file name in messages.

    Raises
    ------
    SuiteError
        With every problem that was found.

    Examples
    --------
    >>> suite = suite_from_data(
    ...     {
    ...         "suite": "demo",
    ...         "scenarios": [{"id": "hi", "input": "Hi", "expect": {"reply": {"contains": "hi"}}}],
    ...     }
    ... )
    >>> suite.scenario("hi").expect.reply.contains
    ('hi',)
    """
    return _Reading(Document(data, {}), where=where, folder=folder).suite(None)


@dataclass(slots=True)
class _Reading:
    """One pass over a suite's data, collecting problems."""

    document: Document
    where: str
    folder: Path | None
    problems: list[Problem] = field(default_factory=list)
    _defaults: Mapping[str, Any] = field(default_factory=dict)
    _strict: bool = False
    _fixtures: dict[str, str] = field(default_factory=dict)
    """What is wrong with each fixture that was looked at."""

    def suite(self, path: Path | None) -> Suite:
        """Build the suite, or raise everything that is wrong with it."""
        data = self.document.data
        if not isinstance(data, dict):
            message = f"a suite is a mapping with `suite` and `scenarios`, not {shown(data)}"
            self._complain((), message)
            raise SuiteError(self.problems)
        self._read_defaults(data.get("defaults", {}))
        header = self._header(data)
        scenarios = self._scenarios(data["scenarios"]) if "scenarios" in data else ()
        if header and scenarios:
            scenarios = self._with_clusters(scenarios, header.cluster)
        if header and not self.problems:  # else a scenario may be missing, and its number wrong
            for place, message in agent_problems(header.agent, scenarios):
                self._complain(self._place_of(place), message)
        if self.problems or header is None:
            raise SuiteError(_in_order(self.problems))
        suite = header.model_copy(update={"scenarios": tuple(scenarios), "path": path})
        return with_hashes(suite, self.folder)

    def _header(self, data: dict[str, Any]) -> Suite | None:
        """Validate all but the scenarios."""
        shell = {**data, "scenarios": (_STAND_IN,)} if "scenarios" in data else data
        context = self._context()
        try:
            return Suite.model_validate(shell, context=context)
        except ValidationError as error:
            for place, message in sentences(error, context["known_keys"]):
                self._complain(written_path(place, data), message)
        return None

    def _read_defaults(self, defaults: Any) -> None:
        """Validate the defaults alone, and use them only if they are right."""
        if not isinstance(defaults, dict):
            return
        found = list(_defaults_problems(defaults, self._context()))
        for place, message in found:
            self._complain(("defaults", *written_path(place, defaults)), message)
        if not found:
            self._defaults = defaults
            self._strict = defaults.get("strict", False)

    def _scenarios(self, written: Any) -> list[Scenario]:
        if not isinstance(written, list | tuple):
            self._complain(("scenarios",), f"must be a list of scenarios, not {shown(written)}")
            return []
        if not written:
            self._complain(("scenarios",), "is empty: a suite needs at least one scenario")
        self._refuse_repeated_ids(written)
        return [
            scenario
            for index, one in enumerate(written)
            if (scenario := self._scenario(one, index)) is not None
        ]

    def _scenario(self, written: Any, index: int) -> Scenario | None:
        if not isinstance(written, dict):
            self._complain(
                ("scenarios", index), f"a scenario is a mapping with an `id`, not {shown(written)}"
            )
            return None
        merged = fill_scenario(with_defaults(written, self._defaults))
        context = self._context()
        try:
            scenario = Scenario.model_validate(merged, context=context)
        except ValidationError as error:
            found = list(sentences(error, context["known_keys"]))
        else:
            found = list(scenario_problems(scenario))
        for place, message in found:
            self._complain(self._place(place, written, index=index), message)
        return None if found else scenario

    def _place(self, place: KeyPath, written: dict[str, Any], *, index: int) -> KeyPath:
        """Find a place of a merged scenario again: in itself, or in the defaults."""
        own = written_path(place, written)
        shared = written_path(place, self._defaults)
        if len(shared) > len(own):
            return ("defaults", *shared)
        return ("scenarios", index, *own)

    def _place_of(self, place: KeyPath) -> KeyPath:
        """Find a place of the checked suite again in what was written."""
        data = self.document.data
        if place[0] == "scenarios":
            index = int(place[1])
            return self._place(place[2:], data["scenarios"][index], index=index)
        return written_path(place, data)

    def _refuse_repeated_ids(self, written: Iterable[Any]) -> None:
        """Refuse equal ids, also where only a file system takes them for equal."""
        seen: dict[str, str] = {}
        for index, one in enumerate(written):
            name = one.get("id") if isinstance(one, dict) else None
            if not isinstance(name, str):
                continue
            earlier = seen.get(name.casefold())
            if earlier is None:
                seen[name.casefold()] = name
                continue
            what = "is the id of an earlier scenario"
            if earlier != name:
                what = f"differs from the id {earlier!r} in case only, and ids are file names"
            self._complain(("scenarios", index, "id"), f"{name!r} {what}: rename one")

    def _with_clusters(self, scenarios: list[Scenario], variable: str | None) -> list[Scenario]:
        """Fill in the cluster of scenarios that name none."""
        if variable is None:
            return scenarios
        filled = []
        for index, scenario in enumerate(scenarios):
            cluster = scenario.cluster or scenario.vars.get(variable)
            if cluster is None:
                self._complain(
                    ("scenarios", index),
                    f"has no cluster: give it `vars: {{{variable}: ...}}` or `cluster`",
                )
            filled.append(scenario.model_copy(update={"cluster": cluster}))
        return filled

    def _context(self) -> dict[str, Any]:
        return {
            "authored": True,
            "strict": self._strict,
            "folder": self.folder,
            "known_keys": {},
            "fixtures": self._fixtures,
        }

    def _complain(self, path: KeyPath, message: str) -> None:
        line = self.document.line(path)
        self.problems.append(Problem(self.where, line, show_path(path), message))


def _defaults_problems(
    defaults: dict[str, Any], context: dict[str, Any]
) -> Iterator[tuple[KeyPath, str]]:
    """Validate defaults as if they were a scenario that lacks nothing."""
    if "id" in defaults:
        yield ("id",), "each scenario has its own id: it cannot have a default"
    if not isinstance(defaults.get("strict", False), bool):
        yield ("strict",), f"must be true or false, not {shown(defaults['strict'])}"
    probe = {key: value for key, value in defaults.items() if key not in ("id", "strict")}
    if "turns" not in probe:
        probe.setdefault("input", "stand-in")
    try:
        Scenario.model_validate(fill_scenario({**probe, "id": "defaults"}), context=context)
    except ValidationError as error:
        yield from sentences(error, context["known_keys"])


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort by line and drop what was said twice."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)
