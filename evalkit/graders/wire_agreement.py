"""Wire agreement: whether what ran is what the model asked for.

A call is seen on the wire, where the model asks for it, and at the tool, if that
tells when it runs. Of such tools, asked and ran are matched one to one; a call that ran
agrees with one that was asked for, in the same turn or before, if it has its arguments
with equal values. More arguments than asked for are free: programs fill in defaults.

Tools tell when they run through ``ek.tool``, or by spans. A tool of which no span came
while others' came is judged as well: it did not run. Where spans may be missing, nobody
can tell what did not run, so the grade is incomplete.

Not expected to run is a call whose arguments are no JSON, or that was denied. It is
judged only where both sides were seen, so not where the model was never called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from evalkit.errors import GraderError
from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.matching import equal, show
from evalkit.matching.bipartite import Graph, cover_rows
from evalkit.trace import ToolCall, Trace

NAME = "wire_agreement"
_ARGS_SHOWN: Final = 400
"""Characters of a call's arguments in a reason."""
_MOST: Final = 10
"""Disagreements that a reason names."""


def grade_wire_agreement(
    trial: Trial,
    *,
    allow_unrun: Sequence[str] = (),
    allow_unasked: Sequence[str] = (),
    traced: bool = False,
) -> Grade:
    """Grade whether the tools that ran are those that the model asked for.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, only calls that ran without being asked
        for are judged, since others may have been about to run.
    allow_unrun
        Tools that need not run though the model asks for them.
    allow_unasked
        Tools that may run though the model did not ask for them.
    traced
        Whether every tool of the agent is traced, so that a trial without a single
        span of a tool is one in which no tool ran.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where one of the two sides was not seen.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> scenario = Scenario.model_validate({"id": "book", "input": "Book AA123."})
    >>> asked = ToolCall("book", {"flight_id": "AA123"})
    >>> trace = Trace(asked_calls=(asked,), watched_tools=("book",))
    >>> grade_wire_agreement(Trial(scenario, trace)).reason
    "asked for but never run: book {'flight_id': 'AA123'}"
    """
    trace = trial.trace
    is_traced = _flag(traced, "traced") or bool(trace.traced_tools)
    problem = _unseen(trace, is_traced=is_traced)
    if problem:
        return Grade.incomplete(NAME, problem)
    unrun, unasked = _names(allow_unrun, "allow_unrun"), _names(allow_unasked, "allow_unasked")
    sides = _sides(trace, is_traced=is_traced)
    found = [finding for side in sides for finding in side.findings(trial, unrun, unasked)]
    found += _gaps(trace, found)
    n_ran = sum(len(side.ran) for side in sides)
    n_untold = sum("args" in call.untold for side in sides for call in side.ran)
    untold = f", the arguments of {n_untold} untold by their spans" if n_untold else ""
    return grade_of(
        NAME,
        _shortened(found),
        trial=trial,
        passed=f"what ran is what was asked for: {n_ran} call(s){untold}",
        evidence={"n_asked": sum(len(side.asked) for side in sides), "n_ran": n_ran}
        | ({"n_untold": n_untold} if n_untold else {}),
    )


def _applies(trial: Trial) -> bool:
    trace = trial.trace
    return not _unseen(trace, is_traced=bool(trace.traced_tools)) or bool(
        trace.span_gaps and _unwatched(trace)
    )


def _sides(trace: Trace, *, is_traced: bool) -> list[_Side]:
    """Give both sides of every tool that tells when it runs, and of those that would."""
    known = [_Side.of(trace, tool) for tool in trace.watched_tools]
    if not is_traced:
        return known
    silent = dict.fromkeys(call.name for call in _unwatched(trace))
    return known + [_Side.silent(trace, tool) for tool in silent]


def _unwatched(trace: Trace) -> list[ToolCall]:
    """Give the calls asked for whose tools have told nothing."""
    return [call for call in _asked(trace) if call.name not in trace.watched_tools]


def _asked(trace: Trace) -> Sequence[ToolCall]:
    """Give what the model asked for; where no tool tells of itself, all that is known is that."""
    return trace.asked_calls if trace.watched_tools else (trace.asked_calls or trace.tool_calls)


def _gaps(trace: Trace, found: Sequence[Finding]) -> list[Finding]:
    """Say that spans may be missing, where tools are seen by them and nothing else is wrong."""
    if not trace.span_gaps or any(not finding.is_gap for finding in found):
        return []
    if not trace.traced_tools and not _unwatched(trace):
        return []
    return [gap(f"spans of tools may be missing: {'; '.join(trace.span_gaps)}")]


def _unseen(trace: Trace, *, is_traced: bool) -> str:
    """Say which of the two sides nobody saw."""
    if trace.span_gaps and not trace.watched_tools:
        return f"spans of tools may be missing: {'; '.join(trace.span_gaps)}"
    if not trace.watched_tools and not is_traced:
        return "no tool tells when it runs: wrap them with ek.tool, or trace them"
    if _asked(trace):
        return ""
    if not trace.models_observed:
        return "nobody saw what the agent's model asked for"
    if not trace.model_calls:
        return "the model was never called, so it asked for nothing"
    # A call of which only the usage is known may have asked for tools.
    if any(call.status == "ok" and call.reply is None for call in trace.model_calls):
        return "nobody saw what the model answered"
    return ""


def _names(value: object, key: str) -> frozenset[str]:
    """Read a parameter of a suite: one name, or a list of names."""
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return frozenset(names)
    raise GraderError(f"{NAME}: `{key}` must be a list of names of tools, not {value!r}")


