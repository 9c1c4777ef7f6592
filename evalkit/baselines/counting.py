"""What a run says, as the counts that a baseline keeps of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, NamedTuple

from evalkit.baselines.records import PinnedRun
from evalkit.errors import EvalkitError
from evalkit.grade import Grade, Status, worst
from evalkit.ledger import combined_digest
from evalkit.results import Run, TrialRecord
from evalkit.trace import ModelCall

_DIGITS: Final = 6


class GraderKey(NamedTuple):
    """Which grader of which scenario a count is of."""

    scenario: str
    grader: str
    rubric: str


@dataclass(slots=True)
class GraderCount:
    """What one grader said of one scenario's trials in one run."""

    passed: int = 0
    failed: int = 0
    values: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float | None:
        """Mean of the values, if there are any."""
        return round(fmean(self.values), _DIGITS) if self.values else None


def pinned_run(run: Run) -> PinnedRun:
    """Say which run it is; its counts are filled in with the scenarios."""
    manifest = run.manifest
    commit, dirty = manifest.git.get("commit"), manifest.git.get("dirty")
    return PinnedRun(
        run_id=run.id,
        digest=run.digest or "",
        seed=manifest.seed,
        created_at=manifest.created_at,
        finished_at=manifest.finished_at or "",
        commit=commit if isinstance(commit, str) else "",
        dirty=dirty if isinstance(dirty, bool) else None,
    )


def trial_counts(run: Run) -> dict[str, tuple[int, int]]:
    """Count the trials of each scenario that passed and that failed."""
    counts = {planned.id: [0, 0] for planned in run.manifest.plan}
    for record in run.records:
        if record.status != "incomplete":
            counts[record.scenario][record.status == "failed"] += 1
    return {scenario: (passed, failed) for scenario, (passed, failed) in counts.items()}


def grader_counts(run: Run) -> dict[GraderKey, GraderCount]:
    """Count what each grader said; of several grades of a trial the worst counts."""
    counts: dict[GraderKey, GraderCount] = {}
    for record in run.records:
        for (grader, rubric), grades in _by_grader(record.grades).items():
            count = counts.setdefault(GraderKey(record.scenario, grader, rubric), GraderCount())
            status: Status = worst(grade.status for grade in grades)
            count.passed += status == "passed"
            count.failed += status == "failed"
            count.values.extend(grade.value for grade in grades if grade.value is not None)
    return counts


def _by_grader(grades: Iterable[Grade]) -> dict[tuple[str, str], list[Grade]]:
    found: dict[tuple[str, str], list[Grade]] = {}
    for grade in grades:
        found.setdefault((grade.grader, grade.rubric), []).append(grade)
    return found


def grader_versions(run: Run) -> dict[str, str]:
    """Give the version of each grader that graded a trial; others had no part in the results."""
    used = {grade.grader for record in run.records for grade in record.grades}
    return {name: run.manifest.graders.get(name, "") for name in sorted(used)}


def has_own_digest(run: Run) -> bool:
    """Say whether a run's digest is that of its trials."""
    digests = {(record.scenario, record.trial): record.digest for record in run.records}
    return run.digest == combined_digest(
        f"{scenario}.{trial} {digest}" for (scenario, trial), digest in digests.items()
    )


class Metering(NamedTuple):
    """What the models of a run cost, as far as anybody saw."""

    models: frozenset[str]
    n_calls: int
    unmetered: Mapping[str, str]
    """Trial -> what is missing: usage, a price, or a ledger to read."""
    is_observed: bool
    """Whether in every trial somebody would have seen a call."""
    cost_usd: float


def metering_of(run: Run) -> Metering:
    """Look at every model call that was observed."""
    is_scripted = run.manifest.lane == "contract"
    models, seen, unmetered = set(run.manifest.models), list[ModelCall](), dict[str, str]()
    for record in run.records:
        try:
            calls = _calls(run, record)
        except EvalkitError as error:
            unmetered[_name(record)] = str(error)
            continue
        seen += calls
        models.update(call.model for call in calls if call.model)
        lacking = sorted(set(_lacking(calls, is_scripted=is_scripted)))
        if lacking:
            unmetered[_name(record)] = " and ".join(lacking)
    return Metering(
        models=frozenset(models),
        n_calls=len(seen),
        unmetered=unmetered,
        is_observed=all(record.n_model_calls is not None for record in run.records),
        cost_usd=sum(call.usage.cost_usd or 0.0 for call in seen if call.usage is not None),
    )


def _calls(run: Run, record: TrialRecord) -> Sequence[ModelCall]:
    """Give the calls of a trial that anybody saw, also where others may have gone unseen."""
    has_run = record.reason_code != "interrupted"
    if record.n_model_calls == 0 or not has_run:
        return ()
    return run.trace(record.scenario, record.trial).model_calls


def _lacking(calls: Iterable[ModelCall], *, is_scripted: bool) -> Iterator[str]:
    """Name what calls lack; scripted ones cost nothing, and their faults use nothing."""
    for call in calls:
        used = call.usage
        if is_scripted and call.status != "ok":
            continue
        if used is None or used.input_tokens is None or used.output_tokens is None:
            yield "usage"
        if not is_scripted and (used is None or used.cost_usd is None):
            yield "price"


def _name(record: TrialRecord) -> str:
    return f"{record.scenario}.{record.trial}"
