"""Component: one part of the agent, to localise a failure: a tool, a retriever.

A tool's *latency* is that of each of its calls, its *error rate* the share of its
calls that failed (``error``, ``denied``, ``timeout``). Its calls are the trace's
tool calls of that name, with the times of their spans where they have none of
their own; where there are none, spans of kind ``tool``.

A retriever's *recall@k* is the share of the relevant documents among the first k
of its span. A retriever that was asked several times found what any of its spans
lists. A span without a single document is not evidence of an empty answer,
because exporters leave documents out: that is incomplete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.places import expected
from evalkit.ledger import JSON
from evalkit.matching import FAILED
from evalkit.suite import ComponentExpect, RetrieverExpect, ToolLimits
from evalkit.trace import Span, Trace

_TOOL_NAME_KEYS = ("gen_ai.tool.name", "tool.name")


def grade_component(trial: Trial) -> Grade:
    """Grade the parts of the agent that the suite sets limits for.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where a part was not used or not measured.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import ToolCall, Trace
    >>> limits = {"tools": {"search": {"max_latency_s": 1.0}}}
    >>> scenario = Scenario.model_validate(
    ...     {"id": "find", "input": "Find it.", "expect": {"component": limits}}
    ... )
    >>> trace = Trace.from_calls([ToolCall("search", duration_s=2.5)])
    >>> grade_component(Trial(scenario, trace)).reason
    'search took too long: 2.5 s, at most 1 s'
    """
    asked = list(_asked(trial))
    if not asked:
        return Grade.incomplete("component", "the scenario sets no limits for single parts")
    findings = chain.from_iterable(_judged(expect, trial, turn) for turn, expect in asked)
    figures = {
        name: _figures(_uses(trial.trace, name, None))
        for _, expect in asked
        for name in expect.tools or {}
    }
    return grade_of(
        "component",
        findings,
        trial=trial,
        passed="every part is within its limits",
        evidence={"tools": figures} if figures else {},
    )


def _asked(trial: Trial) -> Iterator[tuple[int | None, ComponentExpect]]:
    return expected(trial.scenario, lambda expect: expect.component)


def _applies(trial: Trial) -> bool:
    return any(True for _ in _asked(trial))


def _judged(expect: ComponentExpect, trial: Trial, turn: int | None) -> Iterator[Finding]:
    for name, limits in (expect.tools or {}).items():
        uses = _uses(trial.trace, name, turn)
        if uses and _may_be_more(name, trial.trace):
            text = f"not every call of {name} may be known: {'; '.join(trial.trace.span_gaps)}"
            yield gap(text, turn=turn)
        if uses:
            yield from _too_slow(_Tool(name, limits, uses, turn))
            yield from _too_faulty(_Tool(name, limits, uses, turn))
        else:
            yield _unused(name, trial.trace, turn)
    if expect.retriever is not None:
        yield from _not_retrieved(expect.retriever, trial.trace, turn)


class Use(NamedTuple):
    """One call of a tool: how long it took, how it ended."""

    duration_s: float | None
    status: str

    @property
    def latency_s(self) -> float | None:
        """Seconds; ``None`` where they are unknown or no time at all (clocks that disagree)."""
        if self.duration_s is None or not math.isfinite(self.duration_s) or self.duration_s < 0:
            return None
        return self.duration_s


class _Tool(NamedTuple):
    """A tool with limits, and its calls."""

    name: str
    limits: ToolLimits
    uses: Sequence[Use]
    turn: int | None

    @property
    def latencies_s(self) -> list[float]:
        """Seconds of the calls that were timed."""
        return [use.latency_s for use in self.uses if use.latency_s is not None]


def _uses(trace: Trace, tool: str, turn: int | None) -> list[Use]:
    spans = {span.id: span for span in trace.spans if span.id}
    calls = [
        Use(_first_known(call.duration_s, spans.get(call.span_id)), call.status)
        for call in trace.tool_calls
        if call.name == tool and turn in (None, call.turn)
    ]
    return calls or [
        Use(span.duration_s, span.status)
        for span in _spans_of(trace, turn)
        if span.kind == "tool" and tool in _names(span)
    ]


def _first_known(duration_s: float | None, span: Span | None) -> float | None:
    return span.duration_s if duration_s is None and span is not None else duration_s


def _may_be_more(tool: str, trace: Trace) -> bool:
    """Say whether calls of a tool may be missing, because only spans tell of them."""
    tells_itself = tool in trace.watched_tools and tool not in trace.traced_tools
    return bool(trace.span_gaps) and not tells_itself


def _spans_of(trace: Trace, turn: int | None) -> Sequence[Span]:
    """Give the spans of a turn; of several turns, not every span tells which is its own."""
    if turn is None or len(trace.turns) <= 1:
        return trace.spans
    return [span for span in trace.spans if span.turn == turn]


def _names(span: Span) -> set[JSON]:
    named = (span.attributes.get(key) for key in _TOOL_NAME_KEYS)
    return {span.name, *(name for name in named if isinstance(name, str))}


def _unused(name: str, trace: Trace, turn: int | None) -> Finding:
    if not trace.tools_observed:
        text = f"nobody saw the agent's tool calls, so nothing is known of {name}"
        return gap(text, turn=turn, reason_code="tools_not_observed")
    return gap(f"{name} was not called, so there is nothing to measure", turn=turn)


def _too_slow(tool: _Tool) -> Iterator[Finding]:
    most = tool.limits.max_latency_s
    if most is None:
        return
    known, n_calls = tool.latencies_s, len(tool.uses)
    n_slow = sum(latency_s > most for latency_s in known)
    n_unknown = n_calls - len(known)
    if n_slow:
        some = f" in {n_slow} of {n_calls} calls" if n_calls > 1 else ""
        text = f"{tool.name} took too long{some}: {max(known):.3g} s, at most {most:g} s"
        yield fault(text, turn=tool.turn, tool=tool.name)
    elif n_unknown:
        text = f"how long {n_unknown} of {n_calls} call(s) of {tool.name} took is unknown"
        yield gap(text, turn=tool.turn)


def _too_faulty(tool: _Tool) -> Iterator[Finding]:
    """Compare the error rate, calls of unknown status counted both ways."""
    most, n_calls = tool.limits.max_error_rate, len(tool.uses)
    if most is None:
        return
    n_failed = sum(use.status in FAILED for use in tool.uses)
    n_unknown = sum(use.status == "unknown" for use in tool.uses)
    if n_failed / n_calls > most:
        text = f"{n_failed} of {n_calls} call(s) of {tool.name} failed, at most {most:.0%} may"
        yield fault(text, turn=tool.turn, tool=tool.name)
    elif (n_failed + n_unknown) / n_calls > most:
        yield gap(f"whether {n_unknown} call(s) of {tool.name} failed is unknown", turn=tool.turn)


def _figures(uses: Sequence[Use]) -> Mapping[str, JSON]:
    """Describe a tool's calls for the evidence."""
    known = sorted(use.latency_s for use in uses if use.latency_s is not None)
    return {
        "n_calls": len(uses),
        "n_failed": sum(use.status in FAILED for use in uses),
        "n_timed": len(known),
        "latency_p50_s": _percentile(known, 0.5),
        "latency_p95_s": _percentile(known, 0.95),
        "latency_max_s": known[-1] if known else None,
    }


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    """Give the smallest value that at least that share of the values does not exceed."""
    if not ordered:
        return None
    return ordered[math.ceil(share * len(ordered)) - 1]


