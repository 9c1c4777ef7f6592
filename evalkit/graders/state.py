"""State: what the agent tells of itself by ``state()``, by dotted paths.

``outcome["state"]`` lists what it told after each turn: ``turn`` (from 0) with ``state``,
or with ``problem`` where it raised or gave no JSON. What a turn expects is held against
the state after that turn, what the scenario expects against the last one. An agent that
cannot be asked leaves a gap: nothing is wrong with what it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.places import expected
from evalkit.graders.texts import is_over
from evalkit.ledger import JSON
from evalkit.matching import Pattern, compile_pattern, show
from evalkit.matching.values import is_list
from evalkit.suite.fields import suggestion

NAME: Final = "state"
_NAMED: Final = 6
"""Keys that a reason names."""
_UNASKED: Final = "the agent has no state() that could be asked: give its object one"


def grade_state(trial: Trial) -> Grade:
    """Grade what an agent told of its state.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, only turns that ended are judged.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where the agent has no ``state()``.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> scenario = Scenario.model_validate(
    ...     {"id": "hi", "input": "Hi.", "expect": {"state": {"onboarding.stage": "done"}}}
    ... )
    >>> told = [{"turn": 0, "state": {"onboarding": {"stage": "name"}}}]
    >>> grade_state(Trial(scenario, Trace(), {"state": told})).reason
    "state: onboarding.stage: expected 'done', got 'name'"
    """
    wanted = list(expected(trial.scenario, lambda expect: expect.state))
    if not wanted:
        return Grade.incomplete(NAME, "the scenario expects nothing of the state")
    findings = chain.from_iterable(_found(paths, turn, trial) for turn, paths in wanted)
    return grade_of(NAME, findings, trial=trial, passed="the state is as expected")


def _applies(trial: Trial) -> bool:
    return any(True for _ in expected(trial.scenario, lambda expect: expect.state))


def _found(paths: Mapping[str, Any], turn: int | None, trial: Trial) -> Iterator[Finding]:
    if not is_over(trial, turn):
        return
    told: Sequence[Mapping[str, Any]] = trial.outcome.get("state") or ()
    mine = [one for one in told if turn is None or one["turn"] == turn]
    if not mine:
        yield gap(_unseen(trial, told), turn=turn)
    elif "problem" in mine[-1]:
        yield fault(str(mine[-1]["problem"]), turn=turn)
    else:
        for path, pattern in paths.items():
            yield from _judged(path, compile_pattern(pattern), mine[-1]["state"], turn=turn)


def _unseen(trial: Trial, told: Sequence[object]) -> str:
    if trial.lane == "imported":
        return "nobody asked the agent for its state"
    return "the agent told no state after this turn" if told else _UNASKED


def _judged(path: str, pattern: Pattern, state: JSON, *, turn: int | None) -> Iterator[Finding]:
    found = _looked_up(state, path.split("."))
    if isinstance(found, _Missing):
        if not pattern.node.optional:
            yield fault(f"state: {path}: {found.text}", turn=turn, path=path)
        return
    differences = pattern.differences(found, path=path)
    if differences:
        text = ", ".join(map(str, differences[:3]))
        yield fault(f"state: {text}", turn=turn, path=path, actual=found)


class _Missing(NamedTuple):
    """Where a path ends before its end."""

    text: str


def _looked_up(value: JSON, steps: Sequence[str], *, seen: str = "") -> JSON | _Missing:
    """Follow a path; a key may have dots in it, and an item of a list is a number."""
    if not steps:
        return value
    if isinstance(value, Mapping):
        for n_steps in range(len(steps), 0, -1):
            key = ".".join(steps[:n_steps])
            if key in value:
                return _looked_up(value[key], steps[n_steps:], seen=f"{seen}.{key}".lstrip("."))
    elif is_list(value) and steps[0].isdigit() and int(steps[0]) < len(value):
        return _looked_up(value[int(steps[0])], steps[1:], seen=f"{seen}.{steps[0]}".lstrip("."))
    return _Missing(_lack(value, steps[0], seen))


def _lack(value: JSON, step: str, seen: str) -> str:
    """Say what is there in place of what is looked for."""
    place = seen or "the state"
    if isinstance(value, Mapping):
        keys = list(map(str, value))
        near = suggestion(step, keys)
        more = " ..." if len(keys) > _NAMED else ""
        has = f"it has {', '.join(keys[:_NAMED])}{more}" if keys else "it is empty"
        return f"{place} has no {step!r}: {near.strip() or has}"
    if is_list(value):
        return f"{place} is a list of {len(value)}, which has no {step!r}"
    return f"{place} is {show(value)}, which has no {step!r}"


add_grader(Grader(NAME, grade_state, version="1", applies=_applies, reads_partial=True))
