"""Operators on replies and on the model: cut, emptied, contradicted, swapped, leaking, thrash."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from evalkit.mutation.altering import with_reply
from evalkit.mutation.contradiction import contradicted
from evalkit.mutation.records import Mutant, Subject

_N_MORE = 3
"""Model calls that a thrashing agent makes besides."""


def last_replies(subject: Subject) -> Iterator[tuple[int, str]]:
    """Give the last reply of each turn that has one with text in it."""
    for turn, said in enumerate(subject.trace.turns):
        if said.replies and said.replies[-1].strip():
            yield turn, said.replies[-1]


def cut_reply(subject: Subject) -> Iterator[Mutant]:
    """Keep the first half of a reply's words."""
    for turn, text in last_replies(subject):
        words = list(re.finditer(r"\S+", text))
        if len(words) > 1:
            kept = text[: words[len(words) // 2 - 1].end()]
            what = f"the reply broke off after {len(words) // 2} of {len(words)} words"
            yield Mutant(what, with_reply(subject.trace, turn, kept), turn)


def empty_reply(subject: Subject) -> Iterator[Mutant]:
    """Say nothing."""
    for turn, _ in last_replies(subject):
        yield Mutant("the reply was empty", with_reply(subject.trace, turn, ""), turn)


def contradict_reply(subject: Subject) -> Iterator[Mutant]:
    """Say the opposite."""
    for turn, text in last_replies(subject):
        opposite = contradicted(text)
        if opposite is not None:
            trace = with_reply(subject.trace, turn, opposite)
            yield Mutant(f"the reply said the opposite: {_around(text, opposite)}", trace, turn)


def _around(before: str, after: str) -> str:
    """Show where two texts begin to differ."""
    same = next((n for n, pair in enumerate(zip(before, after, strict=False)) if len({*pair}) > 1),
                len(before))  # fmt: skip
    start = after.rfind(" ", 0, max(same - 12, 0)) + 1
    return f"{'…' if start else ''}{after[start : start + 60]}"


def swap_replies(subject: Subject) -> Iterator[Mutant]:
    """Let the replies of two turns change places."""
    for (one, first), (other, second) in pairwise(last_replies(subject)):
        trace = with_reply(with_reply(subject.trace, one, second), other, first)
        yield Mutant(f"the replies of turns {one + 1} and {other + 1} swapped", trace, one)


def leak(encoded: Callable[[str], str], how: str) -> Callable[[Subject], Iterator[Mutant]]:
    """Make the operator that adds each canary to the last reply in one encoding."""

    def breaks(subject: Subject) -> Iterator[Mutant]:
        spoken = list(last_replies(subject))
        for canary in subject.trial.scenario.canaries if spoken else ():
            turn, text = spoken[-1]
            trace = with_reply(subject.trace, turn, f"{text} {encoded(canary.value)}")
            allowed = f"the suite lets canary {canary.name} appear in the reply"
            # A report names a canary, never its value.
            what = f"canary {canary.name} in the reply, {how}"
            yield Mutant(what, trace, turn, excluded=allowed if "reply" in canary.allow else "")

    return breaks


def plain(text: str) -> str:
    """Give a text as it is."""
    return text


def base64_of(text: str) -> str:
    """Give a text in base64."""
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def thrash(subject: Subject) -> Iterator[Mutant]:
    """Ask the model three times more than needed."""
    calls = subject.trace.model_calls
    if subject.trace.models_observed and calls:
        again = (replace(calls[-1], span_id=""),) * _N_MORE
        trace = replace(subject.trace, model_calls=(*calls, *again))
        refused = "the contract lane refuses what is not scripted, whatever a suite expects"
        yield Mutant(
            f"{_N_MORE} model calls more than the {len(calls)} needed",
            trace,
            calls[-1].turn,
            excluded=refused if subject.trial.lane == "contract" else "",
        )
