"""``evalkit init``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalkit.cli.app import PASSED
from evalkit.terminal import columns, printable

if TYPE_CHECKING:
    from evalkit.scaffolding import ProjectPlan

_AGENTS: Final = ("callable", "anthropic", "langgraph", "command")
"""The kinds of agent, named here so that help needs no more than this module."""


@click.command(epilog="Example: evalkit init shop-bot --agent anthropic")
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option(
    "--agent",
    type=click.Choice(_AGENTS),
    default="callable",
    show_default=True,
    help="What to start from: a Python function, the anthropic SDK, a LangGraph graph, "
    "or a program in any language.",
)
@click.option("--name", help="Of the project and its suite  [default: made of FOLDER's name]")
@click.option(
    "--keep-existing",
    is_flag=True,
    help="Leave files that are there as they are, and add what is missing.",
)
def init(folder: Path, *, agent: str, name: str | None, keep_existing: bool) -> int:
    """Start a project in FOLDER: an agent, a suite, notebooks, a workflow, a README.

    FOLDER is made where it is missing. Nothing that is there is overwritten: if a
    file is in the way, all such files are listed, nothing is made, and the exit
    code is 3.
    """
    from evalkit.scaffolding import make_project, plan_project

    plan = plan_project(folder, agent=agent, name=name)
    written = make_project(plan, keep_existing=keep_existing)
    click.echo(_told(plan, written))
    return PASSED


def _told(plan: ProjectPlan, written: tuple[str, ...]) -> str:
    """Say what was made, and what to type next."""
    if not written:
        return printable(f"{plan.folder}: everything is there; nothing was made")
    states = [(plan.paths("conflict"), "left as it is"), (plan.paths("yours"), "yours, kept")]
    rows = [(path, "made") for path in written]
    rows += [(path, note) for paths, note in states for path in paths]
    head = printable(f"{plan.name}  (agent: {plan.kind.name}, in {plan.folder})")
    return f"{head}\n\n{columns(rows, head=('file', ''))}\n\n{_next(plan)}"


def _next(plan: ProjectPlan) -> str:
    """Give the first commands of the guide."""
    enter = [] if plan.folder.resolve() == Path.cwd() else [f"cd {shlex.quote(str(plan.folder))}"]
    lines = [
        *enter,
        "python -m pip install -r requirements-evals.txt",
        "evalkit check data/suites",
        "evalkit run data/suites",
    ]
    typed = "\n".join(f"  {printable(line)}" for line in lines)
    return f"Type next ({plan.guide} goes on from there):\n{typed}"
