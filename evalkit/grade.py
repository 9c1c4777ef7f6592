"""What a grader says of a trial, how the trial ended, and what both make of it.

Three words only: ``passed``, ``failed``, ``incomplete``. Who is to blame
decides. The agent's fault is ``failed``; what the harness, a provider, a grader
or a budget could not do is ``incomplete``. For a trial and for a run, failed
beats incomplete beats passed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Final, Literal, TypeAlias

from evalkit.errors import GraderError
from evalkit.ledger import JSON

Status: TypeAlias = Literal["passed", "failed", "incomplete"]
STATUSES: Final[tuple[Status, ...]] = ("passed", "failed", "incomplete")
_GRAVITY: Final[Mapping[str, int]] = {"passed": 0, "incomplete": 1, "failed": 2}

REASON_CODES: Final[Mapping[str, str]] = {
    "": "passed, nothing to explain",
    # failed: the agent's fault
    "grader_failed": "a grader found a fault",
    "agent_raised": "the agent raised an exception",
    "agent_exited": "the agent's process ended before the trial did",
    "agent_killed": "a signal ended the agent's process",
    "deadline": "the agent took longer than the scenario's deadline",
    "no_reply": "the agent returned nothing",
    "bad_reply": "the agent returned what is neither text nor a trace",
    "reply_too_large": "the agent returned more than a trial may hold",
    "delivery_refused": "the agent answered what was delivered to it with an error",
    "unscripted_call": "the agent called its model where the script has nothing",
    "left_over_steps": "the agent did not call its model as often as the script says",
    "ambiguous_script": "two scripts answer one model call",
    "bad_request": "the agent sent its model what no provider would understand",
    "outside_connection": "the agent tried to reach the outside",
    "unscripted_request": "the agent sent a request that no fixture answers",
    "ambiguous_fixture": "two fixtures answer one request",
    "left_process": "the agent left a process behind that went on after it",
    "not_deterministic": "two trials under the same conditions did not do the same",
    # incomplete: somebody else's
    "not_built": "the scenario needs a part that this version does not have",
    "real_clock": "the scenario sets the clock, and the agent's program would see the real time",
    "not_repeatable": "two trials of a program whose randomness is not seeded did not do the same",
    "not_graded": "no grader has looked at the trial",
    "grader_raised": "a grader raised",
    "grader_incomplete": "a grader could not measure",
    "tools_not_observed": "nobody saw the agent's tool calls",
    "gateway_failed": "the scripted model itself failed",
    "world_failed": "what answers the agent's requests itself failed",
    "spans_unreadable": "the agent sent spans that cannot be read without a missing package",
    "restart_failed": "what the agent left could not be kept over a restart",
    "worker_lost": "the process of the trial could not be started, or was lost",
    "agent_unavailable": "the agent could not be built in the trial's process",
    "ledger_broken": "the trial's ledger is missing or broken",
    "no_scenario": "no scenario of the suite matches the trial",
    "no_trial": "the run has no trial of the scenario",
    "interrupted": "the run was interrupted before the trial ended",
    "unreadable": "the record of the trial could not be read",
}
"""The closed list of reason codes, each with what it means."""


STAGE_CODES: Final = frozenset(
    {
        "unscripted_call",
        "left_over_steps",
        "ambiguous_script",
        "bad_request",
        "outside_connection",
        "unscripted_request",
        "ambiguous_fixture",
        "left_process",
    }
)
"""Faults of an agent against its surroundings; the trial itself may have run to its end."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What one grader says of one trial.

    ``passed`` and ``value`` are ``None`` where the grader could not measure;
    the reason then says why.

    Examples
    --------
    >>> Grade("truth", 0.0, reason="called forbidden tool: book").status
    'failed'
    """

    grader: str
    value: float | None
    """In [0, 1]; 1.0 is best."""
    passed: bool | None = None
    """Defaults to ``value == 1.0``."""
    reason: str = ""
    evidence: Mapping[str, JSON] = field(default_factory=dict)
    """What the grader saw, as JSON."""
    rubric: str = ""
    score: float | None = None
    """1 to 5, rubrics only."""
    turn: int | None = None
    """0-based index of the turn that was graded; ``None`` for the whole trial."""
    reason_code: str = ""
    """Why it is not passed; filled in from the status where left empty."""

    def __post_init__(self) -> None:
        value = _number(self.grader, self.value)
        passed = _verdict(self.grader, value, self.passed)
        if value is not self.value:
            object.__setattr__(self, "value", value)
        if passed is not self.passed:
            object.__setattr__(self, "passed", passed)
        if not (self.reason_code or passed):
            object.__setattr__(self, "reason_code", _CODE_OF[self.status])
        if self.reason_code not in REASON_CODES:
            raise GraderError(f"{self.grader}: unknown reason code {self.reason_code!r}")

    @classmethod
    def incomplete(
        cls,
        grader: str,
        reason: str,
        *,
        reason_code: str = "grader_incomplete",
        turn: int | None = None,
    ) -> Grade:
        """Say that the grader could not measure, and why."""
        return cls(grader, None, reason=reason, reason_code=reason_code, turn=turn)

    @property
    def status(self) -> Status:
        """The grade in one of the three words."""
        if self.passed is None:
            return "incomplete"
        return "passed" if self.passed else "failed"

    def to_json(self) -> dict[str, JSON]:
        """Give the grade as a JSON object."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS: Final = tuple(each.name for each in fields(Grade))


