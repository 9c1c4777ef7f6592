"""Limits on a route: model calls, tool calls, tokens, dollars, seconds.

Each is compared with what is *known*. More than allowed is a fault even where
something else is unknown; not more, but something unknown, is a gap. Tokens are
input plus output as the provider counts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from evalkit.graders.base import Trial
from evalkit.graders.findings import Finding, fault, gap
from evalkit.suite import PathExpect
from evalkit.trace import ModelCall, Span, Usage


class Amount(NamedTuple):
    """How much of something a route used."""

    known: float
    unknown: str = ""
    """What is not known of it; empty if all is."""


def exceeded_limits(trial: Trial, limits: PathExpect, *, turn: int | None) -> Iterator[Finding]:
    """Find limits that are exceeded or cannot be checked.

    Parameters
    ----------
    trial
        The trial.
    limits
        Those that are ``None`` are not looked at.
    turn
        Of which they speak; ``None`` for the whole trial.
    """
    tool_calls = [call for call in trial.trace.tool_calls if turn in (None, call.turn)]
    model_calls = [call for call in trial.trace.model_calls if turn in (None, call.turn)]
    used: list[tuple[str, str, float | None, Callable[[], Amount]]] = [
        ("max_model_calls", "{:g} model call(s)", limits.max_model_calls,
         lambda: Amount(len(model_calls), _unseen_models(trial))),
        ("max_tool_calls", "{:g} tool call(s)", limits.max_tool_calls,
         lambda: Amount(len(tool_calls), _unseen_tools(trial))),
        ("max_tokens", "{:,.0f} tokens", limits.max_tokens,
         lambda: _total(model_calls, _tokens, _unseen_models(trial))),
        ("max_usd", "${:g}", limits.max_usd,
         lambda: _total(model_calls, _usd, _unseen_models(trial))),
        ("max_seconds", "{:.4g} s", limits.max_seconds, lambda: _seconds(trial, turn)),
    ]  # fmt: skip
    for name, unit, most, measure in used:
        if most is not None:
            yield from _compared(name, measure(), most=most, unit=unit, turn=turn)


def _compared(
    name: str, amount: Amount, *, most: float, unit: str, turn: int | None
) -> Iterator[Finding]:
    # A sum of prices is a little off in its last digits, which is no excess.
    is_more = amount.known > most and not math.isclose(amount.known, most, rel_tol=1e-9)
    if is_more:
        text = f"{unit.format(amount.known)}, more than {name} ({most:,}) allows"
        yield fault(text, turn=turn, limit=name, used=amount.known, allowed=most)
    elif amount.unknown:
        yield gap(f"{name} cannot be checked: {amount.unknown}", turn=turn, limit=name)


def _unseen_models(trial: Trial) -> str:
    return "" if trial.trace.models_observed else "nobody saw the agent's model calls"


def _unseen_tools(trial: Trial) -> str:
    return "" if trial.trace.tools_observed else "nobody saw the agent's tool calls"


def _total(
    calls: Sequence[ModelCall], measure: Callable[[Usage], Iterable[float | None]], unseen: str
) -> Amount:
    """Add up what model calls used, and say for how many it is unknown."""
    parts = [list(measure(call.usage or Usage())) for call in calls]
    known = math.fsum(part for own in parts for part in own if _is_known(part))
    n_unknown = sum(not all(_is_known(part) for part in own) for own in parts)
    unknown = f"the usage of {n_unknown} of {len(calls)} model call(s) is unknown"
    return Amount(known, unseen or (unknown if n_unknown else ""))


def _is_known(part: float | None) -> TypeGuard[float]:
    return part is not None and math.isfinite(part)


def _tokens(usage: Usage) -> Iterable[float | None]:
    return usage.input_tokens, usage.output_tokens


def _usd(usage: Usage) -> Iterable[float | None]:
    return (usage.cost_usd,)


def _seconds(trial: Trial, turn: int | None) -> Amount:
    """Give how long a trial took: as measured, else from its first span to its last."""
    of_trial = turn is None or len(trial.scenario.turns) == 1
    if not of_trial:
        return Amount(0.0, "how long a single turn took is not recorded")
    if trial.duration_s is not None and math.isfinite(trial.duration_s):
        return Amount(trial.duration_s)
    return _extent(trial.trace.spans)


def _extent(spans: Sequence[Span]) -> Amount:
    starts = [span.start_s for span in spans if span.start_s is not None]
    ends = [span.end_s for span in spans if span.end_s is not None]
    if not starts or not ends:
        return Amount(0.0, "how long the trial took was not measured")
    is_whole = len(starts) == len(ends) == len(spans)
    unknown = "" if is_whole else "some spans have no start or end"
    return Amount(max(ends) - min(starts), unknown)
