"""Answer: whether the reply says what it must, and nothing that it must not.

``expect.reply`` looks at the last reply (of a turn, where it stands in a turn),
``expect.replies`` counts them, ``forbid.reply`` looks at every one. ``contains``
and ``not_contains`` compare texts in Unicode's composed form (NFC) and without
case; ``equals``, ``one_of`` and ``regex`` compare them as they stand. Meaning is
for a judge: nothing here guesses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.places import Place, places_of
from evalkit.graders.texts import SHOWN, is_over, matched, said, text_misses
from evalkit.ledger import JSON
from evalkit.matching import compile_pattern, show
from evalkit.suite import Count, ForbiddenText, ReplyExpect
from evalkit.trace import Turn


def grade_answer(trial: Trial) -> Grade:
    """Grade the replies of one trial.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, turns that another one followed are
        judged, and what no reply may say.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where a turn is not in the trace.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> scenario = Scenario.model_validate(
    ...     {"id": "book", "input": "Book AA123.", "expect": {"reply": {"contains": "booked"}}}
    ... )
    >>> grade_answer(Trial(scenario, Trace.from_calls(reply="Sorry, no."))).reason
    "the reply does not contain 'booked'; it reads 'Sorry, no.'"
    """
    places = [place for place in places_of(trial.scenario) if _speaks(place)]
    if not places:
        return Grade.incomplete("answer", "the scenario expects nothing of the reply")
    findings = chain.from_iterable(_found(place, trial) for place in places)
    return grade_of(
        "answer",
        findings,
        trial=trial,
        passed="the reply is as expected",
        evidence={"reply": trial.reply[:1000], "n_replies": len(trial.trace.replies)},
    )


def _applies(trial: Trial) -> bool:
    return any(map(_speaks, places_of(trial.scenario)))


def _speaks(place: Place) -> bool:
    """Say whether a place says anything of replies."""
    _, expect, forbid = place
    wanted = expect is not None and (expect.reply is not None or expect.replies is not None)
    return wanted or (forbid is not None and forbid.reply is not None)


def _found(place: Place, trial: Trial) -> Iterator[Finding]:
    turn, expect, forbid = place
    turns = trial.trace.turns
    if turn is not None and turn >= len(turns):
        if trial.whole:
            yield gap(f"the trace has no turn {turn + 1}", turn=turn)
        return
    replies = trial.trace.replies if turn is None else turns[turn].replies
    if forbid is not None and forbid.reply is not None:
        yield from _forbidden(forbid.reply, replies, turn)
    if expect is None:
        return
    over = is_over(trial, turn)
    if expect.replies is not None:
        yield from _miscounted(expect.replies, len(replies), turn=turn, is_over=over)
    if expect.reply is not None and over:
        yield from _unexpected(expect.reply, Turn("", replies), turn)


def _forbidden(
    forbidden: ForbiddenText, replies: tuple[str, ...], turn: int | None
) -> Iterator[Finding]:
    for number, reply in enumerate(replies, start=1):
        which = f"reply {number}" if len(replies) > 1 else "the reply"
        for text in said(forbidden.contains, [reply]):
            yield fault(f"{which} says {text!r}, which is forbidden{_quoted(reply)}", turn=turn)
        for pattern, around in matched(forbidden.regex, [reply]):
            text = f"{which} matches /{pattern}/, which is forbidden: {show(around, SHOWN)}"
            yield fault(text, turn=turn)


def _miscounted(count: Count, n: int, *, turn: int | None, is_over: bool) -> Iterator[Finding]:
    is_more = count.max is not None and n > count.max
    if is_more or (is_over and n < count.min):
        yield fault(f"{n} replies, expected {_range(count)}", turn=turn)


def _range(count: Count) -> str:
    if count.max is None:
        return f"at least {count.min}"
    return str(count.min) if count.min == count.max else f"{count.min} to {count.max}"


def _unexpected(expect: ReplyExpect, said: Turn, turn: int | None) -> Iterator[Finding]:
    if not said.replies:
        yield fault("there was no reply", turn=turn)
        return
    reply = said.replies[-1]
    misses = list(_misses(expect, reply))
    if misses:
        text = f"the reply {', '.join(misses)}{_quoted(reply)}"
        yield fault(text, turn=turn, misses=misses, reply=reply[:1000])


def _quoted(reply: str) -> str:
    return f"; it reads {show(reply, SHOWN)}" if reply else "; it is empty"


def _misses(expect: ReplyExpect, reply: str) -> Iterator[str]:
    """Say what a reply is not, each as the rest of "the reply ..."."""
    yield from (miss.text for miss in text_misses(expect, [reply]))
    if expect.one_of and reply not in expect.one_of:
        yield f"is none of {show(list(expect.one_of), SHOWN)}"
    if expect.max_chars is not None and len(reply) > expect.max_chars:
        yield f"has {len(reply):,} characters, at most {expect.max_chars:,} are allowed"
    if expect.json_schema is not None:
        yield from _schema_misses(expect.json_schema, reply)


def _schema_misses(schema: Mapping[str, JSON], reply: str) -> Iterator[str]:
    accepts = compile_pattern({"$schema": schema})
    try:
        value = json.loads(reply, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        fenced = " (it stands in a Markdown fence)" if reply.lstrip().startswith("```") else ""
        yield f"is no JSON{fenced}: {error}"
        return
    if not accepts.matches(value):
        yield f"breaks the JSON Schema{_where_broken(schema, value)}"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _where_broken(schema: Mapping[str, JSON], value: Any) -> str:
    """Name the place and the rule that tell most of why a value is refused."""
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind: Any = validator_for(schema)
    try:
        error = best_match(kind(schema, registry=Registry()).iter_errors(value))
    except RecursionError:
        return ": it is nested too deeply to be checked"
    return "" if error is None else f" at {error.json_path}: {error.message[:SHOWN]}"


add_grader(Grader("answer", grade_answer, version="1", applies=_applies, reads_partial=True))
