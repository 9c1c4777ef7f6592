"""What a run and a baseline have in common: which scenarios, and on which terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evalkit.baselines.counting import grader_versions
from evalkit.baselines.records import Baseline
from evalkit.results import Run


@dataclass(frozen=True, slots=True)
class BaselineMatch:
    """Which scenarios of a run are those of a baseline, by id and content hash."""

    same: tuple[str, ...]
    changed: tuple[str, ...]
    """Same id, other content: not comparable."""
    added: tuple[str, ...]
    """Only in the run."""
    removed: tuple[str, ...]
    """Only in the baseline."""
    failed_before: tuple[str, ...]
    """Removed or changed, after failing at least one of the baseline's trials."""
    problems: tuple[str, ...]
    """Why the two cannot be compared at all, each with what to do; mostly empty."""

    @property
    def is_comparable(self) -> bool:
        """Whether there is anything to compare, and nothing against it."""
        return bool(self.same) and not self.problems


def match_baseline(run: Run, baseline: Baseline) -> BaselineMatch:
    """Say which scenarios of a run and a baseline can be compared.

    Parameters
    ----------
    run
        The run that is judged.
    baseline
        What it is compared with.

    Returns
    -------
    BaselineMatch
        Scenarios in the order of their ids, and ``problems`` where suite, lane
        or graders are not those of the baseline, or the run is a part of it.
        Another agent or model is no problem: they are what a gate judges.
    """
    now = {planned.id: planned.hash for planned in run.manifest.plan}
    then = {scenario.id: scenario.hash for scenario in baseline.scenarios}
    both = sorted(now.keys() & then.keys())
    same = tuple(name for name in both if now[name] == then[name])
    changed = tuple(name for name in both if now[name] != then[name])
    removed = tuple(sorted(then.keys() - now.keys()))
    failing = {scenario.id for scenario in baseline.scenarios if any(scenario.failed)}
    return BaselineMatch(
        same=same,
        changed=changed,
        added=tuple(sorted(now.keys() - then.keys())),
        removed=removed,
        failed_before=tuple(sorted(failing.intersection(changed + removed))),
        problems=tuple(_problems(run, baseline, has_common=bool(same))),
    )


def _problems(run: Run, baseline: Baseline, *, has_common: bool) -> Iterator[str]:
    manifest, name = run.manifest, baseline.name
    again = "pin a new baseline from runs of it"
    if manifest.suite != baseline.suite:
        yield (
            f"the run is of suite {manifest.suite!r}, baseline {name!r} of {baseline.suite!r}; "
            f"name the baseline of this suite, or {again}"
        )
    elif not has_common:
        yield f"no scenario of the run is the same as in baseline {name!r}; {again}"
    if manifest.lane != baseline.lane:
        yield (
            f"the run is of the {manifest.lane} lane, baseline {name!r} of the {baseline.lane} "
            "lane; results of different lanes say different things: compare within one"
        )
    pooled = {pinned.run_id for pinned in baseline.runs}
    if pooled & {run.id, manifest.parent}:
        yield (
            f"the run is part of baseline {name!r}, and would be compared with itself; "
            "run the suite again"
        )
    yield from _graders(run, baseline)


def _graders(run: Run, baseline: Baseline) -> Iterator[str]:
    now = grader_versions(run)
    for grader in sorted(now.keys() & baseline.graders.keys()):
        if now[grader] != baseline.graders[grader]:
            yield (
                f"grader {grader!r} has version {now[grader] or 'unknown'} in the run and "
                f"{baseline.graders[grader] or 'unknown'} in baseline {baseline.name!r}, so the "
                "two were not measured alike; grade the baseline's runs again (evalkit grade) and "
                "pin them under a new name"
            )
    for grader in sorted(set(run.manifest.more_graders) ^ set(baseline.more_graders)):
        where = "the run" if grader in run.manifest.more_graders else f"baseline {baseline.name!r}"
        yield (
            f"grader {grader!r} was asked for in {where} only, so the two were not measured "
            f"alike; grade both with: --grader {grader}"
        )