def _not_retrieved(expect: RetrieverExpect, trace: Trace, turn: int | None) -> Iterator[Finding]:
    spans = [
        span
        for span in _spans_of(trace, turn)
        if span.kind == "retriever" and expect.name in (None, span.name)
    ]
    unclear = _unclear(expect, spans)
    if unclear:
        yield gap(unclear, turn=turn)
        return
    found = {document.id for span in spans for document in span.documents[: expect.k]}
    missing = [wanted for wanted in dict.fromkeys(expect.relevant) if wanted not in found]
    n_relevant = len(set(expect.relevant))
    recall = (n_relevant - len(missing)) / n_relevant
    if recall < expect.min_recall and trace.span_gaps:
        yield gap(f"spans may be missing: {'; '.join(trace.span_gaps)}", turn=turn)
    elif recall < expect.min_recall:
        at_k = "" if expect.k is None else f"@{expect.k}"
        yield fault(
            f"recall{at_k} is {n_relevant - len(missing)} of {n_relevant}, at least "
            f"{expect.min_recall:.0%} is expected; missing: {', '.join(missing)}",
            turn=turn,
            recall=recall,
            missing=missing,
        )


def _unclear(expect: RetrieverExpect, spans: Sequence[Span]) -> str:
    """Say why recall cannot be told, or nothing."""
    names = sorted({span.name for span in spans})
    if not spans:
        which = f" named {expect.name!r}" if expect.name else ""
        return f"the trace has no span of a retriever{which}"
    if len(names) > 1:
        return f"there are several retrievers ({', '.join(names)}): write which, with `name`"
    if not any(span.documents for span in spans):
        return "the retriever's span lists no documents, so nobody can tell what it found"
    return ""


add_grader(Grader("component", grade_component, version="2", applies=_applies))
