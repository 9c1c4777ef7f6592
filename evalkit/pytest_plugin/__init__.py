"""pytest plugin: a suite file is a test file, each of its scenarios a test.

::

    pytest data/suites/travel.yaml -q
    pytest data/suites/travel.yaml --evalkit-lane live --evalkit-trials 5 --evalkit-floor 0.9

A YAML file is collected if it is named on the command line, or lies under a path of the
ini option ``evalkit_suites``; and only if it looks like a suite. A scenario that failed
is a failed test with the graders' reasons as its text; one that could not be measured is
an *error*, as pytest calls a test that could not be run. After the scenarios of a file
comes ``_whole_suite``: what the suite as a whole comes to.

All selected scenarios of a file are run together, once, when the first of them is due;
with pytest-xdist one worker runs them and the others wait for the result. This module is
imported into every pytest of an environment that has evalkit, so it imports nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from evalkit.pytest_plugin.suite_files import SuiteFile
    from evalkit.results import Run

_OPTIONS: Final = {
    "lane": ("LANE", "contract or live [default: contract where every scenario has a script]"),
    "trials": ("N", "attempts at each scenario [default: 1]"),
    "seed": ("SEED", "seed of all randomness [default: 0]"),
    "agent": ("MODULE:NAME", "the agent, instead of the suite's own"),
    "floor": ("RATE", "live lane: the suite's pass rate decides, and must be at least this"),
    "out": ("FOLDER", "keep the run directories here [default: pytest's temporary folder]"),
    "network-barrier": ("BARRIER", "namespace, python or none [default: namespace]"),
}
"""Each is an option ``--evalkit-NAME`` and an ini option ``evalkit_NAME``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--evalkit-...``, and an ini option of the same name to each."""
    group = parser.getgroup("evalkit", "agent evaluations (evalkit)")
    for name, (metavar, what) in _OPTIONS.items():
        group.addoption(f"--evalkit-{name}", metavar=metavar, default=None, help=what)
        parser.addini(f"evalkit_{name.replace('-', '_')}", help=what, default="")
    parser.addini(
        "evalkit_suites",
        type="paths",
        default=[],
        help="suite files, or folders of them, that are collected as tests",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect a YAML file that is a suite and is meant to be run."""
    if file_path.suffix not in {".yaml", ".yml"}:
        return None
    named = _named_suites(parent.config)
    is_meant = parent.session.isinitpath(file_path) or not named.isdisjoint(
        (file_path, *file_path.parents)
    )
    if not is_meant:
        return None
    from evalkit.pytest_plugin.suite_files import SuiteFile, looks_like_a_suite

    if file_path in named or looks_like_a_suite(file_path):
        return SuiteFile.from_parent(parent, path=file_path)
    return None


def _named_suites(config: pytest.Config) -> frozenset[Path]:
    """Give the paths of ``evalkit_suites``, normalised as pytest's own are."""
    return frozenset(Path(os.path.normpath(path)) for path in config.getini("evalkit_suites"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Let ``_whole_suite`` stand only where the whole suite is run, or it alone is asked for.

    Here, because ``--lf`` takes items away after every hook that is meant for it.
    """
    if not any(hasattr(item, "evalkit_told") for item in session.items):
        return
    from evalkit.pytest_plugin.suite_files import partial_aggregates

    dropped = partial_aggregates(session.items)
    if dropped:
        session.items[:] = [item for item in session.items if item not in dropped]
        session.config.hook.pytest_deselected(items=dropped)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    """Add to an item's report what the summary shows, in a form that xdist carries."""
    outcome = yield
    told = getattr(item, "evalkit_told", None)
    if told is not None:
        report = outcome.get_result()
        report.evalkit = told
        if call.when == "call" and told["duration_s"] is not None:
            report.duration = told["duration_s"]


def pytest_configure(config: pytest.Config) -> None:
    """Add the summary of runs to a session."""
    config.pluginmanager.register(_RunSummary(), "evalkit-summary")


class _RunSummary:
    """Collects, where reports are shown, what was run, and says it in the end."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember the run that a report comes from."""
        told = getattr(report, "evalkit", None)
        if told is not None:
            self._runs[told["folder"]] = told["summary"]

    def pytest_terminal_summary(self, terminalreporter: _Terminal) -> None:
        """Say what each run came to, and where it lies."""
        if self._runs:
            terminalreporter.section("evalkit")
        for folder, summary in self._runs.items():
            terminalreporter.write_line(f"{summary}\n  run {folder}")


class _Terminal(Protocol):
    """pytest's terminal reporter, as far as it is used here."""

    def section(self, title: str) -> None:
        """Write a title across the screen."""

    def write_line(self, line: str) -> None:
        """Write a line."""


class RunsSuites(Protocol):
    """What the fixture ``evalkit_run`` gives."""

    def __call__(self, suite: Any, **options: Any) -> Run:
        """Run a suite."""


@pytest.fixture
def evalkit_run(tmp_path: Path) -> RunsSuites:
    """Give a function that runs a suite, or some of its scenarios, inside of a test.

    It takes what :func:`evalkit.run_suite` takes; the run directory lies in ``tmp_path``::

        def test_my_agent(evalkit_run):
            run = evalkit_run("data/suites/travel.yaml", agent=my_agent)
            assert_passed(run)                    # from evalkit.testing
    """

    def run_here(suite: Any, **options: Any) -> Run:
        from evalkit.run import run_suite

        return run_suite(suite, **{"out": tmp_path / "runs", "progress": False, **options})

    return run_here
