"""What a run is compared with, and how far the two were measured alike."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from evalkit.baselines import Baseline, load_baseline
from evalkit.errors import UsageError
from evalkit.results import Run, load_run

Side: TypeAlias = Baseline | Run

_ENDING: Final = ".json"


def find_side(given: str | os.PathLike[str] | Side, *, folder: str) -> Side:
    """Find a pinned baseline or a run.

    Parameters
    ----------
    given
        The name of a pinned baseline, the path of its file, a run directory, a
        folder of runs (then the latest), or what one of these loads to. A name
        that is both a baseline and a directory is the baseline; ``./NAME`` is
        the directory.
    folder
        Where named baselines lie.

    Raises
    ------
    UsageError
        If nothing is given, or there is no such thing; the message names the
        nearest baseline.
    BaselineError, LedgerError
        If what is there cannot be used.
    """
    if isinstance(given, Baseline | Run):
        return given
    text = os.fspath(given)
    if not text:
        raise UsageError(
            "compare_runs needs something to compare with: -p baseline=NAME of a pinned "
            "baseline, or -p baseline=DIRECTORY of another run"
        )
    if not _is_pinned(text, folder):
        if Path(text).is_dir():
            return load_run(text)
        if Path(text).name != text:
            raise UsageError(
                f"{text}: there is no such run directory; a path is that of a run or of a "
                f"baseline's file ({_ENDING}), a name that of a baseline in {folder}"
            )
    return load_baseline(text, folder=folder)


def _is_pinned(text: str, folder: str) -> bool:
    """Tell whether a text is the file or the name of a pinned baseline."""
    is_name = Path(text).name == text
    return text.endswith(_ENDING) or (is_name and (Path(folder) / f"{text}{_ENDING}").exists())


def name_of(side: Side) -> str:
    """Name a baseline or a run."""
    return side.name if isinstance(side, Baseline) else side.id


def unlike(run: Run, other: Run) -> Iterator[str]:
    """Say in what two runs were not measured alike.

    Another agent, model or prompt is no such thing: it is what is compared.
    """
    ours, theirs = run.manifest, other.manifest
    for what, one, two in (
        ("suite", ours.suite, theirs.suite),
        ("lane", ours.lane, theirs.lane),
        ("list of further graders", ours.more_graders, theirs.more_graders),
    ):
        if one != two:
            yield f"the {what} is {_shown(one)} in this run and {_shown(two)} in the other"
    for grader in sorted(ours.graders.keys() & theirs.graders.keys()):
        if ours.graders[grader] != theirs.graders[grader]:
            versions = f"{_shown(ours.graders[grader])} and {_shown(theirs.graders[grader])}"
            yield f"grader {grader!r} has the versions {versions}"


def _shown(value: str | tuple[str, ...]) -> str:
    """Quote a value; say where there is none."""
    text = value if isinstance(value, str) else ", ".join(value)
    return repr(text) if text else "unknown" if isinstance(value, str) else "empty"
