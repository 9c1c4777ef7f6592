"""Expectations of tools that may notice a mutant: calls, their order, bans, limits.

Each closer proposes; what it proposes is tried on the original and on the mutant
before anybody sees it (:mod:`evalkit.mutation.judging`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evalkit.drafting.proposing import written_tools
from evalkit.drafting.recorded import written_tool
from evalkit.ledger import JSON, encode
from evalkit.matching.compiling import write_pattern
from evalkit.mutation.breaking_calls import allowed, other_tools
from evalkit.mutation.expected import fits
from evalkit.mutation.pasting import suggestion
from evalkit.mutation.records import Closer, Mutant, Subject, Suggestion
from evalkit.suite import CallExpect, Times, ToolsExpect
from evalkit.suite.expectations import CallOrder, ExtraCalls
from evalkit.trace import ToolCall


def ask_for_call(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Expect the call that was broken, where it is not expected or not closely."""
    call = _broken(subject, mutant)
    known = list(_tools(subject, mutant).calls)
    for index, wanted in enumerate(known):
        if fits(wanted, call):
            narrower = _narrowed(wanted, call, mutant.argument)
            calls = [*known[:index], narrower, *known[index + 1 :]]
            yield _suggested(subject, mutant, calls=calls)
    yield _suggested(subject, mutant, calls=[*known, _exactly(call)])


def _broken(subject: Subject, mutant: Mutant) -> ToolCall:
    assert mutant.call is not None
    return subject.trace.tool_calls[mutant.call]


def _tools(subject: Subject, mutant: Mutant) -> ToolsExpect:
    tools = subject.expect(subject.place(mutant.turn)).tools
    return tools or ToolsExpect.model_construct(calls=())


def _narrowed(wanted: CallExpect, call: ToolCall, argument: str) -> CallExpect:
    """Let an expectation say more of the call that meets it."""
    made = _written_args(call)
    more = {argument: made[argument]} if argument in made else made
    missing = {
        key: value for key, value in more.items() if key == argument or key not in wanted.args
    }
    update: dict[str, Any] = {"args": {**wanted.args, **missing}}
    if wanted.status == "any":
        update["status"] = _status(call)
    return wanted.model_copy(update=update)


def _written_args(call: ToolCall) -> dict[str, JSON]:
    written: dict[str, JSON] = write_pattern(dict(call.args or {}))
    return written


def _status(call: ToolCall) -> str | None:
    return None if call.status == "unknown" else call.status


def _exactly(call: ToolCall, *, times: int = 1) -> CallExpect:
    """Expect a call as it was made."""
    failed = {"status": _status(call)} if call.status in ("error", "denied", "timeout") else {}
    often = {"times": times} if times > 1 else {}
    return CallExpect(tool=call.name, args=_written_args(call), **failed, **often)  # type: ignore[arg-type]


def _suggested(
    subject: Subject,
    mutant: Mutant,
    *,
    calls: Sequence[CallExpect],
    order: CallOrder | None = None,
    extra_calls: ExtraCalls | None = None,
) -> Suggestion:
    known = _tools(subject, mutant)
    tools = ToolsExpect.model_construct(
        calls=tuple(calls),
        order=order or known.order,
        extra_calls=extra_calls or known.extra_calls,
    )
    return _suggestion(subject, subject.place(mutant.turn), tools)


def _suggestion(subject: Subject, place: int | None, tools: ToolsExpect) -> Suggestion:
    value = _shortened(written_tools(tools, keeps_turns=True), tools)
    return suggestion(subject, place, section="expect", key="tools", value=value)


def _shortened(value: JSON, tools: ToolsExpect) -> JSON:
    """Write ``times: 2`` for a range of one number, and leave out what goes without saying."""
    calls = value["calls"] if isinstance(value, dict) else value
    for written, call in zip(calls, tools.calls, strict=True):
        if call.times is not None and call.times.min == call.times.max:
            written["times"] = call.times.min
    if isinstance(value, dict) and value["extra_calls"] == "free" and calls:
        del value["extra_calls"]
    return value


