"""What a drafted scenario expects: what its suite says, else the calls that were made.

Nothing is ever expected of a reply that a suite does not expect of it: what an
agent should have said stands in no recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evalkit.drafting.recorded import Happens, Note, Recorded, written_tool
from evalkit.ledger import JSON, encode
from evalkit.matching.compiling import write_pattern
from evalkit.suite import (
    AdvanceTurn,
    CallExpect,
    Expect,
    Forbid,
    RestartTurn,
    Scenario,
    ToolsExpect,
    Turn,
    UserTurn,
)
from evalkit.trace import ToolCall

_LONG_KEYS: Final = frozenset(CallExpect.written_keys())
_NEED_FIXTURES: Final = ("database", "files", "http")
"""Expectations that mean nothing without the fixtures of their scenario."""

_CIRCUMSTANCES: Final = ("clock", "env", "deadline")
"""Keys of a suite's scenario that make the agent meet the same situation, and need no file."""

_NOT_COPIED: Final = (
    "fixtures", "network", "canaries", "deliver", "reply_from",
    "graders", "quality",
)  # fmt: skip


@dataclass(slots=True)
class Proposal:
    """What is expected and forbidden, of the scenario and of its turns, as written in a suite."""

    expect: dict[str, JSON] = field(default_factory=dict)
    forbid: dict[str, JSON] = field(default_factory=dict)
    by_turn: dict[int, dict[str, JSON]] = field(default_factory=dict)
    """By position among the kept turns: ``{"expect": ..., "forbid": ...}``."""
    notes: list[Note] = field(default_factory=list)


def propose(recorded: Recorded, gold: Scenario | None) -> Proposal:
    """Propose what a scenario expects.

    Parameters
    ----------
    recorded
        The trial, with the turns that are kept.
    gold
        The scenario that says what should have happened, if there is one.
    """
    proposal = Proposal()
    if gold is not None:
        _take_gold(proposal, gold, recorded)
    says_tools = "tools" in proposal.expect or any(
        "tools" in part.get("expect", {}) for part in proposal.by_turn.values()
    )
    trace = recorded.trace
    if not says_tools and (trace.tools_observed or trace.tool_calls):
        _take_calls(proposal, recorded, gold)
    if not (proposal.expect or proposal.forbid or proposal.by_turn):
        proposal.expect["replies"] = {"min": 1}
        text = "nobody saw the tool calls and no suite says what should happen: say what must"
        proposal.notes.append(Note("expect", text))
    if gold is None or not (gold.expect or gold.forbid):
        text = "nothing is expected of the reply: say what it must hold, or must not"
        proposal.notes.append(Note("expect", text))
    return proposal


def _take_gold(proposal: Proposal, gold: Scenario, recorded: Recorded) -> None:
    """Copy what a suite's scenario expects of the trial, and name what cannot be copied."""
    same = [_happens(turn) for turn in gold.turns] == [turn.happens for turn in recorded.turns]
    proposal.expect.update(_written_expect(gold.expect, keeps_turns=same))
    proposal.forbid.update(_written_forbid(gold.forbid))
    by_turn = {index: _written_turn(turn) for index, turn in enumerate(gold.turns)}
    by_turn = {index: part for index, part in by_turn.items() if part}
    if same:
        proposal.by_turn.update(by_turn)
    lost = [
        *_lost(gold.expect, _NEED_FIXTURES, "expect"),
        *_lost(gold.forbid, ("http", "files"), "forbid"),
        *_lost(gold, _NOT_COPIED, ""),
        *(["what it expects of single turns"] if by_turn and not same else []),
    ]
    if lost:
        text = f"not copied from the suite's scenario {gold.id}: {', '.join(lost)}"
        proposal.notes.append(Note("expect", text))


def _happens(turn: Turn) -> Happens | None:
    """Say what a turn of a suite is, as a recorded one says it; ``None`` for other kinds."""
    match turn:
        case UserTurn():
            return turn.user
        case AdvanceTurn():
            return turn.advance_s
        case RestartTurn():
            return "restart", turn.restart
    return None


def _written_turn(turn: Turn) -> dict[str, JSON]:
    parts = {
        "expect": _written_expect(turn.expect, keeps_turns=True),
        "forbid": _written_forbid(turn.forbid),
    }
    return {key: part for key, part in parts.items() if part}


