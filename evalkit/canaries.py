"""The canaries of a run that is there already: their values, or why nobody knows them.

Records name canaries, ledgers may hold their values, and neither says which texts these
are. So they come from the suite that the manifest names, as far as it still says of a
scenario what it said when the run was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evalkit.errors import EvalkitError
from evalkit.graders import planted_in
from evalkit.results import Run
from evalkit.scanning import Hiding, hiding_for
from evalkit.suite import Suite, parse_suite

_GRADER = "canary"


class Canaries(NamedTuple):
    """The canaries of some runs."""

    planted: tuple[tuple[str, str], ...] = ()
    """Name and value of each that is known."""
    unknown: str = ""
    """Why not all are known; empty if they are."""

    @property
    def hiding(self) -> Hiding:
        """What hides those that are known."""
        return hiding_for(self.planted)


def canaries_of(runs: Iterable[Run]) -> Canaries:
    """Give the canaries that were planted in some runs.

    Parameters
    ----------
    runs
        Finished or not. A run is one with canaries if the grader ``canary`` has judged
        a scenario, or if a trial has no grades and its suite plants some.
    """
    found = [_of_run(run) for run in runs]
    planted = dict.fromkeys(pair for one in found for pair in one.planted)
    return Canaries(tuple(planted), next((one.unknown for one in found if one.unknown), ""))


def _of_run(run: Run) -> Canaries:
    judged, unjudged = _searched(run)
    if not judged and not unjudged:
        return Canaries()
    suite = _suite_of(run)
    planting = {scenario.id for scenario in suite or () if scenario.canaries}
    known = {scenario.hash for scenario in suite or ()}
    meant = judged | (unjudged & planting)
    planted = tuple(pair for scenario in suite or () for pair in planted_in(scenario))
    if all(entry.hash in known for entry in run.manifest.plan if entry.id in meant):
        return Canaries(planted)
    where = run.manifest.suite_path or "made in memory"
    why = f"run {run.id} has canaries, and its suite ({where}) is gone or has changed since"
    return Canaries(planted, why)


def _searched(run: Run) -> tuple[set[str], set[str]]:
    """Name the scenarios in which canaries were looked for, and those where nobody looked."""
    judged: set[str] = set()
    unjudged: set[str] = set()
    for record in run.records:
        if any(grade.grader == _GRADER for grade in record.grades):
            judged.add(record.scenario)
        elif not record.grades:
            unjudged.add(record.scenario)
    return judged, unjudged


def _suite_of(run: Run) -> Suite | None:
    path = run.manifest.suite_path
    try:
        return parse_suite(path) if path else None
    except EvalkitError:
        return None


def without_canaries(lines: Iterable[str], hiding: Hiding) -> Iterator[str]:
    """Hide the values of canaries line by line.

    Examples
    --------
    >>> hiding = hiding_for((("address", "canary@example.test"),))
    >>> list(without_canaries(["to canary@example.test", "fine"], hiding))
    ['to [canary address]', 'fine']
    """
    return (hiding.text(line) for line in lines)
