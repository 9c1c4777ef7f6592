"""``evalkit gate``: one verdict for a run, and the exit code for the build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalkit.cli.outputs import Outputs, with_outputs
from evalkit.cli.paths import run_folder


@click.command(epilog="Example: evalkit gate data/runs/RUN --baseline main --floor 0.90")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--baseline", metavar="NAME", help="The pinned baseline to compare with.")
@click.option(
    "--baselines", "folder", default="data/baselines", show_default=True, help="Their folder."
)
@click.option("--floor", type=float, metavar="RATE", help="Pass rate to reach, such as 0.90.")
@click.option("--floor-proven", is_flag=True, help="The interval must clear the floor, too.")
@click.option(
    "--floor-on",
    type=click.Choice(["pass_rate", "mean_grade"]),
    default="pass_rate",
    show_default=True,
    help="What the floor is about.",
)
@click.option(
    "--margin",
    type=float,
    default=0.05,
    show_default=True,
    metavar="DROP",
    help="Drop of the pass rate that must be ruled out.",
)
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="Two-sided level of the intervals.",
)
@click.option(
    "--looks",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often one looks at growing data.",
)
@click.option(
    "--on-inconclusive",
    type=click.Choice(["warn", "fail"]),
    default="warn",
    show_default=True,
    help="Whether too little to tell fails the build.",
)
@click.option(
    "--accept", multiple=True, metavar="ID", help="A scenario that may be missing or changed."
)
@click.option(
    "--gate-on",
    multiple=True,
    metavar="tag:NAME|grader:NAME",
    help="A part that may fail the build, too.",
)
@with_outputs
def gate(run: Path, **options: Any) -> int:
    """Decide whether RUN is good enough, and whether it is worse than a baseline.

    RUN is a run directory, or a folder of runs: then its latest. In the contract lane
    every planned trial must have passed. In the other lanes the pass rate is held to
    the floor and to the baseline, with an interval.

    Exits with 0 for PASS (and for INCONCLUSIVE, unless --on-inconclusive fail), 1 for
    FAIL, 2 for INVALID, 3 if it could not be decided as asked.
    """
    from evalkit.gating import gate as decide
    from evalkit.results import load_run

    outputs = Outputs.taken_from(options)
    outputs.prepare()
    loaded = load_run(run_folder(run))
    verdict = decide(loaded, **options)
    outputs.say(str(verdict), [loaded])
    return outputs.publish([loaded], verdict=verdict) or verdict.exit_code
