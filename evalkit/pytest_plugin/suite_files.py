"""A suite file as pytest sees it: a file whose scenarios are tests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from evalkit.errors import SuiteError, UsageError
from evalkit.outcomes import Outcome, outcomes, show_command
from evalkit.publishing import for_log
from evalkit.publishing.places import scenario_lines
from evalkit.pytest_plugin.choices import Choices
from evalkit.pytest_plugin.sharing import NotRun, shared_run
from evalkit.terminal import one_line, percent, printable

if TYPE_CHECKING:
    from evalkit.results import Run
    from evalkit.suite import Scenario, Suite

AGGREGATE: Final = "_whole_suite"
"""Name of the item that stands for the whole suite; no scenario's id begins so."""

_KEY_OF_A_SUITE: Final = re.compile(
    rb"""(?:^|\A\xef\xbb\xbf|\A\s*\{\s*)["']?(?:suite|scenarios)["']?[ ]*:""", re.MULTILINE
)
_SNIFFED: Final = 5_000_000

_MEANS_SOMETHING: Final = frozenset(
    {
        *("anyio", "asyncio", "django_db", "filterwarnings", "flaky", "no_cover", "parametrize"),
        *("repeat", "skip", "skipif", "timeout", "trio", "usefixtures", "xdist_group", "xfail"),
    }
)
"""Markers that make pytest or its plugins do something: a tag must not."""


def looks_like_a_suite(path: Path) -> bool:
    """Tell from its text whether a YAML file is meant as a suite, even a broken one."""
    try:
        with path.open("rb") as file:
            return _KEY_OF_A_SUITE.search(file.read(_SNIFFED)) is not None
    except OSError:
        return False


class SuiteFile(pytest.File):
    """A suite file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Give an item a scenario, and one for the whole.

        Raises
        ------
        CollectError
            If the suite or an option is wrong, with every problem.
        """
        from evalkit.run import default_lane, load_suite

        try:
            self.choices = Choices.of(self.config)
            self.suite = load_suite(self.path)
            self.lane = self.choices.lane or default_lane(self.suite)
        except (SuiteError, UsageError) as error:
            raise self.CollectError(printable(error)) from None
        lines = scenario_lines(self.path)
        for tag in _marker_names(self.suite):
            self.config.addinivalue_line("markers", f"{tag}: a tag of an evalkit suite")
        for scenario in self.suite:
            item: ScenarioItem = ScenarioItem.from_parent(self, name=scenario.id)
            item.describe(scenario, line=lines.get(scenario.id, 1))
            yield item
        yield AggregateItem.from_parent(self, name=AGGREGATE)

    @cached_property
    def _items(self) -> tuple[pytest.Item, ...]:
        """The items that are left after every selection."""
        return tuple(item for item in self.session.items if item.parent is self)

    @cached_property
    def selected(self) -> tuple[str, ...]:
        """Ids of the scenarios to run: all of them where the whole suite is asked for."""
        asked = {item.name for item in self._items}
        ids = (scenario.id for scenario in self.suite)
        return tuple(ids) if AGGREGATE in asked else tuple(each for each in ids if each in asked)

    @cached_property
    def floor(self) -> float | None:
        """The floor, where the item that keeps it is run; never for copies of one trial."""
        is_kept = any(isinstance(each, AggregateItem) for each in self._items)
        return self.choices.floor if is_kept and self.lane != "contract" else None

    @cached_property
    def run(self) -> Run:
        """The run of all selected scenarios, made when it is first asked for.

        Raises
        ------
        NotRun
            If nothing could be run.
        """
        key = "\n".join((str(self.path.resolve()), *self.selected))
        return shared_run(self.config, key, execute=self._execute)

    @cached_property
    def outcomes(self) -> Mapping[str, Outcome]:
        """What came out of each scenario, by id."""
        return {outcome.scenario: outcome for outcome in outcomes(self.run)}

    @cached_property
    def summary(self) -> str:
        """The run in one line."""
        return one_line(f"{self.suite.name} ({self.lane} lane): {_rate_of(self.run)}", limit=500)

    def _execute(self, folder: Path) -> Run:
        from evalkit.run import run_suite

        choices = self.choices
        return run_suite(
            self.suite,
            agent=choices.agent,
            lane=self.lane,
            n_trials=choices.n_trials,
            seed=choices.seed,
            out=choices.out or folder,
            network_barrier=choices.network_barrier,
            scenarios=self.selected,
            progress=False,
        )


