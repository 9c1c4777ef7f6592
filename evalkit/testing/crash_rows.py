"""One row for each moment at which an agent was killed: what became of the trial."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from evalkit.grade import Grade, worst
from evalkit.graders import Trial, find_grader
from evalkit.ledger import Event
from evalkit.matching.requests import request_matches
from evalkit.terminal import one_line

if TYPE_CHECKING:
    from evalkit.suite import Scenario
    from evalkit.trial import FinishedTrial

COLUMNS: Final[Mapping[str, str]] = {
    "event": "int64",
    "kind": "object",
    "turn": "Int64",
    "what": "object",
    "status": "object",
    "lost": "object",
    "answered_twice": "bool",
    "unanswered": "bool",
    "n_replies": "Int64",
    "n_replies_undisturbed": "Int64",
    "reason": "object",
}
"""Type of each column."""

_LASTING: Final = ("database", "state", "files")
_OF_THE_CRASH: Final = frozenset({"", "left_over_steps"})
"""How trials end to which nothing happened that the crash does not explain."""


def judged_row(
    event: Event, *, calm: Sequence[int], crashed: FinishedTrial, view: Trial
) -> dict[str, Any]:
    """Judge one trial that was killed.

    Parameters
    ----------
    event
        After which it was.
    calm
        Replies in each turn of the trial that was not.
    crashed, view
        The trial, and as graders see it.
    """
    turn = _turn_of(event, crashed.events)
    found = n_replies(crashed.events, view.scenario)
    grades = [find_grader(name)(view) for name in _LASTING if find_grader(name).applies(view)]
    twice = [n for n, number in enumerate(found) if number > calm[n]]
    findings = [*_of_ending(event, crashed), *_of_turns(twice, calm, found), *_of_grades(grades)]
    status = worst([status for status, _ in findings]) if findings else "passed"
    return {
        "event": event.seq,
        "kind": event.kind,
        "turn": turn,
        "what": what(event),
        "status": status,
        "lost": "; ".join(grade.reason for grade in grades if grade.status == "failed"),
        "answered_twice": bool(twice),
        "unanswered": any(number < calm[n] for n, number in enumerate(found)),
        "n_replies": None if turn is None else found[turn],
        "n_replies_undisturbed": None if turn is None else calm[turn],
        "reason": "; ".join(reason for one, reason in findings if one == status),
    }


def n_replies(events: Iterable[Event], scenario: Scenario) -> list[int]:
    """Count what came out as replies in each turn.

    A request is out once it has come, also where a crash kept it from being taken in as a
    reply: whoever got it has read it.
    """
    found = [0] * len(scenario.turns)
    source, turn = scenario.reply_from, -1
    for event in events:
        if event.kind == "turn":
            turn = event.data["turn"]
        elif source is None:
            found[turn] += event.kind == "reply"
        elif event.kind == "http" and event.data.get("to") == "fixture" and turn >= 0:
            told = event.data
            found[turn] += request_matches(source.request, told["method"], told["url"])
    return found


def _turn_of(event: Event, events: Sequence[Event]) -> int | None:
    """Give the turn in which an event falls, from 0."""
    begun = [one.data["turn"] for one in events if one.kind == "turn" and one.seq <= event.seq]
    return begun[-1] if begun else None


def _of_ending(event: Event, crashed: FinishedTrial) -> list[tuple[Any, str]]:
    """Say what is wrong with how a trial went on."""
    if not any(one.kind == "state" and one.data.get("life") == 1 for one in crashed.events):
        ending = crashed.ending
        why = ending.reason or "it did not come to this event again"
        return [("incomplete", f"the agent was not killed, or not started again: {why}")]
    there = crashed.events[event.seq - 1]
    is_same = event.kind == "trial_start" or (there.kind, there.data) == (event.kind, event.data)
    if not is_same:
        return [("incomplete", "the trial went another way before it was killed")]
    ending = crashed.ending
    return [] if ending.reason_code in _OF_THE_CRASH else [(ending.status, ending.reason)]


def _of_turns(
    twice: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> list[tuple[Any, str]]:
    return [
        ("failed", f"turn {n + 1} was answered {after[n]} times instead of {before[n]}")
        for n in twice
    ]


def _of_grades(grades: Sequence[Grade]) -> list[tuple[Any, str]]:
    return [
        (grade.status, f"{grade.grader}: {grade.reason}")
        for grade in grades
        if grade.status != "passed"
    ]


def what(event: Event) -> str:
    """Say in a few words what an event was.

    Examples
    --------
    >>> what(Event(4, "tool_call", {"name": "book", "args": {"flight_id": "AA123"}}))
    'book {"flight_id": "AA123"}'
    """
    data = event.data
    match event.kind:
        case "turn":
            told = data["user"] or f"restart ({data['restart']})" if "restart" in data else ""
            told = told or data["user"] or "the clock moves"
        case "tool_call":
            told = f"{data['name']} {json.dumps(data['args'])}"
        case "tool_result" | "model_reply":
            told = f"{data['status']} {json.dumps(data.get('result', data.get('reply')))}"
        case "database":
            told = f"{data['database']}: {data.get('sql') or data.get('query') or 'changes'}"
        case "http":
            told = f"{data.get('method', '')} {data.get('url') or data.get('path', '')}"
        case "reply" | "log":
            told = data["text"]
        case "fault":
            told = data["fault"]
        case "state":
            told = ", ".join(key for key in data if key != "turn")
        case _:
            told = str(data.get("model", ""))
    return one_line(told.strip())
