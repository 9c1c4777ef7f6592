"""``evalkit scenario``: scenarios out of trials that were recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.app import PASSED
from evalkit.cli.paths import run_folder
from evalkit.errors import UsageError
from evalkit.terminal import one_line, printable

if TYPE_CHECKING:
    from evalkit.drafting import DraftedSuite, LeftOut

_LISTED = 20
"""Trials that are named one by one."""


@click.group(epilog="Example: evalkit scenario from-trial data/runs/RUN --many --out drafts.yaml")
def scenario() -> None:
    """Make scenarios out of trials that were recorded."""


@scenario.command(
    "from-trial", epilog="Example: evalkit scenario from-trial data/runs/RUN weather-gate-book 0"
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("name", metavar="[SCENARIO]", required=False)
@click.argument("trial", required=False, type=click.IntRange(min=0))
@click.option(
    "--suite",
    type=click.Path(path_type=Path),
    help="Says what should have happened  [default: the run's own suite]",
)
@click.option("--many", is_flag=True, help="Draft from every trial of --status, not from one.")
@click.option(
    "--status",
    type=click.Choice(["failed", "incomplete", "passed", "any"]),
    default="failed",
    show_default=True,
    help="With --many: which trials.",
)
@click.option("--out", type=click.Path(path_type=Path), help="File to write  [default: print]")
@click.option("--append", is_flag=True, help="Add to the scenarios that the file has.")
@click.option("--json", "as_json", is_flag=True, help="Print what was drafted as JSON.")
def from_trial(run: Path, name: str | None, trial: int | None, **options: Any) -> int:
    """Draft a scenario from TRIAL (0 unless given) of SCENARIO in RUN.

    Its model script lets a scripted model answer as the model did then; its
    expectations are the suite's, or the calls that were made, marked REVIEW.
    With --many, one file holds a scenario for every failed trial. RUN is a run
    directory, or a folder of runs: then its latest.
    """
    from evalkit.drafting import draft_suite, write_drafts

    _check_usage(name, trial, options)
    out: Path | None = options["out"]
    many = options["many"]
    drafted = draft_suite(
        run_folder(run),
        suite=options["suite"],
        status=options["status"] if many else "any",
        scenario=name,
        trial=None if many else trial or 0,
    )
    if not drafted.drafts:
        raise UsageError(_nothing(drafted, options))
    if out is not None:
        write_drafts(drafted, out, append=options["append"])
    elif not options["as_json"]:
        click.echo(drafted.text, nl=False)
    if options["as_json"]:
        click.echo(json.dumps(_as_json(drafted, out), indent=2))
    else:
        click.echo("\n".join(_report(drafted, out)), err=out is None)
    return PASSED


def _check_usage(name: str | None, trial: int | None, options: dict[str, Any]) -> None:
    many, given = options["many"], click.get_current_context().get_parameter_source("status")
    if name is None and not many:
        raise UsageError("name the SCENARIO, or give --many for all failed trials of the run")
    if many and trial is not None:
        raise UsageError("--many drafts from many trials: leave TRIAL out")
    if not many and given is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--status chooses among many trials: add --many")
    if options["append"] and options["out"] is None:
        raise UsageError("--append needs --out FILE, the suite to add to")


def _nothing(drafted: DraftedSuite, options: dict[str, Any]) -> str:
    """Say why there is no draft at all."""
    if not drafted.undrafted:
        return (
            f"{drafted.run_id}: no trial is {options['status']}; "
            "choose others with --status incomplete or --status any"
        )
    lines = _left_out(drafted.undrafted)
    return "\n".join([f"{drafted.run_id}: nothing could be drafted", *lines])


def _report(drafted: DraftedSuite, out: Path | None) -> Iterator[str]:
    """Say what was drafted, what needs a look, and what is not there."""
    to_review = [draft for draft in drafted.drafts if draft.review]
    n = len(drafted.drafts)
    yield f"drafted {n} scenario{'s' if n != 1 else ''}, {len(to_review)} to review"
    for draft in to_review[:_LISTED]:
        yield f"  review  {draft.id}: {one_line(draft.review[0])}"
    if len(to_review) > _LISTED:
        yield f"  ... and {len(to_review) - _LISTED} more; look for REVIEW in the file"
    if drafted.same:
        yield f"left out {len(drafted.same)} with the same input and calls as another"
    if drafted.undrafted:
        yield f"could not draft {len(drafted.undrafted)}:"
        yield from _left_out(drafted.undrafted)
    if out is not None:
        yield printable(f"suite  {out}")
        yield printable(f"check  evalkit check {out}")


def _left_out(trials: tuple[LeftOut, ...]) -> Iterator[str]:
    for one in trials[:_LISTED]:
        yield f"  {one_line(one.scenario)}, trial {one.trial}: {one_line(one.reason)}"
    if len(trials) > _LISTED:
        yield f"  ... and {len(trials) - _LISTED} more"


def _as_json(drafted: DraftedSuite, out: Path | None) -> dict[str, Any]:
    return {
        "run_id": drafted.run_id,
        "suite": None if out is None else str(out),
        "text": drafted.text if out is None else None,
        "drafted": [
            {
                "id": draft.id,
                "scenario": draft.scenario,
                "trial": draft.trial,
                "review": list(draft.review),
            }
            for draft in drafted.drafts
        ],
        "same": [one._asdict() for one in drafted.same],
        "undrafted": [one._asdict() for one in drafted.undrafted],
    }
