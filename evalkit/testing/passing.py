"""Assertions that say why.

The fixture that runs suites inside of tests is :mod:`evalkit.pytest_plugin`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.outcomes import outcomes, show_command
from evalkit.terminal import printable

if TYPE_CHECKING:
    from evalkit.results import Run


def assert_passed(run: Run, scenario: str | None = None) -> None:
    """Assert that a run passed; what failed or could not be measured is named with its reasons.

    Parameters
    ----------
    run
        The run.
    scenario
        Look at this one only.

    Raises
    ------
    AssertionError
        If a trial is not passed, or there is none.
    UsageError
        If the run has no such scenario.

    Examples
    --------
    >>> import evalkit as ek
    >>> from evalkit import shipped
    >>> run = ek.run_suite(
    ...     shipped.suite("travel"),
    ...     agent="evalkit.examples.travel_rules:agent",
    ...     lane="live",
    ...     out="data/runs",
    ... )  # doctest: +SKIP
    >>> assert_passed(run)  # doctest: +SKIP
    """
    __tracebackhide__ = True
    if scenario is not None:
        run.record(scenario)
    looked_at = [each for each in outcomes(run) if scenario in (None, each.scenario)]
    bad = [each for each in looked_at if each.status != "passed"]
    if bad or not looked_at:
        parts = [
            f"{each.scenario} {each.status}: {each.headline}\n{each.reasons}\n"
            f"{show_command(run, each)}"
            for each in bad
        ]
        told = f"{len(bad)} of {len(looked_at)} scenarios are not passed ({run.folder})"
        raise AssertionError(printable("\n\n".join([told, *parts])))
