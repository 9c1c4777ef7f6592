"""A report is searched for the canaries of its runs before anybody can read it.

Values are replaced by names. They stand in no run directory, so they come from the suite
that the run's manifest names; where that is gone or has changed, a report of a run with
canaries is refused, for nobody can tell what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evalkit.canaries import canaries_of
from evalkit.errors import ReportError
from evalkit.results import load_run


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
    canaries = canaries_of(runs)
    if canaries.unknown:
        raise ReportError(
            f"{canaries.unknown}, so nobody can tell whether the report holds their values; "
            "put the suite back, or grade again with: evalkit grade RUN --suite SUITE"
        )
    if not canaries.planted:
        return
    markup = page.read_text(encoding="utf-8")
    hidden, left = canaries.hiding.document(markup)
    if left:
        raise ReportError(f"the report would hold {left}; it was not written")
    if hidden != markup:
        page.write_text(hidden, encoding="utf-8")