def _rate_of(run: Run) -> str:
    """Count what there was, and give the rate with its interval where trials are no copies."""
    from evalkit.results import summary

    if run.manifest.lane == "contract":
        return summary(run.records)
    from evalkit.summaries import rate_line

    return f"{summary(run.records)}; {rate_line(run)}"


class Told(Exception):
    """An item's result that is no pass; its text is all that is shown of it."""


class _SuiteItem(pytest.Item):
    """An item of a suite file."""

    parent: SuiteFile
    evalkit_told: dict[str, Any] | None = None
    """What its reports carry."""
    line = 1

    @property
    def evalkit_suite(self) -> Suite:
        """The suite that it belongs to."""
        return self.parent.suite

    def setup(self) -> None:
        """Run the suite if nobody has; what could not be measured is an error of the test."""
        try:
            run = self.parent.run
        except NotRun as error:
            raise Told(for_log(printable(error))) from None
        self.evalkit_told = {
            "folder": str(run.folder),
            "summary": for_log(self.parent.summary),
            "duration_s": self.duration_s(),
        }
        if reason := self.not_measured():
            raise Told(reason)

    def runtest(self) -> None:
        """Fail if what was measured is no pass."""
        if reason := self.failed():
            raise Told(reason)

    def duration_s(self) -> float | None:
        """Say how long it took by itself."""
        return 0.0

    def not_measured(self) -> str:
        """Say why it could not be measured; empty if it could."""
        raise NotImplementedError

    def failed(self) -> str:
        """Say why it failed; empty if it did not."""
        raise NotImplementedError

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Say where it is written."""
        return self.path, self.line - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a result by its text alone; anything else is a fault of evalkit itself."""
        if not isinstance(excinfo.value, Told):
            return super().repr_failure(excinfo, style)
        shown = excinfo.getrepr(style="value")
        crash = shown.reprcrash
        if crash is not None:
            crash.path, crash.lineno = str(self.path), self.line
            crash.message = str(excinfo.value).partition("\n")[0]
        return shown


class ScenarioItem(_SuiteItem):
    """One scenario."""

    def describe(self, scenario: Scenario, *, line: int) -> None:
        """Take over what the suite says of it: its tags are markers, and words for ``-k``."""
        self.line = line
        self.scenario = scenario
        self.extra_keyword_matches.update((*scenario.tags, self.parent.suite.name))
        for tag in scenario.tags:
            if _is_marker_name(tag):
                self.add_marker(tag)
        _without_timeout(self)

    @property
    def outcome(self) -> Outcome:
        """What came out."""
        return self.parent.outcomes[self.name]

    def duration_s(self) -> float | None:
        """Say how long its trials took."""
        return self.outcome.duration_s

    def not_measured(self) -> str:
        """Give the reasons where a trial is incomplete and the others do not fail it."""
        if not self.outcome.count("incomplete"):
            return ""
        good = _meets_its_bar(self.outcome, lane=self.parent.lane)
        return self._text() if good or self.outcome.status == "incomplete" else ""

    def failed(self) -> str:
        """Give the reasons where it misses its bar."""
        if _meets_its_bar(self.outcome, lane=self.parent.lane):
            return ""
        if self.parent.floor is not None and not _has_a_bar(self.outcome):
            pytest.xfail(f"{self.outcome.headline} (the floor of {AGGREGATE} decides)")
        return self._text()

    def _text(self) -> str:
        outcome = self.outcome
        lines = [outcome.headline] if len(outcome.records) > 1 else []
        if outcome.status == "incomplete" and not lines:
            lines = ["could not be measured:"]
        lines += [outcome.reasons, "", show_command(self.parent.run, outcome)]
        return for_log(printable("\n".join(lines)))


