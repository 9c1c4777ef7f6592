r"""Prompt: what the model was sent, over all calls of the trial or of one turn.

Looked at is every text in a request - system prompt, descriptions of tools, messages,
tool calls and their results - as it was written: quotes and line breaks are no
``\"`` and ``\n``, also where a tool's result is JSON inside a text. The keys of
objects are no texts. Each check may be met in any one of these texts.

A prompt that nobody recorded is a gap: what is forbidden may stand in it.

A request that only has tokens counted is no model call, so nothing expected is met by
it. But its text has left, too: what no prompt may say, it may not either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, gap, grade_of
from evalkit.graders.places import Place, places_of
from evalkit.graders.texts import Seen, is_over, text_findings
from evalkit.ledger import JSON
from evalkit.matching.values import is_list
from evalkit.suite import TextExpect
from evalkit.trace import ModelCall

NAME = "prompt"


def grade_prompt(trial: Trial) -> Grade:
    """Grade what the model was sent in one trial.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, turns that another one followed are
        judged, and what no prompt may say.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where prompts were not observed.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import ModelCall, Trace
    >>> scenario = Scenario.model_validate(
    ...     {"id": "ask", "input": "Hi.", "expect": {"prompt": {"contains": "be brief"}}}
    ... )
    >>> sent = ModelCall(prompt={"messages": [{"role": "user", "content": "Hi."}]})
    >>> grade_prompt(Trial(scenario, Trace(model_calls=(sent,), models_observed=True))).reason
    "what the model was sent does not contain 'be brief'"
    """
    places = [place for place in places_of(trial.scenario) if _speaks(place)]
    if not places:
        return Grade.incomplete(NAME, "the scenario expects nothing of the prompts")
    return grade_of(
        NAME,
        chain.from_iterable(_found(place, trial) for place in places),
        trial=trial,
        passed="what the model was sent is as expected",
        evidence={"n_model_calls": len(trial.trace.model_calls)},
    )


def _applies(trial: Trial) -> bool:
    return any(map(_speaks, places_of(trial.scenario)))


def _speaks(place: Place) -> bool:
    """Say whether a place says anything of prompts."""
    _, expect, forbid = place
    wanted = expect is not None and expect.prompt is not None
    return wanted or (forbid is not None and forbid.prompt is not None)


def _found(place: Place, trial: Trial) -> Iterator[Finding]:
    turn, expect, forbid = place
    if turn is not None and turn >= len(trial.trace.turns):
        if trial.whole:
            yield gap(f"the trace has no turn {turn + 1}", turn=turn)
        return
    calls = [call for call in trial.trace.model_calls if turn in (None, call.turn)]
    never = "was never called" if turn is None else "was not called in this turn"
    seen = Seen(
        "what the model was sent",
        texts_of(call.prompt for call in calls),
        turn=turn,
        is_over=is_over(trial, turn),
        unseen=_unseen(trial, calls),
        note="" if calls else f"; the model {never}",
    )
    wanted = None if expect is None else expect.prompt
    banned = None if forbid is None else forbid.prompt
    yield from text_findings(seen, expect=wanted, forbid=banned)
    counted = Seen("what was sent to have its tokens counted", _counted(trial, turn), turn=turn)
    yield from text_findings(counted, expect=_unwanted(wanted), forbid=banned)


def _unwanted(wanted: TextExpect | None) -> TextExpect | None:
    """Give the part of what is expected that bans something."""
    if wanted is None or not wanted.not_contains:
        return None
    return TextExpect(not_contains=wanted.not_contains)


def _counted(trial: Trial, turn: int | None) -> tuple[str, ...]:
    """Give every text that was sent only to have its tokens counted."""
    sent: Any = trial.outcome.get("counted_prompts", ())
    return texts_of(one["body"] for one in sent if turn in (None, one["turn"]))


def _unseen(trial: Trial, calls: Sequence[ModelCall]) -> str:
    """Say which prompts nobody recorded."""
    if not trial.trace.models_observed:
        return "nobody saw what the agent sent to its model"
    n_lost = sum(not call.prompt for call in calls)
    if not n_lost:
        return ""
    return f"the prompt of {n_lost} of {len(calls)} model call(s) was not recorded"


def texts_of(values: Iterable[JSON]) -> tuple[str, ...]:
    r"""Give every text in JSON data once, in order; keys of objects are none.

    A text that is itself a JSON object or list is followed by the texts in it.

    Examples
    --------
    >>> texts_of([{"role": "user", "content": ["Hi.", {"n": 1}]}, '{"say": "a \\"b\\""}'])
    ('user', 'Hi.', '{"say": "a \\"b\\""}', 'a "b"')
    """
    found: dict[str, None] = {}
    # A stack, because the agent chooses how deep a prompt is.
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if value not in found:
                found[value] = None
                waiting += _inside(value)
        elif isinstance(value, Mapping):
            waiting += list(value.values())[::-1]
        elif is_list(value):
            waiting += list(value)[::-1]
    return tuple(found)


def _inside(text: str) -> list[JSON]:
    """Read a text that is JSON: what a tool gives back often is."""
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []


add_grader(Grader(NAME, grade_prompt, version="2", applies=_applies, reads_partial=True))
