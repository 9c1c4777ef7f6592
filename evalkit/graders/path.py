"""Path: whether the route was sane.

It fails a trial that repeats itself, that makes far more tool calls than the
suite expects, or that exceeds a limit. Attempts count, also failed ones.

- *Repeats* (:mod:`evalkit.graders.repeats`) count over the whole trial. One that
  the suite itself expects (``times``, or listed twice) is none, nor is one of a
  tool that ``poll`` names.
- *Ratio*: more than ``max_ratio`` times the expected calls. An expected call
  counts with the most that its ``times`` allows; without expected calls, or
  with one that may be made any number of times, no ratio is applied.
- *Cycles* A-B-A-B of equal calls are duplicates, and named as a cycle beside. The
  same tools in turn with *changing* arguments are also how an agent honestly
  works through a list, so that alone never fails; it is evidence, and named where
  the route is too long anyway.
- *Limits* fail as soon as what is known exceeds them, and are incomplete where
  what is known does not, but something is unknown.

Loops in the agent's *replies* are not looked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.limits import exceeded_limits
from evalkit.graders.places import expected
from evalkit.graders.repeats import Cycle, Repeats, find_cycle, find_repeats, same_calls
from evalkit.ledger import JSON, encode
from evalkit.matching import ExpectedCall, show
from evalkit.matching.calls import Expectation
from evalkit.suite import CallExpect, PathExpect, Scenario
from evalkit.trace import ToolCall

_N_LISTED = 20
"""Duplicates that the evidence lists one by one."""


def grade_path(trial: Trial) -> Grade:
    """Grade the route of one trial.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter only what is a fault already is told.

    Returns
    -------
    Grade
        Value 1.0 or 0.0, or incomplete where the route was not observed.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> scenario = Scenario.model_validate({"id": "weather", "input": "Weather in Denver?"})
    >>> call = ("get_weather", {"city": "Denver"})
    >>> grade_path(Trial(scenario, Trace.from_calls([call, call]))).reason
    '1 duplicate tool call(s) — looping'
    """
    routes = list(_routes(trial))
    if not routes:
        return Grade.incomplete("path", "the scenario says that its route is not judged")
    n_calls = len(trial.trace.tool_calls)
    return grade_of(
        "path",
        chain.from_iterable(_judged(route, trial) for route in routes),
        trial=trial,
        passed=f"efficient: {_counted(n_calls, 'call')}, no duplicates",
        evidence={
            "n_calls": n_calls,
            "n_expected": routes[0].n_expected,
            **_name_cycle(routes[0]),
        },
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _applies(trial: Trial) -> bool:
    """Say whether a trial's route is judged though nobody named this grader."""
    asked = [turn for turn, _ in _limits(trial.scenario)]
    if _is_off(trial.scenario):
        return bool(asked)
    wants_tools = any(True for _ in expected(trial.scenario, lambda expect: expect.tools))
    return trial.trace.tools_observed or bool(asked) or wants_tools


def _is_off(scenario: Scenario) -> bool:
    return scenario.expect is not None and scenario.expect.path is False


def _limits(scenario: Scenario) -> Iterator[tuple[int | None, PathExpect]]:
    return expected(scenario, lambda expect: expect.path or None)


@dataclass(frozen=True, slots=True)
class _Route:
    """The calls of a trial or of one turn, and what is expected of them."""

    turn: int | None
    limits: PathExpect
    calls: tuple[ToolCall, ...]
    expected: tuple[CallExpect, ...]
    polled: frozenset[str] = frozenset()
    judges_repeats: bool = True
    """Those of a single turn are judged with the whole trial, if that is judged."""

    @property
    def n_expected(self) -> int | None:
        """How many calls are expected at most; ``None`` for none, or any number."""
        counts = [_most(call) for call in self.expected]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None


def _most(call: CallExpect) -> int | None:
    return 1 if call.times is None else call.times.max


def _routes(trial: Trial) -> Iterator[_Route]:
    """Give the route of the whole trial, if it is judged, then those of turns with limits."""
    limits = dict(_limits(trial.scenario))
    polled = frozenset(name for own in limits.values() for name in own.poll)
    wanted = {
        turn: tools.calls for turn, tools in expected(trial.scenario, lambda expect: expect.tools)
    }
    is_off = _is_off(trial.scenario)
    if not is_off:
        unjudged = set(_unjudged(trial.scenario))
        calls = tuple(call for call in trial.trace.tool_calls if call.turn not in unjudged)
        all_wanted = tuple(_wanted_in_all(wanted, unjudged))
        yield _Route(None, limits.get(None, PathExpect()), calls, all_wanted, polled)
    for turn, own in limits.items():
        if turn is not None:
            calls = tuple(call for call in trial.trace.tool_calls if call.turn == turn)
            yield _Route(turn, own, calls, wanted.get(turn, ()), polled, judges_repeats=is_off)


