"""What only a whole scenario or a whole suite can tell: contradictions and dangling names.

Each check gives places in the normalised form and sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from evalkit.suite.bans import Forbid, ForbiddenCall
from evalkit.suite.delivery_checks import delivery_problems
from evalkit.suite.expectations import DatabaseExpect, Expect, ToolsExpect
from evalkit.suite.fields import KeyPath, one_of_words, suggestion
from evalkit.suite.http_checks import http_problems
from evalkit.suite.journey import DeliverTurn, RedeliverTurn, UserTurn
from evalkit.suite.models import Scenario

Found = Iterator[tuple[KeyPath, str]]


class _Scope(NamedTuple):
    """One place that can hold ``expect`` and ``forbid``: the scenario, or one turn."""

    path: KeyPath
    expect: Expect | None
    forbid: Forbid | None


def scenario_problems(scenario: Scenario) -> Found:
    """Find what contradicts itself, names what is not there, or checks nothing."""
    scopes = _scopes(scenario)
    yield from _checks_nothing(scenario, scopes)
    yield from _contradictions(scopes)
    yield from _turn_numbers(scenario, scopes)
    yield from _databases(scenario, scopes)
    yield from _fixture_targets(scenario)
    yield from _names(scenario)
    yield from delivery_problems(scenario)
    yield from http_problems(scenario)


def _scopes(scenario: Scenario) -> list[_Scope]:
    turns = (
        _Scope(("turns", index), turn.expect, turn.forbid)
        for index, turn in enumerate(scenario.turns)
    )
    return [_Scope((), scenario.expect, scenario.forbid), *turns]


def _checks_nothing(scenario: Scenario, scopes: Sequence[_Scope]) -> Found:
    asked = (scenario.graders, scenario.canaries, scenario.quality)
    said = any(scope.expect or scope.forbid for scope in scopes)
    if scenario.shape == "suite" and not said and not any(asked):
        yield (), "nothing is checked: add `expect`, `forbid`, `graders`, `canaries` or `quality`"


def _contradictions(scopes: Sequence[_Scope]) -> Found:
    whole = scopes[0]
    for scope in scopes:
        forbids = [scope.forbid] if scope is whole else [whole.forbid, scope.forbid]
        bans = list(chain.from_iterable(forbid.tools for forbid in forbids if forbid))
        if scope.expect:
            place = (*scope.path, "expect")
            yield from _banned_tools(scope.expect.tools, bans, path=(*place, "tools"))
            yield from _texts(scope.expect, forbids, path=(*place, "reply"))
            yield from _no_reply(scope.expect, path=place)


def _banned_tools(
    tools: ToolsExpect | None, bans: Sequence[ForbiddenCall], *, path: KeyPath
) -> Found:
    for index, call in enumerate(tools.calls if tools else ()):
        if call.times_min and any(_covers(ban, call.tool, call.args) for ban in bans):
            yield (
                (*path, "calls", index),
                f"`{call.tool}` is expected here and forbidden: keep one of the two",
            )
    allowed = tools.extra_calls if tools and isinstance(tools.extra_calls, tuple) else ()
    for index, name in enumerate(allowed):
        if any(_covers(ban, name, {}) for ban in bans):
            yield (
                (*path, "extra_calls", "allow", index),
                f"`{name}` is allowed here and forbidden: keep one of the two",
            )


def _covers(ban: ForbiddenCall, tool: str, args: Any) -> bool:
    """Tell whether every call that meets the expectation falls under the ban."""
    same = (name in args and args[name] == pattern for name, pattern in ban.args.items())
    return ban.tool == tool and all(same)


def _texts(expect: Expect, forbids: Sequence[Forbid | None], *, path: KeyPath) -> Found:
    if expect.reply is None:
        return
    banned = {text.casefold() for text in expect.reply.not_contains}
    for forbid in forbids:
        if forbid and forbid.reply:
            banned |= {text.casefold() for text in forbid.reply.contains}
    for index, text in enumerate(expect.reply.contains):
        if text.casefold() in banned:
            yield (
                (*path, "contains", index),
                f"{text!r} is expected in the reply and forbidden: keep one of the two",
            )


def _no_reply(expect: Expect, *, path: KeyPath) -> Found:
    if expect.reply and expect.replies and expect.replies.max == 0:
        yield (*path, "replies"), "no reply is expected, so `reply` cannot hold: keep one"


def _turn_numbers(scenario: Scenario, scopes: Sequence[_Scope]) -> Found:
    speaking = [
        index + 1
        for index, turn in enumerate(scenario.turns)
        if isinstance(turn, UserTurn | DeliverTurn)
    ]
    if not speaking:
        yield ("turns",), "nothing reaches the agent: add a `user` or `deliver` turn"
    for index, turn in enumerate(scenario.turns):
        earlier = [number for number in speaking if number <= index]
        if isinstance(turn, RedeliverTurn) and turn.redeliver not in earlier:
            yield (
                ("turns", index, "redeliver"),
                f"turn {turn.redeliver} is no earlier `user` or `deliver` turn"
                f"{_numbers(earlier)}; turns are counted from 1",
            )
    for scope in scopes:
        yield from _call_turns(scenario, scope)


def _numbers(numbers: Sequence[int]) -> str:
    return f": write {one_of_words(map(str, numbers))}" if numbers else ""


def _call_turns(scenario: Scenario, scope: _Scope) -> Found:
    tools = scope.expect.tools if scope.expect else None
    for index, call in enumerate(tools.calls if tools else ()):
        path = (*scope.path, "expect", "tools", "calls", index, "turn")
        if call.turn is None:
            continue
        if scope.path:
            yield path, "this expectation belongs to one turn already: remove `turn`"
        elif call.turn > len(scenario.turns):
            n_turns = len(scenario.turns)
            yield path, f"there is no turn {call.turn}: the scenario has {n_turns}, counted from 1"


def _databases(scenario: Scenario, scopes: Sequence[_Scope]) -> Found:
    known = tuple(scenario.fixtures.database) if scenario.fixtures else ()
    for scope in scopes:
        looks = scope.expect.database if scope.expect else None
        for index, look in enumerate(looks or ()):
            message = _database_problem(look, known)
            if message:
                yield (*scope.path, "expect", "database", index), message


def _database_problem(look: DatabaseExpect, known: Sequence[str]) -> str:
    if look.database is None and not known:
        return "says which rows but not where: add `database`, the file in the working directory"
    if look.database is None and len(known) > 1:
        return f"there are several databases: add `database: {one_of_words(known)}`"
    if look.changes is not None and (look.database or known[0]) not in known:
        hint = suggestion(look.database, known)
        return (
            f"`changes` needs a fixture to compare with: there is none for {look.database!r}.{hint}"
        )
    return ""


def _fixture_targets(scenario: Scenario) -> Found:
    if scenario.fixtures:
        for target in scenario.fixtures.database.keys() & scenario.fixtures.files.keys():
            yield (
                ("fixtures", "files", target),
                "is also the name of a database: give one of them another name",
            )


def _names(scenario: Scenario) -> Found:
    counts = Counter(canary.name for canary in scenario.canaries)
    for index, canary in enumerate(scenario.canaries):
        if counts[canary.name] > 1:
            yield ("canaries", index, "name"), f"{canary.name!r} is given twice: rename one"