def _lost(holder: Any, keys: Sequence[str], prefix: str) -> Iterator[str]:
    """Name what a part of the suite says under some keys."""
    if holder is None:
        return
    for key in keys:
        if key in holder.model_fields_set and getattr(holder, key):
            yield f"{prefix}.{key}" if prefix else key


def _written_expect(expect: Expect | None, *, keeps_turns: bool) -> dict[str, JSON]:
    """Write an ``expect`` as short as a suite allows."""
    if expect is None:
        return {}
    dumped = _plain(expect)
    written = {key: value for key, value in dumped.items() if key not in _NEED_FIXTURES}
    if expect.tools is not None:
        written["tools"] = written_tools(expect.tools, keeps_turns=keeps_turns)
    return {key: value for key, value in written.items() if value != {}}


def _written_forbid(forbid: Forbid | None) -> dict[str, JSON]:
    if forbid is None:
        return {}
    dumped = _plain(forbid)
    written = {key: value for key, value in dumped.items() if key not in ("http", "files")}
    if forbid.tools:
        written["tools"] = [written_tool(call.tool, call.args) for call in forbid.tools]
    return written


def _plain(model: Any) -> dict[str, Any]:
    """Give a model as data in the words of a suite file, without what is not said."""
    dumped: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return dumped


def written_tools(tools: ToolsExpect, *, keeps_turns: bool) -> JSON:
    """Write the expected calls as short as a suite allows."""
    calls = [_written_call(call, keeps_turns=keeps_turns) for call in tools.calls]
    forbids = tools.extra_calls == "forbid"
    if tools.order == "any" and (forbids if not calls else tools.extra_calls == "free"):
        return calls
    extra = tools.extra_calls
    allowed: JSON = {"allow": list(extra)} if isinstance(extra, tuple) else extra
    order = {} if tools.order == "any" else {"order": tools.order}
    return {**order, "extra_calls": allowed, "calls": calls}


def _written_call(call: CallExpect, *, keeps_turns: bool) -> JSON:
    dumped = _plain(call)
    if not keeps_turns:
        dumped.pop("turn", None)
    if dumped.keys() <= {"tool", "args"} and call.tool not in _LONG_KEYS:
        return written_tool(call.tool, call.args)
    return dumped


def _take_calls(proposal: Proposal, recorded: Recorded, gold: Scenario | None) -> None:
    """Expect the calls that were made, for want of those that should have been."""
    kept = {turn.index for turn in recorded.turns}
    banned = {call.tool for call in gold.forbid.tools} if gold and gold.forbid else set()
    calls = [
        call for call in recorded.trace.tool_calls if call.turn in kept and call.name not in banned
    ]
    proposal.expect["tools"] = [_made(call) for call in calls]
    text = "these are the calls that were made, not those that should have been: correct them"
    if not calls:
        text = "no tool was called; name the calls that should have been made"
    proposal.notes.append(Note("expect", text))
    proposal.notes.extend(Note("expect", text) for text in _doubts(calls))


def _made(call: ToolCall) -> JSON:
    """Expect a call as it was made; one that failed meets only an expectation that says so."""
    args = write_pattern(dict(call.args or {}))
    failed = call.status not in ("ok", "unknown")
    if not failed and call.name not in _LONG_KEYS:
        return written_tool(call.name, args)
    written = {"tool": call.name} | ({"args": args} if args else {})
    return written | ({"status": call.status} if failed else {})


def _doubts(calls: Sequence[ToolCall]) -> Iterator[str]:
    """Name what looks like a fault among the calls."""
    counts: dict[bytes, int] = {}
    for call in calls:
        key = encode([call.name, call.args, call.raw_args])
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            yield f"{call.name} was called more than once with the same arguments"
    failed = dict.fromkeys(call.name for call in calls if call.status not in ("ok", "unknown"))
    if failed:
        yield f"calls that failed stand here with their status: {', '.join(failed)}"


def circumstances_of(gold: Scenario | None) -> dict[str, JSON]:
    """Copy what makes the agent meet the same situation, as far as it needs no file."""
    dumped = {} if gold is None else _plain(gold)
    return {key: dumped[key] for key in _CIRCUMSTANCES if key in dumped}


def scripts_of(gold: Scenario | None, index: int) -> Mapping[str, JSON]:
    """Give the ``when`` of each named script of one of a scenario's turns."""
    turns = gold.turns if gold else ()
    model = turns[index].model if index < len(turns) else None
    return {} if model is None else {name: script.when for name, script in model.scripts.items()}
