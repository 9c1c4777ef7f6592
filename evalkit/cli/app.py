"""The ``evalkit`` command: its commands, loaded when asked for, and its exit codes.

====  ============================================================
0     passed
1     failed
2     could not be measured: incomplete, or an error of the harness
3     wrong usage: the command line, the suite file, the agent's name
130   interrupted
====  ============================================================
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final, NoReturn

import click

from evalkit.errors import (
    AgentError,
    EvalkitError,
    GraderError,
    MissingDependency,
    SuiteError,
    TraceError,
    UsageError,
)

PASSED, FAILED, INCOMPLETE, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CODES: Final[Mapping[str, int]] = {
    "passed": PASSED,
    "failed": FAILED,
    "incomplete": INCOMPLETE,
}
"""Exit code of each status."""

_USERS_FAULT: Final = (
    SuiteError, AgentError, GraderError, MissingDependency, TraceError, UsageError,
)  # fmt: skip

_COMMANDS: Final[Mapping[str, str]] = {
    "init": "evalkit.cli.starting:init",
    "demo": "evalkit.cli.demonstrating:demo",
    "run": "evalkit.cli.running:run",
    "check": "evalkit.cli.suites:check",
    "show": "evalkit.cli.showing:show",
    "grade": "evalkit.cli.running:grade",
    "import": "evalkit.cli.importing:import_",
    "gate": "evalkit.cli.gating:gate",
    "baseline": "evalkit.cli.baselines:baseline",
    "mutate": "evalkit.cli.mutating:mutate",
    "crash-test": "evalkit.cli.crashing:crash_test",
    "scenario": "evalkit.cli.scenarios:scenario",
    "diff": "evalkit.cli.differences:diff",
    "report": "evalkit.cli.reports:report",
    "schema": "evalkit.cli.suites:schema",
    "doctor": "evalkit.cli.machine:doctor",
}
_SUMMARIES: Final[Mapping[str, str]] = {
    "init": "Start a project: an agent, a suite, notebooks, a workflow, a README.",
    "demo": "Show a real agent, its planted mistakes and a flaky one; no key needed.",
    "run": "Run an agent through suites and grade what it does.",
    "check": "Check suite files without running anything.",
    "show": "Show a run, or one trial of it.",
    "grade": "Grade a run again, without running the agent.",
    "import": "Import traces that another tool recorded.",
    "gate": "Decide whether a run is good enough, and no worse than a baseline.",
    "baseline": "Pin results of several runs, for a gate to compare with.",
    "mutate": "Break passing trials on purpose, and show what a suite does not notice.",
    "crash-test": "Kill an agent at each moment of a scenario, and see whether it gets over it.",
    "scenario": "Draft scenarios from trials that were recorded.",
    "diff": "Show where two runs differ, event by event.",
    "report": "Render a notebook as one HTML file.",
    "schema": "Print the JSON Schema of suite files, for editors.",
    "doctor": "Say what this machine can do for trials, and how to allow more.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it so
        """Name the commands in the order in which one needs them."""
        return list(_COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click calls it so
        cmd_name: str,
    ) -> click.Command | None:
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest one."""
        import difflib

        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; end quietly where the reader of its output (`| head`) has gone."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # What is still buffered must not complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            # Under pipefail, a verdict that nobody has read must not look like a pass.
            return INCOMPLETE

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _SUMMARIES[name]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: evalkit run data/suites/travel.yaml",
)
@click.version_option(package_name="evalkit-lab", prog_name="evalkit")
def app() -> None:
    """Tell whether a change made an agent worse, and how sure one can be."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(call(arguments))


def call(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code.

    Parameters
    ----------
    arguments
        Defaults to the process's own.
    """
    try:
        code = app.main(arguments, prog_name="evalkit", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return WRONG_USAGE
    except (KeyboardInterrupt, click.Abort) as stop:
        _complain("interrupted", stop)
        return INTERRUPTED
    except EvalkitError as error:
        _complain(str(error), error)
        return WRONG_USAGE if isinstance(error, _USERS_FAULT) else INCOMPLETE
    except Exception as error:
        traceback.print_exc()
        _complain("this is a fault of evalkit itself; nothing was measured", error)
        return INCOMPLETE
    return code if isinstance(code, int) else PASSED


def _complain(message: str, error: BaseException) -> None:
    from evalkit.publishing import for_log
    from evalkit.terminal import printable

    click.echo(for_log(f"evalkit: {printable(message)}"), err=True)
    # Click turns KeyboardInterrupt into Abort; what was noted is with the cause.
    for noted in (error, error.__cause__):
        for note in getattr(noted, "__notes__", ()):
            click.echo(for_log(printable(note)), err=True)
