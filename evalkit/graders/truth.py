"""Decide whether the right tools were called with the right arguments, and no forbidden one.

A **call** is an attempt. Which call satisfies which expectation is decided by
:func:`evalkit.matching.match_calls`, one to one; a call that is known to have
failed satisfies none unless the expectation names its status. ``forbid`` wins
over everything, covers failed attempts and leaves further arguments free. What
nobody observed, could read or could decide is ``incomplete``, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.places import Place, places_of
from evalkit.ledger import JSON
from evalkit.matching import (
    CallMatch,
    ExpectedCall,
    LeftOver,
    Miss,
    Refs,
    compile_arguments,
    match_calls,
    show,
)
from evalkit.suite import CallExpect, ForbiddenCall, ToolsExpect
from evalkit.trace import ToolCall

NAME = "truth"
_PASSED = "all expected tool calls present with correct args"
_ARGS_SHOWN = 400
"""Characters of a call's arguments in a reason."""
_LISTED = 5
"""Calls or differences named in a reason; the evidence has all."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The tools that one place expects, and the calls that it looks at."""

    turn: int | None
    tools: ToolsExpect
    calls: tuple[ToolCall, ...]
    positions: tuple[int, ...]
    """Of the calls, among all calls of the trial."""
    found: CallMatch


def grade_truth(trial: Trial) -> Grade:
    """Grade the tool calls of one trial.

    Parameters
    ----------
    trial
        Its scenario's ``expect.tools`` and ``forbid.tools``, those of its turns
        included, are held against the calls of its trace.

    Returns
    -------
    Grade
        1.0 or 0.0, or incomplete where the calls were not observed. The evidence
        has precision, recall and F1 of the assignment, and every miss with the
        nearest call, its differences, and whether the tool was called at all.
    """
    parts = _parts(trial) if trial.trace.tools_observed else []
    refs = {name: calls for part in parts for name, calls in part.found.refs.items()}
    findings = [*_forbidden(trial, refs), *_unobserved(trial)]
    for part in parts:
        findings += _faults(trial, part) if trial.whole else _early_faults(part)
    return grade_of(NAME, findings, trial=trial, passed=_PASSED, evidence=_evidence(parts))


def _applies(trial: Trial) -> bool:
    """Tell whether the scenario says anything about tools."""
    return any(_says_something(place) for place in places_of(trial.scenario))


def _says_something(place: Place) -> bool:
    expects = place.expect is not None and place.expect.tools is not None
    return expects or bool(place.forbid and place.forbid.tools)


def _unobserved(trial: Trial) -> Iterator[Finding]:
    """Find that nobody saw the tool calls, where something is said about them."""
    if not trial.trace.tools_observed and _applies(trial):
        yield gap(
            "the agent's tool calls were not observed: let it return a Trace, or wrap its tools",
            reason_code="tools_not_observed",
        )


def _parts(trial: Trial) -> list[_Part]:
    """Match the calls of the trial, and of each turn that expects some."""
    return [
        _part(trial, place.turn, place.expect.tools)
        for place in places_of(trial.scenario)
        if place.expect is not None and place.expect.tools is not None
    ]


def _part(trial: Trial, turn: int | None, tools: ToolsExpect) -> _Part:
    numbered = _calls_of(trial, turn)
    calls = tuple(call for _, call in numbered)
    found = match_calls(
        [expected_call(call) for call in tools.calls],
        calls,
        order=tools.order,
        extra_calls=tools.extra_calls,
    )
    return _Part(turn, tools, calls, tuple(position for position, _ in numbered), found)


def _calls_of(trial: Trial, turn: int | None) -> list[tuple[int, ToolCall]]:
    """Give the calls of one turn, or all, with their position in the trial."""
    calls = enumerate(trial.trace.tool_calls)
    return [(position, call) for position, call in calls if turn in (None, call.turn)]


def expected_call(call: CallExpect) -> ExpectedCall:
    """Bring an expected call from a suite's form into the matcher's."""
    return ExpectedCall(
        call.tool,
        call.args,
        id=call.id,
        after=tuple(call.after),
        times=None if call.times is None else (call.times.min, call.times.max),
        status=call.status,
        extra_args_allowed=call.extra_args == "free",
        # A suite counts turns from 1, a trace from 0.
        turn=None if call.turn is None else call.turn - 1,
    )


def _forbidden(trial: Trial, refs: Refs) -> Iterator[Finding]:
    """Find calls that must not be attempted; each tool is named once a place."""
    for place in places_of(trial.scenario):
        seen: set[str] = set()
        for banned in place.forbid.tools if place.forbid else ():
            for position, call in _calls_of(trial, place.turn):
                found = _judged(banned, call, refs)
                if found and found not in seen:
                    seen.add(found)
                    is_gap = call.args is None and bool(banned.args)
                    say = gap if is_gap else fault
                    yield say(found, turn=place.turn, call=position, tool=call.name)