def _flag(value: object, key: str) -> bool:
    """Read a parameter of a suite: yes or no."""
    if isinstance(value, bool):
        return value
    raise GraderError(f"{NAME}: `{key}` must be true or false, not {value!r}")


@dataclass(frozen=True, slots=True)
class _Side:
    """The calls of one tool, as asked for and as run."""

    tool: str
    asked: tuple[ToolCall, ...]
    ran: tuple[ToolCall, ...]
    how: Literal["told", "traced", "silent"] = "told"
    """Whether the tool tells of itself, by spans, or would by spans but did not."""

    @classmethod
    def of(cls, trace: Trace, tool: str) -> _Side:
        ran = tuple(call for call in trace.tool_calls if call.name == tool)
        how: Literal["told", "traced"] = "traced" if tool in trace.traced_tools else "told"
        return cls(tool, _asked_for(trace, tool), ran, how)

    @classmethod
    def silent(cls, trace: Trace, tool: str) -> _Side:
        return cls(tool, _asked_for(trace, tool), (), "silent")

    def left_over(self) -> tuple[list[ToolCall], list[ToolCall]]:
        """Match what was asked with what ran; give what is left of either."""
        graph = Graph([self._fitting(call) for call in self.asked], n_columns=len(self.ran))
        # What was denied may have run nevertheless, but only what nobody else asked for.
        order = sorted(range(len(self.asked)), key=lambda row: _is_denied(self.asked[row]))
        pairs = cover_rows(graph, order)
        taken = set(pairs.values())
        unrun = [call for row, call in enumerate(self.asked) if row not in pairs]
        unasked = [call for column, call in enumerate(self.ran) if column not in taken]
        return [call for call in unrun if not _is_denied(call)], unasked

    def _fitting(self, asked: ToolCall) -> int:
        """Give the calls that ran and agree with one that was asked for, as bits."""
        return sum(1 << column for column, ran in enumerate(self.ran) if _agree(asked, ran))

    def findings(
        self, trial: Trial, allow_unrun: frozenset[str], allow_unasked: frozenset[str]
    ) -> Iterator[Finding]:
        """Find where the two disagree."""
        unrun, unasked = self.left_over()
        may_be_unrun, may_be_unasked = self.tool in allow_unrun, self.tool in allow_unasked
        if may_be_unrun and may_be_unasked:
            return
        if not trial.whole and may_be_unasked:
            return
        n_pairs = min(len(unrun), len(unasked))
        for asked, ran in zip(unrun, unasked, strict=False):
            yield fault(_difference(asked, ran), turn=ran.turn)
        for call in () if may_be_unrun or not trial.whole else unrun[n_pairs:]:
            yield self._unrun(call, trial.trace)
        for call in () if may_be_unasked else unasked[n_pairs:]:
            yield _unasked(call, trial.trace)

    def _unrun(self, call: ToolCall, trace: Trace) -> Finding:
        text = f"asked for but never run: {_written(call)}"
        if self.how != "told" and trace.span_gaps:
            return gap(f"{text}, or its span is missing: {trace.span_gaps[0]}", turn=call.turn)
        if self.how == "silent":
            text += f" (no span of it came; if {self.tool} is not traced, allow_unrun names it)"
        return fault(text, turn=call.turn)


def _asked_for(trace: Trace, tool: str) -> tuple[ToolCall, ...]:
    calls = (call for call in _asked(trace) if call.name == tool)
    return tuple(call for call in calls if call.args is not None)


def _unasked(call: ToolCall, trace: Trace) -> Finding:
    if not trace.models_observed and all(call.turn != asked.turn for asked in trace.asked_calls):
        text = f"{_written(call)} ran, and nobody saw what the model asked for in its turn"
        return gap(text, turn=call.turn)
    return fault(f"run without being asked for: {_written(call)}", turn=call.turn)


def _is_denied(call: ToolCall) -> bool:
    return call.status == "denied"


def _agree(asked: ToolCall, ran: ToolCall) -> bool:
    return asked.turn <= ran.turn and not any(_differences(asked, ran))


def _differences(asked: ToolCall, ran: ToolCall) -> Iterator[str]:
    """Say which arguments did not arrive at the tool as they were asked for."""
    arrived: Mapping[str, Any] = ran.args or {}
    for name, value in (asked.args or {}).items():
        if name not in arrived:
            yield f"{name} (asked as {show(value)}) is missing"
        elif not equal(value, arrived[name]):
            yield f"{name} was asked as {show(value)} and ran as {show(arrived[name])}"


def _difference(asked: ToolCall, ran: ToolCall) -> str:
    differences = list(_differences(asked, ran))
    if differences:
        return f"{ran.name} ran with other arguments than asked for: {'; '.join(differences)}"
    return f"run before it was asked for: {_written(ran)}"


def _written(call: ToolCall) -> str:
    return f"{call.name} {show(dict(call.args or {}), _ARGS_SHOWN)}"


def _shortened(found: Sequence[Finding]) -> Iterator[Finding]:
    """Give the first findings, faults before gaps, and count the rest."""
    ordered = sorted(found, key=lambda finding: finding.is_gap)
    rest = ordered[_MOST:]
    yield from ordered[:_MOST]
    if rest:
        say = gap if rest[0].is_gap else fault
        yield say(f"and {len(rest)} more")


add_grader(Grader(NAME, grade_wire_agreement, version="2", applies=_applies, reads_partial=True))
