"""``gate``: all checks of a run, and the one verdict that they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from evalkit.errors import UsageError
from evalkit.gating.certain import check_certain
from evalkit.gating.contract import check_contract
from evalkit.gating.evidence import Evidence, evidence_of
from evalkit.gating.floor import check_floor
from evalkit.gating.measured import (
    MEASURED,
    check_comparable,
    check_measured,
    scenario_notes,
)
from evalkit.gating.reference import Reference, reference_of
from evalkit.gating.regression import check_regression
from evalkit.gating.resolving import resolution
from evalkit.gating.rules import FloorOn, OnInconclusive, Rules
from evalkit.gating.verdicts import Check, Verdict, gravest_first, worst_outcome
from evalkit.gating.watching import check_parts, parts_of, watch

if TYPE_CHECKING:
    from evalkit.baselines import Baseline

SCRIPTED: Final = "contract"
"""The lane in which nothing is estimated."""


def gate(  # noqa: PLR0913 - each is one thing that a team decides about its gate
    run: Any,
    *,
    baseline: str | Baseline | Any = None,
    floor: float | None = None,
    floor_proven: bool = False,
    floor_on: FloorOn = "pass_rate",
    margin: float = 0.05,
    confidence: float = 0.95,
    looks: int = 1,
    on_inconclusive: OnInconclusive = "warn",
    accept: Iterable[str] = (),
    gate_on: Iterable[str] = (),
    folder: str = "data/baselines",
) -> Verdict:
    """Decide whether a run is good enough, and whether it is worse than its baseline.

    In the contract lane every planned trial must have passed; nothing is estimated. In
    the other lanes the verdict is the gravest outcome of these checks: enough was
    measured; no ``must_pass`` scenario failed; no scenario is below its
    ``min_pass_rate``; no planted secret leaked; the pass rate clears the ``floor``; it
    is not lower than the baseline's by ``margin`` or more. A PASS must hold with
    incomplete trials counted as failed.

    Parameters
    ----------
    run
        A run, or the frame of its trials (columns ``scenario`` and ``status``; used
        where they are there: ``lane``, ``scenario_hash``, ``tags``, ``must_pass``,
        ``min_pass_rate``).
    baseline
        Name of a pinned baseline, the baseline itself, or a frame of its trials.
    floor
        Rate in [0, 1] that the estimate must reach.
    floor_proven
        Ask that the lower bound of the interval reaches the floor, too.
    floor_on
        What the floor is about: the pass rate, or the mean grade of the trials.
    margin
        Drop of the pass rate, in [0, 1], that must be ruled out.
    confidence
        Two-sided level of the intervals that decide.
    looks
        How often one looks at growing data; the level is corrected by Bonferroni.
    on_inconclusive
        ``"fail"`` gives an inconclusive verdict the exit code 2 instead of 0.
    accept
        Ids of scenarios that may be missing or changed although they had failed.
    gate_on
        Parts that may fail the build: ``tag:NAME`` or ``grader:NAME``, with Holm's
        correction. All other parts are only watched.
    folder
        Where named baselines lie.

    Returns
    -------
    Verdict
        PASS, FAIL, INCONCLUSIVE or INVALID, with reasons in words.

    Raises
    ------
    UsageError
        If an argument cannot mean anything, or there is nothing to decide by.
    BaselineError
        If the named baseline is not there, or was edited.

    Notes
    -----
    The difference is that of paired scenarios, its interval MOVER with clustered
    Wilson margins (:func:`evalkit.stats.compare`). Of simulated agents that had not
    changed (20 to 200 scenarios, three trials, 1,000 runs each) 2.0 to 2.4 % were failed.

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({"scenario": [f"s{i}" for i in range(20)], "lane": "live",
    ...                        "status": ["passed"] * 15 + ["failed"] * 5})
    >>> verdict = gate(trials, floor=0.9)
    >>> verdict.verdict
    'FAIL'
    >>> verdict.reasons[0]
    'pass rate 75.0% over 20 scenario(s) (53.1% to 88.8%) missed the floor of 90.0% (proven)'
    """
    rules = Rules(
        floor=floor,
        floor_proven=floor_proven,
        floor_on=floor_on,
        margin=margin,
        confidence=confidence,
        looks=looks,
        on_inconclusive=on_inconclusive,
        accept=_names(accept),
        gate_on=_names(gate_on),
    )
    evidence = evidence_of(run)
    return _decide(evidence, reference_of(run, evidence, baseline, folder=folder), rules)


def _names(given: Iterable[str]) -> tuple[str, ...]:
    """Give names as a tuple; a single one is not its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