def _number(grader: str, value: object) -> float | None:
    """Give a grade's value as Python's own number; numpy's would not survive a file."""
    if value is None:
        return None
    # Most are floats; asking for any kind of number takes longer.
    number = float(value) if type(value) is float or isinstance(value, Real) else math.nan
    if not 0.0 <= number <= 1.0:
        raise GraderError(f"{grader}: value {value!r} lies outside [0, 1]")
    return number


def _verdict(grader: str, value: float | None, passed: object) -> bool | None:
    """Say whether a grade is passed; any other word than a bool could be taken for yes."""
    if passed is None:
        return None if value is None else value == 1.0
    if value is None:
        raise GraderError(f"{grader}: passed={passed!r} without a value; nothing was measured")
    if not isinstance(passed, bool) and type(passed).__name__ not in _NUMPY_BOOLS:
        raise GraderError(f"{grader}: passed={passed!r} must be True, False or None")
    return bool(passed)


_NUMPY_BOOLS: Final = frozenset({"bool", "bool_"})

_CODE_OF: Final[Mapping[Status, str]] = {
    "passed": "",
    "failed": "grader_failed",
    "incomplete": "grader_incomplete",
}


def worst(statuses: Iterable[Status]) -> Status:
    """Give the status that decides: failed beats incomplete beats passed.

    Raises
    ------
    ValueError
        If there is no status at all: nothing measured is no pass.

    Examples
    --------
    >>> worst(["passed", "failed", "incomplete"])
    'failed'
    """
    given = tuple(statuses)
    if not given:
        raise ValueError("empty: no status is given, and nothing measured is no pass")
    return max(given, key=_GRAVITY.__getitem__)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the execution of a trial ended, before any grader looked at it."""

    status: Status = "passed"
    reason_code: str = ""
    reason: str = ""
    duration_s: float | None = None


def judge_status(ending: Ending, grades: Sequence[Grade]) -> Ending:
    """Say what the ending of a trial and its grades make of it.

    Failed beats incomplete beats passed. The reason is the ending's where that
    decides, else the deciding grader's. A trial that ended well and that no
    grader looked at is ``incomplete``: nothing was measured.

    Examples
    --------
    >>> judge_status(Ending(), [Grade("truth", 1.0), Grade("path", 0.0, reason="looping")])
    Ending(status='failed', reason_code='grader_failed', reason='path: looping', duration_s=None)
    """
    if not grades and ending.status == "passed":
        return Ending(
            "incomplete", "not_graded", "no grader looked at the trial", ending.duration_s
        )
    status = worst([ending.status, *(grade.status for grade in grades)])
    if status == ending.status:
        return ending
    deciding = next(grade for grade in grades if grade.status == status)
    reason = f"{deciding.grader}: {deciding.reason}"
    return Ending(status, deciding.reason_code, reason, ending.duration_s)