def count_calls(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Expect the call as often as it was made."""
    call = _broken(subject, mutant)
    known = list(_tools(subject, mutant).calls)
    n = sum(_look(call) == _look(other) for other in _calls(subject, mutant))
    for index, wanted in enumerate(known):
        if fits(wanted, call):
            n_fitting = sum(fits(wanted, other) for other in _calls(subject, mutant))
            counted = wanted.model_copy(update={"times": Times(min=n_fitting, max=n_fitting)})
            yield _suggested(subject, mutant, calls=[*known[:index], counted, *known[index + 1 :]])
    exactly = _exactly(call).model_copy(update={"times": Times(min=n, max=n)})
    yield _suggested(subject, mutant, calls=[*known, exactly])


def _calls(subject: Subject, mutant: Mutant) -> list[ToolCall]:
    """Give the calls that expectations at the mutant's place look at."""
    place = subject.place(mutant.turn)
    is_whole = len(subject.trial.scenario.turns) == 1 or place is None
    return [call for call in subject.trace.tool_calls if is_whole or call.turn == place]


def _look(call: ToolCall) -> bytes:
    return encode([call.name, call.args, call.status])


def list_calls(order: CallOrder) -> Closer:
    """Make the closer that expects all calls as they were made, and no other.

    Those of the mutant's turn, else those of the whole trial.
    """

    def close(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
        place = subject.place(mutant.turn)
        yield _listed(subject, place, calls=_calls(subject, mutant), order=order)
        if place != subject.home:
            yield _listed(subject, subject.home, calls=subject.trace.tool_calls, order=order)

    return close


def _listed(
    subject: Subject, place: int | None, *, calls: Sequence[ToolCall], order: CallOrder
) -> Suggestion:
    with_turns = place is None and len(subject.trial.scenario.turns) > 1
    alike: dict[bytes, list[ToolCall]] = {}
    for number, call in enumerate(calls):
        # Where order matters, each call stands for itself.
        look = (
            encode([call.name, call.args, call.status, call.turn])
            if order == "any"
            else str(number).encode()
        )
        alike.setdefault(look, []).append(call)
    update: dict[str, Any] = {"extra_args": "forbid"} if order == "exact" else {}
    wanted = [
        _exactly(group[0], times=len(group)).model_copy(
            update=update | ({"turn": group[0].turn + 1} if with_turns else {})
        )
        for group in alike.values()
    ]
    tools = ToolsExpect.model_construct(calls=tuple(wanted), order=order, extra_calls="forbid")
    return _suggestion(subject, place, tools)


def forbid_extra_calls(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Allow no other calls than those expected."""
    yield _suggested(subject, mutant, calls=_tools(subject, mutant).calls, extra_calls="forbid")


def forbid_extra_arguments(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Allow no other arguments than those of the call that was made."""
    call = _broken(subject, mutant)
    known = list(_tools(subject, mutant).calls)
    for index, wanted in enumerate(known):
        if fits(wanted, call):
            args = {**_written_args(call), **wanted.args}
            narrow = wanted.model_copy(update={"args": args, "extra_args": "forbid"})
            yield _suggested(subject, mutant, calls=[*known[:index], narrow, *known[index + 1 :]])
    exactly = _exactly(call).model_copy(update={"extra_args": "forbid"})
    yield _suggested(subject, mutant, calls=[*known, exactly])


def keep_order(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Ask for the order of the calls that are expected already."""
    calls = _tools(subject, mutant).calls
    if len(calls) > 1:
        yield _suggested(subject, mutant, calls=calls, order="in_order")


def forbid_tool(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:
    """Forbid every tool that the turn has no use for, else the one that was called."""
    others = [
        name
        for name in other_tools(subject, mutant.turn)
        if name != mutant.argument and not allowed(subject, name, turn=mutant.turn)
    ]
    for names in ([mutant.argument, *others], [mutant.argument]):
        yield _forbidden(subject, subject.place(mutant.turn), names)


def _forbidden(subject: Subject, place: int | None, names: Sequence[str]) -> Suggestion:
    known = [call for call in subject.forbid(place).tools if call.tool not in names]
    value = [*(written_tool(call.tool, call.args) for call in known), *names]
    return suggestion(subject, place, section="forbid", key="tools", value=value)


def limit_path(name: str, count: Callable[[Subject], int]) -> Closer:
    """Make the closer that limits the route to what was needed."""

    def close(subject: Subject, mutant: Mutant) -> Iterator[Suggestion]:  # noqa: ARG001 - a closer's form
        path = subject.expect(subject.home).path
        known = path.model_dump(mode="json", exclude_defaults=True) if path else {}
        called = [call.name for call in subject.trace.tool_calls]
        # Where the route was not judged at all, it may have repeats that are to stay free.
        free = {"poll": list(dict.fromkeys([*known.get("poll", ()), *called]))}
        for more in ({}, free, free | {"max_ratio": max(len(called), 1)}):
            value = {**known, **more, name: count(subject)}
            yield suggestion(subject, subject.home, section="expect", key="path", value=value)

    return close


def n_tool_calls(subject: Subject) -> int:
    """Count the tool calls of a trial."""
    return len(subject.trace.tool_calls)


def n_model_calls(subject: Subject) -> int:
    """Count the model calls of a trial."""
    return len(subject.trace.model_calls)
