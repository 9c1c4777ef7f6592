"""Why runs cannot be pooled as a baseline: every reason at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from evalkit.baselines.counting import Metering, grader_versions, has_own_digest
from evalkit.baselines.model_ids import is_pinned_model
from evalkit.baselines.records import MIN_RUNS
from evalkit.results import Run
from evalkit.terminal import one_line, some_of

"""Trials, scenarios and the like that are named one by one."""


def reasons_against(runs: Sequence[Run], metering: Mapping[str, Metering]) -> Iterator[str]:
    """Yield every reason why runs cannot be pooled.

    Parameters
    ----------
    runs
        As they were given.
    metering
        By run id, what their models cost.
    """
    if len(runs) < MIN_RUNS:
        yield (
            f"a baseline pools at least {MIN_RUNS} runs, and here are {len(runs)}; fewer cannot "
            "show how much runs differ"
        )
    yield from _copies(runs)
    for run in runs:
        yield from _incomplete(run)
    yield from _mixed(runs)
    for run in runs:
        yield from _unidentified(run)
        yield from _unmetered(run, metering[run.id])
    yield from _moving_models(runs, metering)


def _copies(runs: Sequence[Run]) -> Iterator[str]:
    for one, other in combinations(runs, 2):
        if one.id == other.id:
            yield f"{one.id}: is given twice"
        elif one.digest and (one.digest, one.manifest.seed) == (other.digest, other.manifest.seed):
            yield (
                f"{one.id} and {other.id}: have the same seed ({one.manifest.seed}) and the same "
                f"digest ({_short(one.digest)}), so they are one run twice and show nothing about "
                "how much runs differ; run again with another --seed"
            )


def _incomplete(run: Run) -> Iterator[str]:
    """Name what a run did not measure, and what its digest does not cover."""
    empty = [planned.id for planned in run.manifest.plan if planned.n_trials < 1]
    if empty or not run.manifest.plan:
        yield f"{run.id}: plans no trial of {some_of(empty) if empty else 'any scenario'}"
    open_ = [f"{r.scenario}.{r.trial}" for r in run.records if r.status == "incomplete"]
    if open_:
        remedy = "look at them with: evalkit show" if run.is_finished else "evalkit run --resume"
        yield (
            f"{run.id}: {len(open_)} of {len(run.records)} trials are incomplete "
            f"({some_of(open_)}); {remedy} {run.folder}"
        )
    elif run.is_finished and not has_own_digest(run):
        yield f"{run.id}: its digest is not that of its trials; the run directory was changed"
    elif not run.is_finished:
        yield f"{run.id}: is not finished; evalkit run --resume {run.folder}"


def _mixed(runs: Sequence[Run]) -> Iterator[str]:
    """Name everything in which the runs should agree and do not."""
    for what, value_of in _ALIKE.items():
        values: dict[str, list[str]] = {}
        for run in runs:
            values.setdefault(value_of(run), []).append(run.id)
        if len(values) > 1:
            told = "; ".join(
                f"{value or 'unknown'} in {some_of(ids)}" for value, ids in values.items()
            )
            yield f"{what} differ: {told}"
    yield from _versions(runs)
    yield from _plans(runs)


_ALIKE: Final[Mapping[str, Callable[[Run], str]]] = {
    "suites": lambda run: _hashed(run.manifest.suite, run.manifest.suite_hash),
    "lanes": lambda run: run.manifest.lane,
    "agents": lambda run: _hashed(run.manifest.agent, run.manifest.agent_hash),
    "further graders": lambda run: ", ".join(sorted(run.manifest.more_graders)) or "none",
}


def _versions(runs: Sequence[Run]) -> Iterator[str]:
    seen: dict[str, dict[str, str]] = {}
    for run in runs:
        for grader, version in grader_versions(run).items():
            seen.setdefault(grader, {}).setdefault(version, run.id)
    for grader, versions in seen.items():
        if len(versions) > 1:
            told = "; ".join(
                f"{version or 'unknown'} in {run_id}" for version, run_id in versions.items()
            )
            yield f"versions of grader {grader!r} differ: {told}; grade again with: evalkit grade"


def _plans(runs: Sequence[Run]) -> Iterator[str]:
    """Name runs of only a part of what others ran, or of the same ids with other content."""
    whole = {planned.id: planned.hash for run in runs for planned in run.manifest.plan}
    for run in runs:
        own = {planned.id: planned.hash for planned in run.manifest.plan}
        lacking = [name for name in whole if name not in own]
        if lacking:
            yield f"{run.id}: lacks {len(lacking)} scenarios of the other runs ({some_of(lacking)})"
        changed = [name for name in own if own[name] != whole[name]]
        if changed:
            yield f"{run.id}: {len(changed)} scenarios have other content ({some_of(changed)})"


def _unidentified(run: Run) -> Iterator[str]:
    """Refuse a run of which nobody knows what it ran; imported ones never say."""
    manifest = run.manifest
    if manifest.lane != "imported" and not manifest.suite_hash:
        yield f"{run.id}: does not say which suite it ran (no suite hash); run it again"


def _unmetered(run: Run, metering: Metering) -> Iterator[str]:
    if not metering.unmetered:
        return
    trial, what = next(iter(metering.unmetered.items()))
    yield (
        f"{run.id}: unmetered: {len(metering.unmetered)} trials have model calls without usage "
        f"or price ({some_of(list(metering.unmetered))}; {trial} lacks {one_line(what)}), and an "
        "unknown cost is never $0; each call's Usage needs input_tokens, output_tokens and cost_usd"
    )


def _moving_models(runs: Sequence[Run], metering: Mapping[str, Metering]) -> Iterator[str]:
    """Name models that differ between runs; in the quality lane, also ids that can move."""
    seen: dict[frozenset[str], str] = {}
    for run in runs:
        seen.setdefault(metering[run.id].models, run.id)
    if len(seen) > 1:
        told = "; ".join(
            f"{some_of(sorted(models)) or 'none'} in {run}" for models, run in seen.items()
        )
        yield f"models differ: {told}"
    if any(run.manifest.lane == "quality" for run in runs):
        for model in sorted(frozenset().union(*seen)):
            if not is_pinned_model(model):
                yield (
                    f"model {one_line(model)!r}: names no version, so its provider can change what "
                    "it is; use the id with its date"
                )


def _hashed(name: str, digest: str) -> str:
    return f"{name} {_short(digest)}".strip() if name or digest else ""


def _short(digest: str) -> str:
    return digest[:12] or "(no hash)"
