"""``evalkit doctor``."""

from __future__ import annotations

import json

import click

from evalkit.cli.app import INCOMPLETE, PASSED
from evalkit.terminal import columns, printable

_NOT_US = (
    "evalkit is installed as evalkit-lab; the distribution called plain evalkit is somebody else's"
)


@click.command(epilog="Example: evalkit doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def doctor(*, as_json: bool) -> int:
    """Say what this machine can do for trials, and how to allow more.

    Exits with 0 if the contract lane can run here, else with 2.
    """
    from evalkit.sandbox.doctor import diagnose

    findings = diagnose()
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        rows = [(finding.state, finding.name, finding.detail) for finding in findings]
        click.echo(columns(rows, head=("state", "what", "found")))
        for finding in findings:
            if finding.advice:
                click.echo(printable(f"\n{finding.name}: {finding.advice}"))
        click.echo(f"\n{_NOT_US}")
    return INCOMPLETE if any(finding.state == "missing" for finding in findings) else PASSED
