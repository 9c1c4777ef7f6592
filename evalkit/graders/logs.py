"""Log and errors: what the agent wrote to its log, and what of it as errors.

The *log* is what the agent logged and printed. Each check may be met by the whole
text or by a single line, so ``^`` and ``$`` stand for the ends of either. *Errors* are
the entries that were logged as such (level ``ERROR`` or above); an agent that raises
has failed without them.

A log tells no turns. What a turn expects of it is judged where that does not matter,
as for a text that was never logged at all; elsewhere it is a gap. So is all that
was logged where nobody looked: in traces that others recorded.
``outcome["log_gap"]`` says, in a sentence, why a part of the log was not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.places import Place, places_of
from evalkit.graders.texts import SHOWN, Seen, is_over, text_findings
from evalkit.matching import show
from evalkit.suite import Count, ErrorsExpect, TextExpect

_NAMED: Final = 3
"""Errors that a reason quotes."""


def grade_log(trial: Trial) -> Grade:
    """Grade what the agent logged in one trial.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, only what must not be logged is judged.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where nobody saw the log.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> scenario = Scenario.model_validate(
    ...     {"id": "quiet", "input": "Hi.", "forbid": {"log": "Traceback"}}
    ... )
    >>> grade_log(Trial(scenario, Trace(logs=("Traceback (most recent call last):",)))).reason
    "the log contains 'Traceback', which is forbidden: 'Traceback (most recent call last):'"
    """
    return _graded("log", trial, check=_of_log)


def grade_errors(trial: Trial) -> Grade:
    """Grade the errors that the agent logged in one trial.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, only too many errors and what none of
        them may say are judged.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where nobody saw the log.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> scenario = Scenario.model_validate({"id": "quiet", "input": "Hi.", "expect": {"errors": 0}})
    >>> grade_errors(Trial(scenario, Trace(errors=("model call failed",)))).reason
    "1 error(s) logged, expected 0: 'model call failed'"
    """
    return _graded("errors", trial, check=_of_errors)


_Check = Callable[[Place, Trial], Iterator[Finding]]


def _graded(name: str, trial: Trial, *, check: _Check) -> Grade:
    places = [place for place in places_of(trial.scenario) if _speaks(place, name)]
    if not places:
        return Grade.incomplete(name, f"the scenario expects nothing of the {name}")
    trace = trial.trace
    return grade_of(
        name,
        chain.from_iterable(check(place, trial) for place in places),
        trial=trial,
        passed=f"what was logged is as expected ({name})",
        evidence={"n_logged": len(trace.logs), "n_errors": len(trace.errors)},
    )


def _speaks(place: Place, name: str) -> bool:
    """Say whether a place says anything of the log, or of errors."""
    _, expect, forbid = place
    return any(getattr(said, name, None) is not None for said in (expect, forbid))


def _of_log(place: Place, trial: Trial) -> Iterator[Finding]:
    whole = "\n".join(trial.trace.logs)
    texts = dict.fromkeys([whole, *trial.trace.logs, *whole.splitlines()])
    note = f"; it reads {show(whole, SHOWN)}" if whole else "; it is empty"
    seen = _seen("the log", tuple(texts), note, place=place, trial=trial)
    _, expect, forbid = place
    yield from text_findings(
        seen,
        expect=None if expect is None else expect.log,
        forbid=None if forbid is None else forbid.log,
    )


def _of_errors(place: Place, trial: Trial) -> Iterator[Finding]:
    errors = trial.trace.errors
    note = f"; it reads {_listed(errors)}" if errors else "; it is empty"
    seen = _seen("the log of errors", errors, note, place=place, trial=trial)
    _, expect, forbid = place
    wanted = None if expect is None else expect.errors
    if wanted is not None and wanted.count is not None:
        yield from _miscounted(wanted.count, seen)
    yield from text_findings(
        seen,
        expect=None if wanted is None else _texts(wanted),
        forbid=None if forbid is None else forbid.errors,
    )


def _texts(wanted: ErrorsExpect) -> TextExpect:
    """Give what is expected of the texts of errors."""
    return TextExpect.model_construct(
        contains=wanted.contains, not_contains=wanted.not_contains, regex=wanted.regex
    )


def _seen(name: str, texts: tuple[str, ...], note: str, *, place: Place, trial: Trial) -> Seen:
    is_one_of_many = place.turn is not None and len(trial.scenario.turns) > 1
    return Seen(
        name,
        texts,
        turn=place.turn,
        # A turn's part of the log may still come with the next turns.
        is_over=is_over(trial, None),
        unseen=_unseen(trial),
        foreign="which turn logged it was not recorded" if is_one_of_many else "",
        note=note,
    )


def _unseen(trial: Trial) -> str:
    if trial.lane == "imported":
        return "nobody saw the agent's log"
    return str(trial.outcome.get("log_gap") or "")


def _miscounted(count: Count, seen: Seen) -> Iterator[Finding]:
    """Hold the number of errors against what is expected; a turn had these at most."""
    n = len(seen.texts)
    is_more = count.max is not None and n > count.max
    is_less = seen.is_over and n < count.min
    if (is_more and not seen.foreign) or (is_less and not seen.unseen):
        named = f": {_listed(seen.texts)}" if n else ""
        yield fault(f"{n} error(s) logged, expected {_range(count)}{named}", turn=seen.turn)
    elif seen.unseen and (is_less or count.max is not None):
        yield gap(seen.unseen, turn=seen.turn)
    elif seen.foreign and (is_more or count.min):
        yield gap(seen.foreign, turn=seen.turn)


def _range(count: Count) -> str:
    if count.max is None:
        return f"at least {count.min}"
    return str(count.min) if count.min == count.max else f"{count.min} to {count.max}"


def _listed(errors: Sequence[str]) -> str:
    """Quote the first few errors and count the rest."""
    rest = len(errors) - _NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(show(error, SHOWN) for error in errors[:_NAMED]) + more


def _applies_to(name: str) -> Callable[[Trial], bool]:
    return lambda trial: any(_speaks(place, name) for place in places_of(trial.scenario))


add_grader(Grader("log", grade_log, version="1", applies=_applies_to("log"), reads_partial=True))
add_grader(
    Grader("errors", grade_errors, version="1", applies=_applies_to("errors"), reads_partial=True)
)
