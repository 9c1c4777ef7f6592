r"""GitHub's workflow commands: annotations that evalkit writes, and none that others write.

The runner takes orders from what a step prints: a line that begins with ``::name``, and
``##[name]`` anywhere in a line. A reason may hold an agent's text, so what is printed
there goes through :func:`inert`, and annotations are escaped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalkit.outcomes import Outcome, outcomes
from evalkit.publishing.places import scenario_place
from evalkit.publishing.verdicts import GateVerdict, some_runs
from evalkit.terminal import one_line, printable

if TYPE_CHECKING:
    from evalkit.results import Run

MAX_ANNOTATIONS: Final = 10
"""Annotations of one kind that GitHub shows of a step."""
_MESSAGE: Final = 2_000
# What is no letter to a comparison that knows of cultures, as the runner's may be.
_UNSEEN: Final = r"\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff"
_ORDER: Final = re.compile(rf"(^|[\r\n])([\s{_UNSEEN}]*):(?=[{_UNSEEN}]*:)")
_OLD_ORDER: Final = re.compile(rf"(#[{_UNSEEN}]*#[{_UNSEEN}]*)\[")


def inert(text: str) -> str:
    r"""Give a text that a GitHub runner prints and does not obey.

    Examples
    --------
    >>> print(inert("::add-mask::x\nthe price is ##[set-output]"))
    : :add-mask::x
    the price is ## [set-output]
    """
    return _OLD_ORDER.sub(r"\1 [", _ORDER.sub(r"\1\2: ", text))


def is_on_runner() -> bool:
    """Tell whether GitHub Actions reads what this process prints."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def for_log(text: str) -> str:
    """Give a text as it may be printed here: inert, if a GitHub runner reads it."""
    return inert(text) if is_on_runner() else text


def github_annotations(
    runs: Iterable[Run] | Run,
    *,
    verdict: GateVerdict | None = None,
    workspace: str | os.PathLike[str] | None = None,
) -> list[str]:
    """Write what is wrong as GitHub annotations, one workflow command a line.

    Parameters
    ----------
    runs
        One or more.
    verdict
        A gate's; it comes first. Where it blocks nothing, scenarios are warnings.
    workspace
        Root of the checkout, to which GitHub's paths are relative; by default
        ``$GITHUB_WORKSPACE``, else the working directory.

    Returns
    -------
    list of str
        The gate's verdict, failed scenarios, incomplete ones, at the line of the
        suite where they are written. At most ten, for GitHub shows no more of a
        step; a notice counts the rest.

    Raises
    ------
    ValueError
        If there is no run.
    """
    found = [(run, outcome) for run in some_runs(runs) for outcome in outcomes(run)]
    failing = sorted(
        (pair for pair in found if pair[1].status != "passed"),
        key=lambda pair: pair[1].status != "failed",
    )
    root = Path(workspace or os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    kind = "error" if verdict is None or verdict.exit_code else "warning"
    lines = [] if verdict is None else [_of_verdict(verdict)]
    room = MAX_ANNOTATIONS - len(lines)
    lines += [_of_scenario(kind, *pair, root=root) for pair in failing[:room]]
    if len(failing) > room:
        lines.append(_of_rest([outcome for _, outcome in failing[room:]]))
    return lines


def _of_verdict(verdict: GateVerdict) -> str:
    quiet = "notice" if verdict.verdict == "PASS" else "warning"
    kind = "error" if verdict.exit_code else quiet
    message = "\n".join(map(str, verdict.reasons)) or str(verdict.verdict)
    return _command(kind, message, {"title": f"evalkit gate: {verdict.verdict}"})


def _of_scenario(kind: str, run: Run, outcome: Outcome, *, root: Path) -> str:
    properties = {"title": f"{run.manifest.suite} / {outcome.scenario}: {outcome.status}"}
    place = scenario_place(run, outcome.scenario)
    file = place and place.below(root)
    if place is not None and file is not None:
        properties |= {"file": file, "line": str(place.line or 1)}
    message = f"{outcome.headline}\n{outcome.reasons}"
    return _command(kind, outcome.reasons if len(outcome.records) == 1 else message, properties)


def _of_rest(rest: list[Outcome]) -> str:
    n_failed = sum(outcome.status == "failed" for outcome in rest)
    message = f"{n_failed} more scenarios failed, {len(rest) - n_failed} more are incomplete"
    return _command("notice", message, {"title": "evalkit: more than GitHub shows"})


def _command(kind: str, message: str, properties: Mapping[str, str]) -> str:
    shown = ",".join(
        f"{name}={_property(one_line(value))}" for name, value in properties.items() if value
    )
    body = printable(message)
    if len(body) > _MESSAGE:
        body = f"{body[:_MESSAGE]} ..."
    return f"::{kind} {shown}::{_data(body)}"


def _data(text: str) -> str:
    """Escape a message: it stays on its line."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return _OLD_ORDER.sub(r"\1 [", escaped)


def _property(text: str) -> str:
    """Escape a property: it ends neither itself nor the command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
