"""``evalkit crash-test``: what becomes of a scenario when its agent is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from evalkit.cli.app import EXIT_CODES

if TYPE_CHECKING:
    import pandas as pd

_SHOWN: Final = ("event", "kind", "turn", "what", "status", "unanswered", "reason")
_WIDTH: Final = 160
_WIDTHS: Final = {"what": 40}
"""Characters of columns that may say more than anybody needs."""


@click.command(epilog="Example: evalkit crash-test data/suites/career.yaml save-posting")
@click.argument("suite", type=click.Path(path_type=Path))
@click.argument("scenario")
@click.option(
    "--agent", metavar="MODULE:NAME", help="The agent to run, instead of the suite's own."
)
@click.option("--seed", default=0, show_default=True, help="Randomness of the trials.")
@click.option(
    "--parallel",
    "n_parallel",
    type=click.IntRange(min=1),
    help="Trials in flight at a time  [default: number of CPUs]",
)
@click.option("--all", "lists_all", is_flag=True, help="List the moments that passed as well.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def crash_test(suite: Path, scenario: str, **options: Any) -> int:
    """Kill the agent at each moment of SCENARIO in SUITE, and see whether it gets over it.

    After each event of an undisturbed trial the agent's process is killed and started
    again on the same files and databases, and what was under way comes again. In the end
    all must hold that the scenario expects of database, state and files, and no turn may be
    answered twice. A turn that is not answered at all is shown, and is no failure.

    Exits with 0, with 1 if a moment failed, with 2 if one could not be measured.
    """
    from evalkit.grade import worst
    from evalkit.testing import crash_test as run_crash_test

    as_json, lists_all = options.pop("as_json"), options.pop("lists_all")
    rows = run_crash_test(suite, scenario, **options)
    if as_json:
        click.echo(json.dumps(json.loads(rows.to_json(orient="records")), indent=2))
    else:
        click.echo(_told(rows if lists_all else rows[rows["status"] != "passed"], len(rows)))
        click.echo(_summary(rows))
    return EXIT_CODES[worst(rows["status"])]


def _told(rows: pd.DataFrame, n_moments: int) -> str:
    """Write rows as a table."""
    from evalkit.terminal import columns, one_line

    if rows.empty:
        return f"killed at {n_moments} moments, and each time it came to the same end"
    shown = rows[list(_SHOWN)].astype(object).where(rows[list(_SHOWN)].notna(), "")
    lines = [
        tuple(one_line(row[name], limit=_WIDTHS.get(name, _WIDTH)) for name in _SHOWN)
        for row in shown.to_dict("records")
    ]
    return columns(lines, head=_SHOWN)


def _summary(rows: pd.DataFrame) -> str:
    counts = rows["status"].value_counts()
    told = ", ".join(f"{counts.get(name, 0)} {name}" for name in EXIT_CODES)
    n_unanswered = int(rows["unanswered"].sum())
    silent = f"; in {n_unanswered} a turn was not answered" if n_unanswered else ""
    return f"{len(rows)} moments: {told}{silent}"
