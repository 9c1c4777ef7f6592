"""``evalkit baseline``: pin, list, show and verify baselines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.app import FAILED, PASSED
from evalkit.cli.paths import run_folder
from evalkit.errors import BaselineError, UsageError
from evalkit.terminal import columns, one_line, percent, printable

if TYPE_CHECKING:
    from evalkit.baselines import Baseline, Finding

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default="data/baselines",
    show_default=True,
    help="Where baselines lie.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


@click.group(epilog="Example: evalkit baseline pin main data/runs/A data/runs/B data/runs/C")
def baseline() -> None:
    """Pin results of several runs, for a gate to compare with."""


@baseline.command(epilog="Example: evalkit baseline pin main data/runs/A data/runs/B data/runs/C")
@click.argument("name")
@click.argument(
    "runs", nargs=-1, required=True, metavar="RUN RUN RUN [...]", type=click.Path(path_type=Path)
)
@_folder
@_as_json
def pin(name: str, runs: tuple[Path, ...], *, folder: Path, as_json: bool) -> int:
    """Pool at least three complete runs as the baseline NAME.

    They must be of one suite, lane and agent, with the same models and graders.
    The file holds ids, counts and hashes only, and is never overwritten. Exits
    with 3, and every reason, where the runs cannot be pooled.
    """
    from evalkit.baselines import pin_baseline

    try:
        pinned = pin_baseline(name, list(map(run_folder, runs)), folder=folder)
    except BaselineError as error:
        raise UsageError(_refusal(name, error)) from error
    if as_json:
        click.echo(json.dumps(pinned.to_json(), indent=2))
        return PASSED
    path = folder / f"{name}.json"
    click.echo("\n".join(_head(pinned)))
    click.echo(printable(f"\npinned {path}; review it and commit it like code"))
    return PASSED


def _refusal(name: str, error: BaselineError) -> str:
    n = len(error.reasons)
    reasons = "\n".join(f"  - {reason}" for reason in error.reasons)
    return f"baseline {name!r} is not pinned, for {n} reason{'s' if n != 1 else ''}:\n{reasons}"


@baseline.command("list", epilog="Example: evalkit baseline list")
@_folder
@_as_json
def list_(*, folder: Path, as_json: bool) -> int:
    """List the baselines of a folder.

    Exits with 1 if one of them cannot be used: edited, say.
    """
    from evalkit.baselines import list_baselines

    found = list_baselines(folder)
    rows: list[dict[str, Any]] = json.loads(found.to_json(orient="records"))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo(printable(f"{folder}: no baselines; pin one: evalkit baseline pin"))
    else:
        click.echo("\n".join(_list_lines(rows)))
    return FAILED if any(row["problem"] for row in rows) else PASSED


def _list_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    usable = [row for row in rows if not row["problem"]]
    cells = (
        (
            row["name"], row["suite"], row["lane"], row["n_runs"], row["n_scenarios"],
            row["n_trials"], percent(row["rate"]), percent(row["median_rate"]), row["cost"],
            row["created_at"][:10],
        )
        for row in usable
    )  # fmt: skip
    counts = ("runs", "scenarios", "trials", "rate", "median")
    head = ("name", "suite", "lane", *counts, "cost", "measured")
    if usable:
        yield columns(cells, head=head, right="lllrrrrrll")
    for row in rows:
        if row["problem"]:
            yield printable(f"cannot be used: {row['problem']}")


@baseline.command(epilog="Example: evalkit baseline show main")
@click.argument("name")
@_folder
@_as_json
def show(name: str, *, folder: Path, as_json: bool) -> int:
    """Show a baseline: its runs, and what passed and failed in each scenario."""
    from evalkit.baselines import load_baseline

    loaded = load_baseline(name, folder=folder)
    if as_json:
        click.echo(json.dumps(loaded.to_json(), indent=2))
    else:
        click.echo("\n".join([*_head(loaded), "", *_tables(loaded)]))
    return PASSED


def _head(shown: Baseline) -> Iterator[str]:
    """Say what it is, and what is not known of it."""
    yield printable(f"baseline  {shown.name} of {shown.suite} ({shown.lane} lane)")
    yield (
        f"pooled    {len(shown.runs)} runs, {len(shown.scenarios)} scenarios, "
        f"{shown.n_trials} trials"
    )
    yield f"rate      {percent(shown.rate)}, median of the runs {percent(shown.median_rate)}"
    yield printable(
        f"agent     {one_line(shown.agent or 'unknown')} {shown.agent_hash[:12]}".rstrip()
    )
    if shown.models:
        yield f"models    {one_line(', '.join(shown.models))}"
    amount = "" if shown.cost_usd is None else f", {shown.cost_usd:.4f} USD"
    yield f"cost      {shown.cost}{amount}"
    yield f"judge     {one_line(shown.judge)}"
    yield f"seal      {shown.sha256}"


def _tables(shown: Baseline) -> Iterator[str]:
    yield columns(
        (
            (run.run_id, run.seed, run.commit[:12], run.n_passed, run.n_failed, percent(run.rate))
            for run in shown.runs
        ),
        head=("run", "seed", "commit", "passed", "failed", "rate"),
        right="lrlrrr",
    )
    yield ""
    yield columns(
        (
            (
                each.id, each.hash[:12], sum(each.passed), sum(each.failed), percent(each.rate),
                percent(each.median_rate),
            )
            for each in shown.scenarios
        ),
        head=("scenario", "hash", "passed", "failed", "rate", "median"),
        right="llrrrr",
    )  # fmt: skip


@baseline.command(epilog="Example: evalkit baseline verify main --suite data/suites/travel.yaml")
@click.argument("name")
@click.argument("runs", nargs=-1, metavar="[RUN ...]", type=click.Path(path_type=Path))
@click.option(
    "--suite",
    type=click.Path(path_type=Path),
    help="Also say which scenarios changed since.",
)
@_folder
@_as_json
def verify(
    name: str, runs: tuple[Path, ...], *, suite: Path | None, folder: Path, as_json: bool
) -> int:
    """Check the seal of a baseline; with RUNs, also that its counts are theirs.

    Exits with 1 if it was edited, does not follow from a run, or is of another
    suite. Scenarios that changed since are listed, and are no error.
    """
    from evalkit.baselines import verify_baseline
    from evalkit.run import load_suite

    findings = verify_baseline(
        name,
        runs=list(map(run_folder, runs)),
        suite=None if suite is None else load_suite(suite),
        folder=folder,
    )
    if as_json:
        told = [{**each._asdict(), "is_wrong": each.is_wrong} for each in findings]
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo("\n".join(_findings(name, findings, n_runs=len(runs))))
    return FAILED if any(each.is_wrong for each in findings) else PASSED


def _findings(name: str, findings: tuple[Finding, ...], *, n_runs: int) -> Iterator[str]:
    if findings:
        rows = ((each.kind, each.about, each.message) for each in findings)
        yield columns(rows, head=("found", "in", "what"))
    n_wrong = sum(each.is_wrong for each in findings)
    checked = f"its seal and {n_runs} runs" if n_runs else "its seal"
    yield printable(f"{name}: {n_wrong} wrong" if n_wrong else f"{name}: verified, {checked}")
    if len(findings) > n_wrong:
        yield f"{len(findings) - n_wrong} scenarios are not as they were when it was pinned"
