"""Pinning: several runs become one sealed baseline, or every reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path

from evalkit.baselines.counting import (
    GraderCount,
    Metering,
    grader_counts,
    grader_versions,
    metering_of,
    pinned_run,
    trial_counts,
)
from evalkit.baselines.files import (
    DEFAULT_FOLDER,
    AnyPath,
    name_problem,
    namesake,
    taken,
    write_baseline,
)
from evalkit.baselines.records import (
    Baseline,
    PinnedGrader,
    PinnedScenario,
    with_rates,
)
from evalkit.baselines.refusing import reasons_against
from evalkit.errors import BaselineError, LedgerError
from evalkit.provenance import version_of
from evalkit.results import Run, load_run

_CENTS = 6
"""Digits of a cost in USD."""


def pin_baseline(
    name: str, runs: Iterable[Run | AnyPath], *, folder: AnyPath = DEFAULT_FOLDER
) -> Baseline:
    """Pool the trials of several runs as a baseline, and write its file.

    Parameters
    ----------
    name
        Names the baseline and its file: letters, digits, ``-``, ``_`` and ``.``.
    runs
        At least three complete runs, or their directories, of one suite hash, in
        one lane, with one agent, the same models and versions of graders. Their
        order does not matter.
    folder
        Where the file goes.

    Returns
    -------
    Baseline
        As :func:`load_baseline` gives it.

    Raises
    ------
    BaselineError
        With every reason at once, and nothing written: fewer than three runs, a
        run twice, incomplete trials, mixed suites, lanes, agents, models or
        graders, model calls without usage or price, a name that is taken or no
        safe file name.

    Notes
    -----
    The file holds ids, counts and hashes, never replies or reasons. Pinning the
    same runs again, under the same name, gives the same bytes.

    Examples
    --------
    >>> import tempfile
    >>> import evalkit as ek
    >>> suite = ek.load_suite([{"task_id": "hi", "input": "Hi", "success_contains": ["hello"]}])
    >>> with tempfile.TemporaryDirectory() as out:
    ...     runs = [
    ...         ek.run_suite(suite, agent=lambda text: "Hello!", lane="live", seed=seed,
    ...                      isolation="none", out=out)
    ...         for seed in range(3)
    ...     ]
    ...     pin_baseline("main", runs, folder=out)
    <Baseline main: 3 runs, 3 trials, rate 1.000>
    """
    loaded, reasons = _load_all(runs)
    reasons = [*_name_problems(name, Path(folder)), *reasons]
    metering = {run.id: metering_of(run) for run in loaded}
    reasons += reasons_against(loaded, metering)
    if reasons:
        raise BaselineError(list(dict.fromkeys(reasons)))
    baseline = pooled(name, loaded, metering)
    write_baseline(baseline, Path(folder))
    return baseline


def _load_all(runs: Iterable[Run | AnyPath]) -> tuple[list[Run], list[str]]:
    if isinstance(runs, str | PathLike | Run):
        raise BaselineError([f"{runs}: give a list of runs; a baseline pools at least three"])
    loaded, broken = [], []
    for given in runs:
        try:
            loaded.append(given if isinstance(given, Run) else load_run(given))
        except LedgerError as error:
            broken.append(str(error))
    return loaded, broken


def _name_problems(name: str, folder: Path) -> Iterator[str]:
    wrong = name_problem(name)
    if wrong:
        yield wrong
        return
    there = namesake(name, folder)
    if there is not None:
        yield taken(there)


def pooled(name: str, runs: Sequence[Run], metering: Mapping[str, Metering]) -> Baseline:
    """Pool runs that nothing speaks against."""
    runs = sorted(runs, key=lambda run: (run.manifest.created_at, run.id))
    manifest = runs[0].manifest
    metered = list(metering.values())
    cost = _cost(manifest.lane, metered)
    total = round(sum(each.cost_usd for each in metered), _CENTS)
    return with_rates(
        Baseline(
            name=name,
            suite=manifest.suite,
            suite_hash=manifest.suite_hash,
            lane=manifest.lane,
            agent=manifest.agent,
            agent_hash=manifest.agent_hash,
            graders=dict(sorted(_versions(runs))),
            more_graders=tuple(sorted(manifest.more_graders)),
            models=tuple(sorted(metered[0].models)),
            cost=cost,
            cost_usd=total if cost == "metered" else None,
            runs=tuple(map(pinned_run, runs)),
            scenarios=tuple(_scenarios(runs)),
            by_grader=tuple(_graders(runs)),
            created_at=max(run.manifest.finished_at or "" for run in runs),
            evalkit=version_of("evalkit-lab") or "",
        )
    )


def _cost(lane: str, metered: Sequence[Metering]) -> str:
    """Say in one word what is known of the cost."""
    if lane == "contract":
        return "none"
    if not all(each.is_observed for each in metered):
        return "unknown"
    return "metered" if any(each.n_calls for each in metered) else "none"


def _versions(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    for run in runs:
        yield from grader_versions(run).items()


def _scenarios(runs: Sequence[Run]) -> Iterator[PinnedScenario]:
    counts = [trial_counts(run) for run in runs]
    for planned in sorted(runs[0].manifest.plan, key=lambda planned: planned.id):
        yield PinnedScenario(
            id=planned.id,
            hash=planned.hash,
            tags=planned.tags,
            cluster=planned.cluster,
            must_pass=planned.must_pass,
            min_pass_rate=planned.min_pass_rate,
            passed=tuple(count[planned.id][0] for count in counts),
            failed=tuple(count[planned.id][1] for count in counts),
        )


def _graders(runs: Sequence[Run]) -> Iterator[PinnedGrader]:
    counts = [grader_counts(run) for run in runs]
    for key in sorted(set().union(*counts)):
        of_runs = [count.get(key, GraderCount()) for count in counts]
        yield PinnedGrader(
            *key,
            passed=tuple(each.passed for each in of_runs),
            failed=tuple(each.failed for each in of_runs),
            mean=tuple(each.mean for each in of_runs),
        )