def _decide(evidence: Evidence, reference: Reference | None, rules: Rules) -> Verdict:
    """Make all checks, and take the gravest."""
    scripted = evidence.lane == SCRIPTED
    if parts_of(rules.gate_on) and reference is None and not scripted:
        raise UsageError(
            f"gate_on {', '.join(rules.gate_on)}: a part is held against a baseline; give one "
            "(--baseline NAME)"
        )
    judge = _contract_checks if scripted else _statistical_checks
    checks = gravest_first([*_untouched(evidence), *judge(evidence, reference, rules)])
    if all(check.name == MEASURED and check.outcome == "PASS" for check in checks):
        raise UsageError(
            f"{evidence.name or 'the run'}: there is nothing to decide by; give a baseline to "
            "compare with (--baseline NAME), or a floor (--floor 0.90)"
        )
    return Verdict(
        verdict=worst_outcome(checks),
        checks=checks,
        run=evidence.name,
        suite=evidence.suite,
        lane=evidence.lane,
        baseline=reference.name if reference else "",
        resolution="" if scripted else resolution(evidence, reference, rules),
        notes=tuple(_notes(evidence, reference)),
        strict=rules.on_inconclusive == "fail",
    )


def _untouched(evidence: Evidence) -> list[Check]:
    """Refuse to decide by a run directory that contradicts itself."""
    return [Check("run directory", "INVALID", problem) for problem in evidence.problems]


def _contract_checks(evidence: Evidence, reference: Reference | None, rules: Rules) -> list[Check]:
    """Hold a run of scripted trials to its plan, and its plan to the baseline's."""
    compared = check_comparable(reference, rules) if reference else []
    return [*check_contract(evidence), *compared]


def _statistical_checks(
    evidence: Evidence, reference: Reference | None, rules: Rules
) -> list[Check]:
    """Decide what single trials decide, then, if enough was measured, what rates decide."""
    compared = check_comparable(reference, rules) if reference else []
    measured = check_measured(evidence)
    checks = [*check_certain(evidence), *compared]
    if _is_invalid(measured):
        return [*measured, *checks]
    comparable = None if _is_invalid(compared) else reference
    return [*checks, *_cautious(evidence, comparable, rules), *measured]


def _is_invalid(checks: Iterable[Check]) -> bool:
    return any(check.outcome == "INVALID" for check in checks)


def _cautious(evidence: Evidence, reference: Reference | None, rules: Rules) -> list[Check]:
    """Check the rates; a pass must not hang on trials without a result."""
    checks = _rate_checks(evidence, reference, rules)
    if not evidence.n_incomplete:
        return checks
    worst = _rate_checks(evidence.with_failures_for_incomplete(), reference, rules)
    pessimistic = {check.name: check for check in worst}  # parts may come in another order
    return [_taken_back(check, pessimistic[check.name]) for check in checks]


def _rate_checks(evidence: Evidence, reference: Reference | None, rules: Rules) -> list[Check]:
    """Hold the rates to the floor, and to the baseline where there is one."""
    checks = check_floor(evidence, rules)
    if reference is not None:
        checks += check_regression(evidence, reference, rules)
        checks += check_parts(evidence, reference, rules)
    return checks


def _taken_back(check: Check, pessimistic: Check) -> Check:
    """Take a pass back that holds only if incomplete trials are left out."""
    if check.outcome != "PASS" or pessimistic.outcome == "PASS":
        return check
    more = "; but not if the incomplete trials had failed"
    return replace(check, outcome="INCONCLUSIVE", reason=check.reason + more)


def _notes(evidence: Evidence, reference: Reference | None) -> Iterator[str]:
    """Say what one should know beside the verdict."""
    if reference is not None:
        yield from scenario_notes(reference)
        if evidence.lane != SCRIPTED:
            yield from watch(evidence, reference.data)
