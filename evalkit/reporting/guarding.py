"""A report is searched for the canaries of its runs before anybody can read it.

Values are replaced by names. They stand in no run directory, so they come from the suite
that the run's manifest names; where that is gone or has changed, a report of a run with
canaries is refused, for nobody can tell what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evalkit.errors import EvalkitError, ReportError
from evalkit.graders import planted_in
from evalkit.results import Run, load_run
from evalkit.scanning import hiding_for

_GRADER = "canary"


def guard_report(page: Path, sources: Iterable[str]) -> None:
    """Hide the values of canaries in a page that was not published yet.

    Parameters
    ----------
    page
        The HTML file; it is rewritten if it holds a value.
    sources
        Directories of the runs that it is about; what is no run's is passed over.

    Raises
    ------
    ReportError
        If the values are not known, or one cannot be hidden.
    """
    runs = [load_run(source) for source in sources if (Path(source) / "manifest.json").is_file()]
    planted = tuple(dict.fromkeys(one for run in runs for one in _planted(run)))
    if not planted:
        return
    markup = page.read_text(encoding="utf-8")
    hidden, left = hiding_for(planted).document(markup)
    if left:
        raise ReportError(f"the report would hold {left}; it was not written")
    if hidden != markup:
        page.write_text(hidden, encoding="utf-8")


def _planted(run: Run) -> tuple[tuple[str, str], ...]:
    """Give the canaries of a run, from its suite as it was."""
    from evalkit.run.loading import load_suite

    searched = {
        record.scenario
        for record in run.records
        if any(grade.grader == _GRADER for grade in record.grades)
    }
    path = run.manifest.suite_path
    try:
        suite = load_suite(path) if path else ()
    except EvalkitError:
        suite = ()
    known = {scenario.hash: scenario for scenario in suite}
    meant = [entry for entry in run.manifest.plan if entry.id in searched]
    if any(entry.hash not in known for entry in meant):
        raise ReportError(
            f"run {run.id} has canaries, and its suite ({path or 'made in memory'}) is gone or "
            "has changed since, so nobody can tell whether the report holds their values; "
            "put the suite back, or grade again with: evalkit grade RUN --suite SUITE"
        )
    return tuple(pair for scenario in suite for pair in planted_in(scenario))