def _unjudged(scenario: Scenario) -> Iterator[int | None]:
    """Give the turns that say ``path: false``."""
    for turn, path in expected(scenario, lambda expect: expect.path):
        if path is False:
            yield turn


def _wanted_in_all(
    wanted: Mapping[int | None, tuple[CallExpect, ...]], unjudged: Set[int | None]
) -> Iterator[CallExpect]:
    """Give the scenario's calls and those of its turns; what both list counts once."""
    own = wanted.get(None, ())
    in_scenario = Counter(map(_written, own))
    for turn, calls in wanted.items():
        for call in () if turn is None or turn in unjudged else calls:
            if in_scenario[_written(call)]:
                in_scenario[_written(call)] -= 1
            else:
                yield call
    yield from own


def _written(call: CallExpect) -> bytes:
    return encode([call.tool, dict(call.args)])


def _judged(route: _Route, trial: Trial) -> Iterator[Finding]:
    if route.judges_repeats:
        yield from _repeat_faults(route)
    yield from _ratio_faults(route)
    if not trial.trace.tools_observed:
        yield gap(
            "nobody saw the agent's tool calls, so its route cannot be judged",
            turn=route.turn,
            reason_code="tools_not_observed",
        )
    yield from exceeded_limits(trial, route.limits, turn=route.turn)


def _repeat_faults(route: _Route) -> Iterator[Finding]:
    repeats = find_repeats(
        route.calls,
        may_repeat=lambda call: call.name in route.polled,
        n_wanted=lambda call: _n_wanted(route.expected, call),
    )
    if repeats.duplicates:
        yield fault(
            f"{len(repeats.duplicates)} duplicate tool call(s) — looping",
            turn=route.turn,
            calls=[_shown(route.calls, index) for index in repeats.duplicates[:_N_LISTED]],
        )
        yield from _cycle_fault(route, repeats)
    for attempts in repeats.stubborn:
        call = _call_text(route.calls[attempts[0]])
        yield fault(
            f"{call} failed {len(attempts)} times without any change — looping", turn=route.turn
        )


def _shown(calls: Sequence[ToolCall], index: int) -> JSON:
    return {"position": index + 1, "call": _call_text(calls[index])}


def _call_text(call: ToolCall) -> str:
    """Write a call shortly, for a sentence."""
    return f"{call.name} {show(call.raw_args if call.args is None else dict(call.args))}"


def _n_wanted(wanted: Sequence[CallExpect], call: ToolCall) -> int:
    """Count how many calls equal to this one the suite expects."""
    return sum(_n_times(one) for one in wanted if _fits(one, call))


def _n_times(call: CallExpect) -> int:
    """Count an expected call; "any number" is no leave to repeat oneself for ever."""
    return call.times_min if call.times_max is None else call.times_max


def _fits(wanted: CallExpect, call: ToolCall) -> bool:
    free = wanted.extra_args == "free"
    asked = ExpectedCall(wanted.tool, wanted.args, status="any", extra_args_allowed=free)
    return Expectation.of(asked).fits(call)


def _cycle_fault(route: _Route, repeats: Repeats) -> Iterator[Finding]:
    kinds = {
        index: number for number, group in enumerate(same_calls(route.calls)) for index in group
    }
    cycle = find_cycle([kinds[index] for index in range(len(route.calls))], min_rounds=2)
    if cycle and not set(repeats.duplicates).isdisjoint(cycle.positions):
        yield fault(f"cycle: {_around(route, cycle)}", turn=route.turn)


def _around(route: _Route, cycle: Cycle) -> str:
    names = (call.name for call in route.calls[cycle.start : cycle.start + cycle.period])
    return f"{', '.join(names)} — {cycle.rounds} times round"


def _name_cycle(route: _Route) -> dict[str, JSON]:
    """Tell where the same tools come round three times or more, whatever their arguments."""
    cycle = find_cycle([call.name for call in route.calls], min_rounds=3)
    return {"tools_in_turn": _around(route, cycle)} if cycle else {}


def _ratio_faults(route: _Route) -> Iterator[Finding]:
    n_calls, n_expected = _n_counted(route), route.n_expected
    if n_expected and n_calls > route.limits.max_ratio * n_expected:
        around = _name_cycle(route).get("tools_in_turn")
        yield fault(
            f"inefficient: {_counted(n_calls, 'call')} for a {n_expected}-call task"
            + (f" ({around})" if around else ""),
            turn=route.turn,
        )


def _n_counted(route: _Route) -> int:
    """Count the calls, the free repeats of polled tools left out."""
    return sum(
        1 if route.calls[group[0]].name in route.polled else len(group)
        for group in same_calls(route.calls)
    )


add_grader(Grader("path", grade_path, version="1", applies=_applies, reads_partial=True))
