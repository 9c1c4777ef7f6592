"""Where a command's result goes: the terminal or JSON, a JUnit file, GitHub."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evalkit.cli.app import INCOMPLETE, PASSED
from evalkit.errors import ReportError

if TYPE_CHECKING:
    from evalkit.publishing import GateVerdict
    from evalkit.results import Run
    from evalkit.scanning import Hiding

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts."),
    click.option(
        "--junit",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write JUnit XML as well, a test case a scenario.",
    ),
    click.option(
        "--github/--no-github",
        default=None,
        help="Write GitHub's step summary and annotations  [default: on in GitHub Actions]",
    ),
)


def with_outputs(command: _Command) -> _Command:
    """Give a command the options of :class:`Outputs`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a user wants of a result.

    Parameters
    ----------
    as_json
        JSON on stdout, in place of text.
    junit
        File for JUnit XML.
    github
        Step summary and annotations; ``None``: where GitHub Actions runs this.
    """

    as_json: bool = False
    junit: Path | None = None
    github: bool | None = None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Outputs:
        """Take the options of :func:`with_outputs` out of a command's."""
        return cls(*(options.pop(name) for name in ("as_json", "junit", "github")))

    @property
    def is_on_github(self) -> bool:
        """Whether GitHub's own outputs are wanted."""
        from evalkit.publishing import is_on_runner

        return is_on_runner() if self.github is None else self.github

    def prepare(self) -> None:
        """Refuse what cannot be written before anything runs, and clear away older files.

        Raises
        ------
        UsageError
            If a path cannot be a file.
        """
        from evalkit.publishing import clear_target

        if self.junit is not None:
            clear_target(self.junit)

    def say(self, text: str, runs: Sequence[Run] = ()) -> None:
        """Print text about runs for people; on a runner, such that it cannot give it orders."""
        from evalkit.canaries import canaries_of, without_canaries
        from evalkit.publishing import for_log

        if not self.as_json:
            lines = without_canaries(text.split("\n"), canaries_of(runs).hiding)
            click.echo(for_log("\n".join(lines)))

    def publish(self, runs: Sequence[Run], *, verdict: GateVerdict | None = None) -> int:
        """Write everything that is wanted beside the text.

        Parameters
        ----------
        runs
            All of them.
        verdict
            A gate's.

        Returns
        -------
        int
            0, or 2 where something could not be written: a result that nobody can
            read is none. A canary's value is never written: what cannot be hidden is
            such a case.
        """
        try:
            self._publish(runs, verdict)
        except ReportError as error:
            click.echo(f"evalkit: {error}", err=True)
            return INCOMPLETE
        except OSError as error:
            click.echo(f"evalkit: {error.filename or 'output'}: {error.strerror}", err=True)
            return INCOMPLETE
        return PASSED

    def _publish(self, runs: Sequence[Run], verdict: GateVerdict | None) -> None:
        from evalkit.canaries import canaries_of
        from evalkit.publishing import junit_xml, runs_json, write_file

        # Records have no values any more; names of suites, scenarios and tags may.
        hiding = canaries_of(runs).hiding
        if self.as_json:
            figures = hiding.json(runs_json(runs, verdict=verdict))
            told = _clean(json.dumps(figures, indent=2, allow_nan=False), hiding, "the JSON")
            # Equal as JSON, and no order to a runner that reads the log.
            click.echo(told.replace("##[", "##\\u005b"))
        if self.junit is not None:
            xml, _ = hiding.document(junit_xml(runs, verdict=verdict).decode())
            write_file(self.junit, _clean(xml, hiding, str(self.junit)).encode())
        if self.is_on_github:
            _tell_github(runs, verdict, hiding)


def _clean(text: str, hiding: Hiding, what: str) -> str:
    """Give a text back, if it holds no value of a canary; else nothing may be written."""
    if left := hiding.found(text):
        raise ReportError(
            f"{what} would hold {left} in a way that cannot be hidden; it was not written"
        )
    return text


def _tell_github(runs: Sequence[Run], verdict: GateVerdict | None, hiding: Hiding) -> None:
    """Append to the step's summary; annotations go to stderr, for stdout may be JSON."""
    from evalkit.canaries import without_canaries
    from evalkit.publishing import append_summary, github_annotations, github_summary
    from evalkit.publishing.github import MAX_BYTES

    notes = "\n".join(without_canaries(github_annotations(runs, verdict=verdict), hiding))
    if notes:
        click.echo(_clean(notes, hiding, "the annotations"), err=True)
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        click.echo("evalkit: no step summary: GITHUB_STEP_SUMMARY names no file", err=True)
        return
    path = Path(target)
    room = MAX_BYTES - (path.stat().st_size if path.exists() else 0)
    text = github_summary(runs, verdict=verdict, max_bytes=room)
    text = "\n".join(without_canaries(text.split("\n"), hiding))
    if len(text.encode("utf-8", "backslashreplace")) >= room:
        click.echo("evalkit: no step summary: the step has filled it already", err=True)
        return
    append_summary(path, _clean(text, hiding, "the step summary"))
