"""``evalkit import``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from evalkit.cli.app import PASSED
from evalkit.summaries import rate_line
from evalkit.terminal import printable


def _formats() -> str:
    from evalkit.importers import FORMATS

    return "\n".join(f"  {name:<12}{entry.description}" for name, entry in FORMATS.items())


class _ImportCommand(click.Command):
    """Lists the formats in its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\nFormats:\n{_formats()}\n")
        super().format_epilog(ctx, formatter)


@click.command(
    "import", cls=_ImportCommand, epilog="Example: evalkit import tau-bench gpt-4o-airline.json"
)
@click.argument("format")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--out", default="data/runs", show_default=True, help="Folder for the run.")
@click.option(
    "--write-tools",
    metavar="NAME,NAME",
    help="tau-bench: the tools that change the world; its gold actions are expected of these.",
)
@click.option("--scenario-key", help="Chat formats and spans: the key that names the scenario.")
@click.option("--trial-key", help="Chat formats: the key that numbers the trial.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def import_(format: str, path: Path, **options: Any) -> int:  # noqa: A002 - the argument's name in the help
    """Import what another tool recorded (FORMAT, a file or folder) as a run.

    Exits with 0 once the run is written, whatever its trials' status.
    """
    from evalkit.importers import import_run
    from evalkit.importers.writing import SUITE_FILE
    from evalkit.results import summary

    out, as_json = options.pop("out"), options.pop("as_json")
    write_tools = options.pop("write_tools")
    given = {name: value for name, value in options.items() if value is not None}
    if write_tools is not None:
        given["write_tools"] = [name.strip() for name in write_tools.split(",") if name.strip()]
    run = import_run(format, path, out=out, **given)
    suite = run.folder / SUITE_FILE
    if as_json:
        told = {"run_id": run.id, "folder": str(run.folder), "n_trials": len(run.records)}
        suite_path = str(suite) if suite.exists() else None
        click.echo(json.dumps(told | {"suite": suite_path, "digest": run.digest}, indent=2))
        return PASSED
    click.echo(f"imported {len(run.records)} trials: {summary(run.records)}")
    if any(record.grades for record in run.records):
        click.echo(rate_line(run))
    click.echo(printable(f"run    {run.folder}"))
    words = ["evalkit", "grade", str(run.folder), "--suite"]
    words.append(str(suite) if suite.exists() else "SUITE.yaml")
    click.echo(printable(f"grade  {shlex.join(words)}"))
    return PASSED
