"""``evalkit report``."""

from __future__ import annotations

from pathlib import Path

import click

from evalkit.cli.app import PASSED
from evalkit.terminal import printable


@click.command(epilog="Example: evalkit report pass_rates --run data/runs/RUN")
@click.argument("name")
@click.option("--run", type=click.Path(path_type=Path), help="The run directory.")
@click.option("--out", default="reports", show_default=True, help="Folder for the HTML file.")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the notebook; may be given several times.",
)
@click.option("--timeout", default=600.0, show_default=True, help="Seconds that it may take.")
def report(
    name: str, *, run: Path | None, out: str, parameters: tuple[str, ...], timeout: float
) -> int:
    """Render the notebook NAME (shipped, or an .ipynb file) as one HTML file."""
    from evalkit.reporting import parse_parameters, render_report

    values = parse_parameters(name, parameters)
    path = render_report(name, run=run, out=out, parameters=values, timeout_s=timeout)
    click.echo(printable(path))
    return PASSED
