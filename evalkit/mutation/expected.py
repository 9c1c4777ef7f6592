"""Which calls a scenario expects in a turn, and which call fits which of them."""

from __future__ import annotations

from collections.abc import Iterator

from evalkit.graders.places import places_of
from evalkit.graders.truth import expected_call
from evalkit.matching.calls import Expectation
from evalkit.mutation.records import Subject
from evalkit.suite import CallExpect
from evalkit.trace import ToolCall


def expectations_of(subject: Subject, turn: int) -> Iterator[CallExpect]:
    """Give the expected calls that a turn's calls may meet."""
    for place in places_of(subject.trial.scenario):
        if place.turn in (None, turn) and place.expect and place.expect.tools:
            yield from place.expect.tools.calls


def fits(wanted: CallExpect, call: ToolCall) -> bool:
    """Say whether a call alone meets an expectation."""
    return Expectation.of(expected_call(wanted)).fits(call)
