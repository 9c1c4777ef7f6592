"""Whether a baseline still says what was measured, and what became of its suite since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from evalkit.baselines.counting import (
    GraderCount,
    GraderKey,
    grader_counts,
    has_own_digest,
    pinned_run,
    trial_counts,
)
from evalkit.baselines.files import DEFAULT_FOLDER, AnyPath, load_baseline
from evalkit.baselines.records import Baseline, PinnedRun
from evalkit.errors import BaselineError, LedgerError
from evalkit.results import Run, load_run
from evalkit.suite import Suite

Kind = Literal["edited", "run", "suite", "changed", "added", "removed"]
_WRONG: Final = frozenset({"edited", "run", "suite"})


class Finding(NamedTuple):
    """One thing that verifying a baseline has found."""

    kind: Kind
    """``edited``, ``run`` (it does not follow from a run) and ``suite`` (it is of another one)
    are wrong; ``changed``, ``added`` and ``removed`` scenarios are what became of the suite."""
    about: str
    """The file, run or scenario."""
    message: str

    @property
    def is_wrong(self) -> bool:
        """Whether the baseline must not be used, or not for this suite."""
        return self.kind in _WRONG


def verify_baseline(
    name_or_path: AnyPath,
    *,
    runs: Iterable[Run | AnyPath] = (),
    suite: Suite | None = None,
    folder: AnyPath = DEFAULT_FOLDER,
) -> tuple[Finding, ...]:
    """Check the seal of a baseline and, where given, that it follows from its runs.

    Parameters
    ----------
    name_or_path
        As for :func:`load_baseline`.
    runs
        Runs that it was pinned from, or their directories: its counts must be theirs.
    suite
        The suite as it is now: scenarios that were added, removed or changed
        since are found.
    folder
        Where baselines lie.

    Returns
    -------
    tuple of Finding
        Empty if there is nothing to say. What is wrong comes before what became
        of the suite.

    Raises
    ------
    UsageError
        If there is no baseline of that name.
    """
    try:
        baseline = load_baseline(name_or_path, folder=folder)
    except BaselineError as error:
        return tuple(Finding("edited", str(name_or_path), reason) for reason in error.reasons)
    found = [finding for run in runs for finding in _about_run(run, baseline)]
    if suite is not None:
        found += _about_suite(suite, baseline)
    return tuple(sorted(found, key=lambda finding: not finding.is_wrong))


def _about_run(given: Run | AnyPath, baseline: Baseline) -> Iterator[Finding]:
    try:
        run = given if isinstance(given, Run) else load_run(given)
    except LedgerError as error:
        yield Finding("run", str(given), str(error))
        return
    places = {pinned.run_id: place for place, pinned in enumerate(baseline.runs)}
    if run.id not in places:
        told = f"is none of the {len(places)} runs that the baseline pools"
        yield Finding("run", run.id, told)
        return
    place = places[run.id]
    yield from (
        Finding("run", run.id, message)
        for message in (
            *_identity(run, baseline.runs[place]),
            *_configuration(run, baseline),
            *_counts(run, baseline, place),
            *_grader_counts(run, baseline, place),
        )
    )


def _identity(run: Run, pinned: PinnedRun) -> Iterator[str]:
    if not has_own_digest(run):
        yield "its digest is not that of its trials; the run directory was changed"
    now = pinned_run(run)
    for field in ("digest", "seed", "created_at", "finished_at", "commit", "dirty"):
        if getattr(now, field) != getattr(pinned, field):
            yield (
                f"its {field} is {getattr(now, field)!r}, the baseline says "
                f"{getattr(pinned, field)!r}"
            )


def _configuration(run: Run, baseline: Baseline) -> Iterator[str]:
    for field in ("suite", "suite_hash", "lane", "agent", "agent_hash"):
        now, then = getattr(run.manifest, field), getattr(baseline, field)
        if now != then:
            yield f"its {field} is {now!r}, the baseline says {then!r}"


def _counts(run: Run, baseline: Baseline, place: int) -> Iterator[str]:
    now = trial_counts(run)
    then = {each.id: (each.passed[place], each.failed[place]) for each in baseline.scenarios}
    for scenario in sorted(now.keys() | then.keys()):
        if now.get(scenario) != then.get(scenario):
            yield (
                f"{scenario}: {_told(now.get(scenario))} in the run, "
                f"{_told(then.get(scenario))} in the baseline"
            )


def _told(count: tuple[int, int] | None) -> str:
    return "no trial" if count is None else f"{count[0]} passed and {count[1]} failed"


def _grader_counts(run: Run, baseline: Baseline, place: int) -> Iterator[str]:
    now = grader_counts(run)
    nothing = GraderCount()
    then = {
        GraderKey(said.scenario, said.grader, said.rubric): (
            said.passed[place], said.failed[place], said.mean[place],
        )
        for said in baseline.by_grader
    }  # fmt: skip
    for key in sorted(now.keys() | then.keys()):
        count = now.get(key, nothing)
        if (count.passed, count.failed, count.mean) != then.get(key, (0, 0, None)):
            yield f"{key.scenario}: the counts of grader {key.grader!r} are not the baseline's"


def _about_suite(suite: Suite, baseline: Baseline) -> list[Finding]:
    """Say what became of the suite since."""
    if suite.name != baseline.suite:
        told = f"is of suite {baseline.suite!r}, not of {suite.name!r}"
        return [Finding("suite", baseline.name, told)]
    now = {scenario.id: scenario.hash for scenario in suite}
    then = {scenario.id: scenario for scenario in baseline.scenarios}
    found = [
        Finding("added", name, "is new; the baseline has no trial of it")
        for name in now
        if name not in then
    ]
    for name, scenario in then.items():
        failed = sum(scenario.failed)
        before = f"; it failed {failed} of {failed + sum(scenario.passed)} trials" if failed else ""
        if name not in now:
            found.append(Finding("removed", name, f"is gone from the suite{before}"))
        elif now[name] != scenario.hash:
            found.append(Finding("changed", name, f"has other content now{before}"))
    return found
