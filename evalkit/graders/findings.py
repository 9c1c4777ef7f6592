"""What a grader with several checks found, and the one grade that comes of it.

A check finds a *fault* (the agent's), a *gap* (something that nobody measured),
or nothing. A fault decides, whatever else is unknown; a gap is never a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evalkit.grade import Grade
from evalkit.graders.base import Trial
from evalkit.graders.places import turn_label
from evalkit.ledger import JSON


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found."""

    text: str
    turn: int | None = None
    """0-based turn that it is about; ``None`` for the whole trial."""
    is_gap: bool = False
    """Whether something could not be measured, rather than being wrong."""
    reason_code: str = "grader_incomplete"
    """Of a gap."""
    evidence: Mapping[str, JSON] = field(default_factory=dict)


def fault(text: str, *, turn: int | None = None, **evidence: JSON) -> Finding:
    """Say what the agent did wrong."""
    return Finding(text, turn, evidence=evidence)


def gap(
    text: str, *, turn: int | None = None, reason_code: str = "grader_incomplete", **evidence: JSON
) -> Finding:
    """Say what could not be measured."""
    return Finding(text, turn, is_gap=True, reason_code=reason_code, evidence=evidence)


def grade_of(
    grader: str,
    findings: Iterable[Finding],
    *,
    trial: Trial,
    passed: str,
    evidence: Mapping[str, JSON] | None = None,
) -> Grade:
    """Make one grade of everything that was found.

    Parameters
    ----------
    grader
        Its name.
    findings
        Faults and gaps.
    trial
        The trial; one that did not run to its end can fail, but not pass.
    passed
        The reason where nothing was found.
    evidence
        What the grader saw, whatever it found.
    """
    found = list(findings)
    faults = [one for one in found if not one.is_gap]
    gaps = [one for one in found if one.is_gap]
    seen = {**(evidence or {}), **_listed("faults", faults), **_listed("gaps", gaps)}
    if faults:
        return _graded(grader, 0.0, faults, trial=trial, evidence=seen)
    if gaps:
        return _graded(grader, None, gaps, trial=trial, evidence=seen)
    if not trial.whole:
        return Grade.incomplete(grader, "the trial did not run to its end")
    return Grade(grader, 1.0, reason=passed, evidence=seen)


def _graded(
    grader: str,
    value: float | None,
    deciding: list[Finding],
    *,
    trial: Trial,
    evidence: Mapping[str, JSON],
) -> Grade:
    turns = {one.turn for one in deciding}
    return Grade(
        grader,
        value,
        reason="; ".join(turn_label(trial, one.turn) + one.text for one in deciding),
        evidence=evidence,
        turn=turns.pop() if len(turns) == 1 else None,
        reason_code=deciding[0].reason_code if value is None else "",
    )


def _listed(name: str, findings: list[Finding]) -> dict[str, JSON]:
    """List findings as evidence, or nothing where there are none."""
    listed = [{"text": one.text, "turn": one.turn, **one.evidence} for one in findings]
    return {name: listed} if listed else {}
