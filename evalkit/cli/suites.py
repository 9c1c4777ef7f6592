"""``evalkit check`` and ``evalkit schema``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from evalkit.cli.app import PASSED, WRONG_USAGE
from evalkit.cli.paths import did_you_mean
from evalkit.errors import Problem, SuiteError, UsageError
from evalkit.terminal import printable


@click.command(epilog="Example: evalkit check data/suites")
@click.argument("suites", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def check(suites: tuple[Path, ...], *, as_json: bool) -> int:
    """Check SUITES (files or folders) whole; list every problem with its line.

    Names of tools and arguments are checked where the agent says which it has.

    Exits with 0 if there is none, else with 3.
    """
    from evalkit.run import load_suite
    from evalkit.run.declaring import find_tool_problems

    problems: list[Problem] = []
    found = []
    for path in suite_files(suites):
        try:
            suite = load_suite(path)
        except SuiteError as error:
            problems += error.problems
        else:
            problems += (unknown := find_tool_problems(suite))
            if not unknown:
                found.append({"path": str(path), "scenarios": len(suite), "hash": suite.hash})
    if as_json:
        told = {"suites": found, "problems": [problem._asdict() for problem in problems]}
        click.echo(json.dumps(told, indent=2))
    else:
        for suite_found in found:
            noun = "scenario" if suite_found["scenarios"] == 1 else "scenarios"
            line = f"{suite_found['path']}: {suite_found['scenarios']} {noun}, no problems"
            click.echo(printable(line))
        for problem in problems:
            click.echo(printable(problem), err=True)
    return WRONG_USAGE if problems else PASSED


@click.command(epilog="Example: evalkit schema > suite.schema.json")
def schema() -> None:
    """Print the JSON Schema of suite files, for completion and checks in editors."""
    from evalkit.suite.schema import suite_json_schema

    click.echo(json.dumps(suite_json_schema(), indent=2))


def suite_files(paths: Iterable[Path]) -> list[Path]:
    """List the suite files that paths name: files as they are, folders by their YAML files.

    Raises
    ------
    UsageError
        If there is none, or a path does not exist.
    """
    files = [file for path in paths for file in _suites_in(path)]
    if not files:
        raise UsageError("give at least one suite file or a folder of them, such as data/suites")
    return files


def _suites_in(path: Path) -> Iterator[Path]:
    if path.is_dir():
        inside = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        if not inside:
            raise UsageError(f"{path}: no .yaml file in this folder")
        yield from inside
    elif path.exists():
        yield path
    else:
        raise UsageError(f"{path}: no such file or folder{did_you_mean(path)}")