def _judged(banned: ForbiddenCall, call: ToolCall, refs: Refs) -> str:
    """Say why a call is forbidden, or cannot be told; empty if it is neither."""
    if call.name != banned.tool:
        return ""
    if not banned.args:
        return f"called forbidden tool: {call.name}"
    if call.args is None:
        return f"cannot tell whether a call of {call.name} was forbidden: its arguments are no JSON"
    for name, pattern in compile_arguments(banned.args).items():
        if name not in call.args and not pattern.node.optional:
            return ""
        # A reference to nothing cannot clear a call.
        if name in call.args and not pattern.matches(call.args[name], refs, unresolved=True):
            return ""
    return f"called forbidden tool: {_written(call.name, call.args)}"


def _faults(trial: Trial, part: _Part) -> Iterator[Finding]:
    """Find what one place misses and what it did not allow."""
    found, with_nearest = part.found, trial.scenario.shape == "suite"
    if found.undecided:
        yield gap(f"the tool calls could not be matched: {found.undecided}", turn=part.turn)
        return
    if found.misses:
        items = (_missing(part, miss, with_nearest=with_nearest) for miss in found.misses)
        yield fault("missing/incorrect: " + "; ".join(items), turn=part.turn)
    yield from _extra_calls(part, [one for one in found.left_over if one.expected is None])
    yield from _too_often(part, [one for one in found.left_over if one.expected is not None])


def _early_faults(part: _Part) -> Iterator[Finding]:
    """Find what nothing that was still to come could have put right."""
    tools = {call.tool for call in part.tools.calls}
    extra = [one for one in part.found.left_over if part.calls[one.call].name not in tools]
    return _extra_calls(part, extra)


def _missing(part: _Part, miss: Miss, *, with_nearest: bool) -> str:
    """Write one miss: the call as expected, and how the nearest one differs."""
    expected = part.tools.calls[miss.expected]
    text = _written(expected.tool, expected.args)
    if miss.n_wanted > 1:
        text += f" ({miss.n_found} of {miss.n_wanted} calls)"
    if with_nearest and miss.differences:
        text += f" (nearest call: {_some(list(map(str, miss.differences)))})"
    return text


def _extra_calls(part: _Part, extra: Sequence[LeftOver]) -> Iterator[Finding]:
    """Find calls that nobody expected where extra calls are forbidden."""
    if extra:
        calls = [part.calls[one.call] for one in extra]
        names = _some([_written(call.name, call.args) for call in calls])
        yield fault(f"unexpected tool call: {names}", turn=part.turn)


def _too_often(part: _Part, left_over: Sequence[LeftOver]) -> Iterator[Finding]:
    """Find expectations that more calls match than ``times`` allows."""
    for index in dict.fromkeys(one.expected for one in left_over):
        expected = part.tools.calls[index or 0]
        n_more = sum(one.expected == index for one in left_over)
        name = _written(expected.tool, expected.args)
        yield fault(
            f"too many calls: {name} (at most {expected.times_max}, {n_more} more)", turn=part.turn
        )


def _written(tool: str, args: Mapping[str, Any] | None) -> str:
    """Write a call as ``book {'flight_id': 'AA123'}``."""
    return f"{tool} {'(arguments are no JSON)' if args is None else show(dict(args), _ARGS_SHOWN)}"


def _some(texts: Sequence[str]) -> str:
    """Join the first few texts and count the rest."""
    rest = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _evidence(parts: Sequence[_Part]) -> dict[str, JSON]:
    """Report the assignment over all places together."""
    if not parts:
        return {}
    found = [part.found for part in parts]
    total = CallMatch(
        pairs=tuple(pair for one in found for pair in one.pairs),
        misses=(),
        left_over=(),
        n_required=sum(one.n_required for one in found),
        n_filled=sum(one.n_filled for one in found),
        n_calls=sum(one.n_calls for one in found),
        refs={},
    )
    return {
        "precision": total.precision,
        "recall": total.recall,
        "f1": total.f1,
        "misses": [_miss_evidence(part, miss) for part in parts for miss in part.found.misses],
        "left_over": [part.positions[one.call] for part in parts for one in part.found.left_over],
    }


def _miss_evidence(part: _Part, miss: Miss) -> dict[str, JSON]:
    """Report one miss; ``nearest_call`` is a position among the trial's calls."""
    expected = part.tools.calls[miss.expected]
    return {
        "tool": expected.tool,
        "args": dict(expected.args),
        "turn": part.turn,
        "n_found": miss.n_found,
        "n_wanted": miss.n_wanted,
        "tool_called": miss.tool_called,
        "nearest_call": None if miss.nearest is None else part.positions[miss.nearest],
        "differences": [one._asdict() for one in miss.differences],
    }


add_grader(Grader(NAME, grade_truth, version="1", applies=_applies, reads_partial=True))
