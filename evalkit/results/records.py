"""What a run directory holds, as records: its manifest, and one line a finished trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from evalkit.errors import LedgerError
from evalkit.grade import STATUSES, Ending, Grade, Status, judge_status
from evalkit.ledger import JSON
from evalkit.trace import Trace

FORMAT: Final = 1
"""Version of the run directory's layout; a reader refuses a newer one."""


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """One scenario of the plan; the plan is every rate's denominator."""

    id: str
    n_trials: int
    hash: str = ""
    tags: tuple[str, ...] = ()
    cluster: str = ""
    must_pass: bool = False
    min_pass_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was run, and with what."""

    run_id: str
    suite: str
    lane: str
    plan: tuple[PlannedScenario, ...]
    suite_hash: str = ""
    suite_path: str = ""
    """Where the suite was read from; empty if it came from memory."""
    agent: str = ""
    agent_hash: str = ""
    seed: int = 0
    created_at: str = ""
    """UTC, ISO 8601."""
    finished_at: str | None = None
    """``None`` while trials are missing."""
    digest: str | None = None
    """Over the ledgers of all trials, in plan order; ``None`` until the run is finished."""
    seal: str | None = None
    """Over this manifest and the lines of the trials; ``None`` until the run is finished."""
    isolation: str = ""
    barrier: str = ""
    clock: str = ""
    """Contract lane: ``scenario``; for another program ``libfaketime``, or else ``real``."""
    source: Mapping[str, JSON] = field(default_factory=dict)
    """Imported runs: the tool and file that they come from."""
    parent: str = ""
    """Graded again: the run whose ledgers this one shares."""
    ledgers: str = "ledgers"
    """Folder of the ledgers, relative to the run directory."""
    models: tuple[str, ...] = ()
    graders: Mapping[str, str] = field(default_factory=dict)
    """Version of each grader that was applied."""
    more_graders: tuple[str, ...] = ()
    """Graders that were asked for beside those of the suite."""
    versions: Mapping[str, str] = field(default_factory=dict)
    git: Mapping[str, JSON] = field(default_factory=dict)
    format: int = FORMAT

    def __post_init__(self) -> None:
        twice = [name for name, n in Counter(entry.id for entry in self.plan).items() if n > 1]
        if twice:
            raise LedgerError(f"run {self.run_id}: planned twice: {', '.join(map(repr, twice))}")

    @property
    def n_planned(self) -> int:
        """Number of trials that the run owes."""
        return sum(scenario.n_trials for scenario in self.plan)

    def keys(self) -> Iterable[tuple[str, int]]:
        """Give ``(scenario, trial)`` of every planned trial, in plan order."""
        return (
            (scenario.id, trial) for scenario in self.plan for trial in range(scenario.n_trials)
        )


def manifest_from(data: Mapping[str, Any], *, where: str) -> Manifest:
    """Build a manifest from its JSON.

    Raises
    ------
    LedgerError
        If it is of a newer format, or no manifest at all.
    """
    version = data.get("format") if isinstance(data, Mapping) else None
    if not isinstance(version, int):
        raise LedgerError(f"{where}: not a manifest of a run: it names no format")
    if version > FORMAT:
        raise LedgerError(
            f"{where}: written by a newer evalkit (format {version}, this one reads up to "
            f"{FORMAT}); upgrade with: pip install -U evalkit-lab"
        )
    try:
        plan = tuple(
            PlannedScenario(**{**scenario, "tags": tuple(scenario.get("tags", ()))})
            for scenario in data["plan"]
        )
        lists = {name: tuple(data.get(name, ())) for name in ("models", "more_graders")}
        return Manifest(**{**data, **lists, "plan": plan})
    except (KeyError, TypeError) as error:
        raise LedgerError(f"{where}: not a manifest of a run: {error}") from error


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial as its line in ``trials.jsonl``."""

    scenario: str
    trial: int
    status: Status
    reason_code: str = ""
    reason: str = ""
    quality_status: str = ""
    n_turns: int | None = None
    n_model_calls: int | None = None
    n_tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    duration_s: float | None = None
    tags: tuple[str, ...] = ()
    cluster: str = ""
    seed: int | None = None
    digest: str = ""
    """Of the trial's ledger."""
    grades: tuple[Grade, ...] = ()

    def to_json(self) -> dict[str, JSON]:
        """Give the record as a JSON object."""
        told = {name: getattr(self, name) for name in _FIELDS}
        return {**told, "grades": [grade.to_json() for grade in self.grades]}


_FIELDS: Final = tuple(each.name for each in fields(TrialRecord))


def record_from(data: Mapping[str, Any]) -> TrialRecord:
    """Build a trial's record from its JSON.

    Raises
    ------
    ValueError, TypeError, KeyError
        If it is none.
    """
    if data["status"] not in STATUSES:
        raise ValueError(f"status {data['status']!r} is none of {', '.join(STATUSES)}")
    grades = tuple(Grade(**grade) for grade in data.get("grades", ()))
    return TrialRecord(**{**data, "tags": tuple(data.get("tags", ())), "grades": grades})


def trial_record(
    scenario: str, trial: int, trace: Trace, *, ending: Ending, grades: Sequence[Grade], **more: Any
) -> TrialRecord:
    """Put what a trial did, how it ended and what graders say into its record.

    Parameters
    ----------
    scenario, trial
        Which trial it is.
    trace
        What it did; counts and usage come from it.
    ending
        How its execution ended.
    grades
        What the graders say; with the ending they decide the status.
    **more
        Further fields of :class:`TrialRecord`.
    """
    verdict = judge_status(ending, grades)
    return TrialRecord(
        scenario=scenario,
        trial=trial,
        status=verdict.status,
        reason_code=verdict.reason_code,
        reason=verdict.reason,
        duration_s=verdict.duration_s,
        n_turns=len(trace.turns),
        grades=tuple(grades),
        **_counts(trace),
        **more,
    )


def _counts(trace: Trace) -> dict[str, Any]:
    """Count what was observed; what was not is unknown, never 0."""
    usages = [call.usage for call in trace.model_calls]
    seen = trace.models_observed
    return {
        "n_tool_calls": len(trace.tool_calls) if trace.tools_observed else None,
        "n_model_calls": len(usages) if seen else None,
        "input_tokens": _total([getattr(u, "input_tokens", None) for u in usages], seen=seen),
        "output_tokens": _total([getattr(u, "output_tokens", None) for u in usages], seen=seen),
        "cost_usd": _total([getattr(u, "cost_usd", None) for u in usages], seen=seen),
    }


def _total(values: Sequence[Any], *, seen: bool) -> Any:
    """Sum what every call reported; one unknown makes the sum unknown."""
    return None if not seen or any(value is None for value in values) else sum(values)
