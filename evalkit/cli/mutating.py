"""``evalkit mutate``: what a suite does not notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.app import FAILED, INCOMPLETE, PASSED
from evalkit.cli.paths import run_folder
from evalkit.cli.running import import_modules

if TYPE_CHECKING:
    from evalkit.mutation import MutationReport


@click.command(epilog="Example: evalkit mutate data/suites/travel.yaml --min-score 0.95")
@click.argument("suite", required=False, type=click.Path(path_type=Path))
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    help="Break the passing trials of this run  [default: run the suite in the contract lane]",
)
@click.option(
    "--agent", metavar="MODULE:NAME", help="The agent to run, instead of the suite's own."
)
@click.option("--out", default="data/runs", show_default=True, help="Folder for the run.")
@click.option(
    "--operator", "operators", multiple=True, metavar="NAME", help="Use only this operator."
)
@click.option("--list-operators", is_flag=True, help="List the operators and stop.")
@click.option(
    "-n",
    "--trials",
    "n_trials",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Passing trials of each scenario that are broken, at most.",
)
@click.option(
    "--max-mutants",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Mutants of each trial, at most.",
)
@click.option("--seed", default=0, show_default=True, help="Chooses among too many mutants.")
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    metavar="SCORE",
    help="Exit with 1 below this score, such as 0.95.",
)
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A module to import first, one that registers graders, say.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def mutate(suite: Path | None, **options: Any) -> int:
    """Break passing trials of SUITE on purpose, and show what it does not notice.

    Each trial's record is changed in one place - a call dropped, an argument changed, a
    reply contradicted - and graded again; no agent runs for that. Every mutant that
    still passes is shown with an expectation that would notice it.

    Exits with 0; with 1 if the score is below --min-score; with 2 if nothing could be
    measured, or, with --min-score, if a scenario has no trial that passes. A mutant
    that could not be graded counts against --min-score.
    """
    if options.pop("list_operators"):
        click.echo(_operators())
        return PASSED
    if suite is None:
        raise click.UsageError("Missing argument 'SUITE'.")
    as_json, min_score = options.pop("as_json"), options.pop("min_score")
    report = _report(suite, **options)
    _show(report, as_json=as_json)
    code, why = _verdict(report, min_score)
    if why:
        click.echo(f"evalkit: {why}", err=True)
    return code


def _report(
    suite: Path, *, run: Path | None, modules: tuple[str, ...], **options: Any
) -> MutationReport:
    from evalkit.mutation import mutate_suite

    import_modules(modules)
    return mutate_suite(suite, None if run is None else run_folder(run), **options)


def _show(report: MutationReport, *, as_json: bool) -> None:
    from evalkit.publishing import for_log

    if as_json:
        told = json.dumps(report.to_json(), indent=2, allow_nan=False, default=str)
        # Equal as JSON, and no order to a runner that reads the log.
        click.echo(told.replace("##[", "##\\u005b"))
    else:
        click.echo(for_log(str(report)))


def _verdict(report: MutationReport, min_score: float | None) -> tuple[int, str]:
    """Give the exit code, and why it is not 0."""
    if not report.n_killed + report.n_survived:
        return INCOMPLETE, "no mutant could be measured"
    if min_score is None:
        return PASSED, ""
    if not report.reaches(min_score):
        return FAILED, f"the score is {report.score_low:.4f}, below {min_score:g}"
    if report.left_out:
        return INCOMPLETE, f"{len(report.left_out)} scenario(s) have no trial that passes"
    return PASSED, ""


def _operators() -> str:
    from evalkit.mutation import OPERATORS
    from evalkit.terminal import columns

    rows = [(one.name, one.kind, one.does) for one in OPERATORS]
    return columns(rows, head=("operator", "kind", "what it does"))
