"""``evalkit run`` and ``evalkit grade``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.app import EXIT_CODES
from evalkit.cli.outputs import Outputs, with_outputs
from evalkit.cli.paths import run_folder
from evalkit.errors import UsageError
from evalkit.grade import worst
from evalkit.summaries import run_text

if TYPE_CHECKING:
    from evalkit.results import Run

_MORE_GRADERS = click.option(
    "-g",
    "--grader",
    "graders",
    multiple=True,
    help="A further grader for every scenario; may be given several times.",
)
_IMPORT = click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A module to import first, one that registers graders, say.",
)
_OUT = click.option("--out", default="data/runs", show_default=True, help="Folder for the run.")


@click.command(
    epilog="Example: evalkit run data/suites/travel.yaml --lane live --trials 5 --seed 7"
)
@click.argument("suites", nargs=-1, type=click.Path(path_type=Path))
@click.option("--agent", metavar="MODULE:NAME", help="The agent, instead of the suite's own.")
@click.option("--lane", type=click.Choice(["contract", "live", "quality"]), help="How to run it.")
@click.option(
    "-n",
    "--trials",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Attempts at each scenario.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of all randomness.")
@click.option("-s", "--scenario", "scenarios", multiple=True, help="Run only this scenario.")
@click.option(
    "-j",
    "--parallel",
    type=click.IntRange(min=1),
    help="Trials in flight  [default: number of CPUs]",
)
@click.option(
    "--isolation",
    type=click.Choice(["process", "none"]),
    default="process",
    show_default=True,
    help="A fresh process for each trial, or none for debugging.",
)
@click.option(
    "--network-barrier",
    type=click.Choice(["namespace", "python", "none"]),
    default="namespace",
    show_default=True,
    help="What shuts the network off in the contract lane.",
)
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="Go on with a run.")
@_MORE_GRADERS
@_IMPORT
@_OUT
@with_outputs
def run(suites: tuple[Path, ...], resume: Path | None, **options: Any) -> int:
    """Run an agent through SUITES (files or folders) and grade what it does.

    Exits with 0 if every trial passed, 1 if one failed, 2 if one could not be
    measured, 3 if nothing could be run as asked.
    """
    outputs = Outputs.taken_from(options)
    outputs.prepare()
    import_modules(options.pop("modules"))
    if resume is None:
        return _tell(_runs(_load_all(suites), options), outputs)
    if suites:
        raise UsageError("give either suites or --resume RUN, not both")
    from evalkit.run import resume_run

    return _tell([resume_run(run_folder(resume), n_parallel=options["parallel"])], outputs)


@click.command(epilog="Example: evalkit grade data/runs/RUN --suite data/suites/travel.yaml")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--suite", required=True, type=click.Path(path_type=Path), help="What should have happened."
)
@click.option(
    "--match",
    "pairs",
    multiple=True,
    metavar="RUN_ID=SUITE_ID",
    help="Which scenario of the suite one of the run's is, where their ids differ.",
)
@_MORE_GRADERS
@_IMPORT
@click.option("--out", help="Folder for the new run  [default: beside the old one]")
@with_outputs
def grade(run: Path, suite: Path, **options: Any) -> int:
    """Grade RUN by the expectations of a suite, without running anything.

    Makes a new run that shares the ledgers of the old one. Exits as `run` does.
    """
    from evalkit.run import grade_run, load_suite

    outputs = Outputs.taken_from(options)
    outputs.prepare()
    import_modules(options["modules"])
    graded = grade_run(
        run_folder(run),
        load_suite(suite),
        match=_matching(options["pairs"]),
        graders=options["graders"],
        out=options["out"],
    )
    return _tell([graded], outputs)


def _runs(suites: list[Any], options: dict[str, Any]) -> Iterator[Run]:
    """Run one suite after the other."""
    from evalkit.run import run_suite

    for suite in suites:
        yield run_suite(
            suite,
            agent=options["agent"],
            lane=options["lane"],
            n_trials=options["trials"],
            seed=options["seed"],
            scenarios=options["scenarios"],
            n_parallel=options["parallel"],
            isolation=options["isolation"],
            network_barrier=options["network_barrier"],
            graders=options["graders"],
            out=options["out"],
        )


def import_modules(names: tuple[str, ...]) -> None:
    """Import what registers graders.

    Raises
    ------
    UsageError
        If there is no such module.
    """
    if names:
        sys.path.insert(0, str(Path.cwd()))
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UsageError(f"--import {name}: {error}") from error


def _matching(pairs: tuple[str, ...]) -> Any:
    """Read ``--match``; ids that are not named are equal."""
    named = {}
    for pair in pairs:
        foreign, sign, own = pair.partition("=")
        if not (foreign and sign and own):
            raise UsageError(f"--match {pair!r}: write it as RUN_ID=SUITE_ID")
        named[foreign] = own
    return (lambda foreign: named.get(foreign, foreign)) if named else None


def _load_all(paths: tuple[Path, ...]) -> list[Any]:
    """Load every suite before any is run."""
    from evalkit.cli.suites import suite_files
    from evalkit.errors import Problem, SuiteError
    from evalkit.run import load_suite

    loaded, problems = [], list[Problem]()
    for path in suite_files(paths):
        try:
            loaded.append(load_suite(path))
        except SuiteError as error:
            problems += error.problems
    if problems:
        raise SuiteError(problems)
    return loaded


def _tell(runs: Iterable[Run], outputs: Outputs) -> int:
    """Print each run once it is done, so that none is lost when a later one cannot start."""
    from evalkit.ledger import combined_digest

    done = []
    for run in runs:
        done.append(run)
        outputs.say(run_text(run), [run])
    if len(done) > 1:
        outputs.say(f"combined digest  {combined_digest(run.digest or '' for run in done)}")
    written = outputs.publish(done)
    return EXIT_CODES[worst(run.status for run in done)] or written