class AggregateItem(_SuiteItem):
    """The whole suite: in the contract lane all must pass; live, its rate counts."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        _without_timeout(self)

    def not_measured(self) -> str:
        """Name the scenarios with trials that are incomplete, if none failed its bar."""
        if self._failing() or self._below_floor():
            return ""
        missing = [name for name, each in self.parent.outcomes.items() if each.count("incomplete")]
        return self._text("incomplete", missing) if missing else ""

    def failed(self) -> str:
        """Name the scenarios that miss their bar; say the rate where it misses the floor."""
        if below := self._below_floor():
            return for_log(printable(f"{below}\n{self.parent.summary}"))
        failing = self._failing()
        return self._text("not passed", failing) if failing else ""

    def _failing(self) -> list[str]:
        found = self.parent.outcomes.items()
        by_rate = self.parent.floor is not None
        return [
            name
            for name, outcome in found
            if outcome.status == "failed"
            and not _meets_its_bar(outcome, lane=self.parent.lane)
            and (_has_a_bar(outcome) or not by_rate)
        ]

    def _below_floor(self) -> str:
        """Say that the rate misses the floor; empty if it does not, or if there is none."""
        floor = self.parent.floor
        if floor is None:
            return ""
        from evalkit.stats import pass_rates

        rate = float(pass_rates(self.parent.run).iloc[0]["rate"])
        if rate >= floor or rate != rate:
            return ""  # without a rate, trials are incomplete, which is said elsewhere
        return f"pass rate {percent(rate)} is below the floor of {percent(floor)}"

    def _text(self, what: str, scenarios: list[str]) -> str:
        n = len(self.parent.outcomes)
        head = f"{len(scenarios)} of {n} scenarios {what}: {', '.join(scenarios[:20])}"
        more = f" and {len(scenarios) - 20} more" if len(scenarios) > 20 else ""
        return for_log(printable(f"{head}{more}\n{self.parent.summary}"))


def _is_marker_name(tag: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z][\w.+-]*", tag)) and tag not in _MEANS_SOMETHING


def _marker_names(suite: Suite) -> list[str]:
    """Give the tags that can be markers; all are words for ``-k``."""
    return sorted({tag for scenario in suite for tag in scenario.tags if _is_marker_name(tag)})


def partial_aggregates(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Give the items for whole suites of which only some scenarios are selected.

    One that is selected alone was asked for by name: it runs the whole suite.
    """
    by_file: dict[Any, list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, _SuiteItem):
            by_file.setdefault(item.parent, []).append(item)
    return [
        item
        for file, mine in by_file.items()
        for item in mine
        if isinstance(item, AggregateItem) and 1 < len(mine) <= len(file.suite)
    ]


def _has_a_bar(outcome: Outcome) -> bool:
    """Say whether the suite asks something of this very scenario."""
    return outcome.planned.must_pass or outcome.planned.min_pass_rate is not None


def _meets_its_bar(outcome: Outcome, *, lane: str) -> bool:
    """Say whether a scenario with all its trials is good enough.

    Every trial must pass, unless the suite itself names a lower rate for this scenario.
    """
    planned = outcome.planned
    if lane == "contract" or planned.must_pass or planned.min_pass_rate is None:
        return outcome.status == "passed"
    n_passed = outcome.count("passed")
    return n_passed >= planned.min_pass_rate * len(outcome.records)


def _without_timeout(item: pytest.Item) -> None:
    """Keep pytest-timeout away: the first item waits for all; trials have deadlines."""
    if any(map(item.config.pluginmanager.hasplugin, ("timeout", "pytest_timeout"))):
        item.add_marker(pytest.mark.timeout(0))
