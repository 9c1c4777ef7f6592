"""From a trial's ledger to what the user said and what the model answered, turn by turn.

What crossed the gateway is taken as it is. Elsewhere the calls and replies of one
answer of the model are found by the numbers that they carry (``asked_by``,
``said_by``); where they carry none, each call is an answer of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, TypeAlias

from evalkit.ledger import JSON, Event
from evalkit.reading import trace_of
from evalkit.suite import FaultStep, Scenario
from evalkit.trace import ToolCall, Trace, Turn

Step = dict[str, JSON]
"""One step of a script, as it is written in a suite."""

_LONG_KEYS: Final = frozenset({"tool", "args"})
"""Names of tools that the short form ``{name: args}`` would take for its own keys."""


class Note(NamedTuple):
    """Something to say beside a key of the scenario; an empty key is the scenario itself."""

    key: str
    text: str
    needs_review: bool = True
    """Whether a person has to decide something."""


Happens: TypeAlias = str | float | tuple[str, str]
"""What a turn is, to be compared with another one's."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """What the user said, and what the model answered until the agent was done."""

    index: int
    """0-based, in the recording."""
    user: str
    steps: tuple[Step, ...] | None
    """``None``: nothing was recorded of the model; empty: it is known that none was asked."""
    scripts: tuple[str, ...] = ()
    """Name of the script that each step came from; empty where there was none."""
    advance_s: float | None = None
    """By how much the clock moved, in a turn in which nobody spoke."""
    restart: str | None = None
    """How the agent was restarted, in a turn of its own."""

    @property
    def is_silent(self) -> bool:
        """Whether nobody spoke."""
        return self.advance_s is not None or self.restart is not None

    @property
    def happens(self) -> Happens:
        """What the turn is: what the user says, how far the clock moves, or a restart."""
        if self.restart is not None:
            return "restart", self.restart
        return self.user if self.advance_s is None else self.advance_s


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one trial shows, before anything is left out."""

    trace: Trace
    turns: tuple[RecordedTurn, ...]
    notes: tuple[Note, ...] = ()


def read_recorded(events: Sequence[Event], gold: Scenario | None = None) -> Recorded:
    """Read the turns of a trial and the steps that make a scripted model answer alike.

    Parameters
    ----------
    events
        The trial's ledger.
    gold
        The scenario that was run, if it is known: of an answer that a fault cut off
        only it has the rest.

    Raises
    ------
    TraceError
        If the ledger is broken.
    """
    trace = trace_of(events)
    if any(event.kind == "model_call" and "wire" in event.data for event in events):
        recorded = _WireReader(events, gold).recorded(trace)
    elif trace.models_observed and not trace.model_calls:
        turns = tuple(RecordedTurn(i, turn.user, ()) for i, turn in enumerate(trace.turns))
        recorded = Recorded(trace, turns)
    else:
        recorded = _TraceReader(trace).recorded()
    begun = [event.data for event in events if event.kind == "turn" and "again" not in event.data]
    told = chain(begun, repeat({}))
    return replace(recorded, turns=tuple(map(_with_kind, recorded.turns, told)))


def _with_kind(turn: RecordedTurn, told: Mapping[str, JSON]) -> RecordedTurn:
    """Add what happened in a turn in which nobody spoke."""
    return replace(turn, advance_s=told.get("advance_s"), restart=told.get("restart"))


def written_tool(name: str, args: Mapping[str, JSON]) -> JSON:
    """Write a tool use as short as a suite allows.

    Examples
    --------
    >>> written_tool("book", {"flight_id": "AA123"}), written_tool("tool", {})
    ({'book': {'flight_id': 'AA123'}}, {'tool': 'tool'})
    """
    if name in _LONG_KEYS:
        return {"tool": name} | ({"args": dict(args)} if args else {})
    return {name: dict(args)} if args else name


def tools_step(uses: Sequence[tuple[str, Mapping[str, JSON]]], text: str = "") -> Step:
    """Write the step in which the model asks for tools, all at once."""
    said: Step = {"text": text} if text else {}
    if len(uses) > 1:
        return said | {"tools": [written_tool(name, args) for name, args in uses]}
    [(name, args)] = uses
    return said | {"tool": name} | ({"args": dict(args)} if args else {})


def _broken_step(name: str, raw: str | None, notes: list[Note]) -> Step:
    """Write the step for a call whose arguments were no JSON object."""
    text = f"the model's arguments for {name} were no JSON object: {raw or ''}"
    notes.append(Note("model", f"{text}; the fault below only comes near it"))
    return {"fault": "truncated_tool_json", "tool": name}


class _TraceReader:
    """Puts the answers of a model together from a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._notes: list[Note] = []
        self._asked = [call for call in trace.tool_calls if call.asked_by is not None]

    def recorded(self) -> Recorded:
        """Give the turns of the trace."""
        turns = tuple(
            RecordedTurn(index, turn.user, self._steps(index, turn) or None)
            for index, turn in enumerate(self._trace.turns)
        )
        if not self._trace.tools_observed:
            text = "nobody saw the agent's tool calls, so the script has texts only"
            self._notes.append(Note("model", text))
        return Recorded(self._trace, turns, tuple(dict.fromkeys(self._notes)))

    def _steps(self, index: int, turn: Turn) -> tuple[Step, ...]:
        calls = [call for call in self._trace.tool_calls if call.turn == index]
        if self._asked:
            unasked = [call.name for call in calls if call.asked_by is None]
            self._note_unasked(unasked, index)
            calls = [call for call in calls if call.asked_by is not None]
        unknown = any(number is None for _, number in turn.attributed)
        numbered = not unknown and bool(self._asked or not calls)
        if not numbered and len(calls) + len(turn.replies) > 1:
            self._note_unknown_order(index, n_calls=len(calls), n_replies=len(turn.replies))
        answers = _numbered(turn, calls) if numbered else _one_by_one(turn, calls)
        return tuple(step for answer in answers for step in self._steps_of(answer))

    def _steps_of(self, answer: _Answer) -> Iterator[Step]:
        text = "\n".join(answer.texts)
        uses = [(call.name, call.args) for call in answer.calls if call.args is not None]
        if uses:
            yield tools_step(uses, text)
        elif text:
            yield {"text": text}
        for call in answer.calls:
            if call.args is None:
                yield _broken_step(call.name, call.raw_args, self._notes)

    def _note_unasked(self, names: Sequence[str], index: int) -> None:
        if names:
            text = f"turn {index + 1}: no model was seen to ask for {', '.join(names)}"
            self._notes.append(Note("model", f"{text}; not in the script"))

    def _note_unknown_order(self, index: int, *, n_calls: int, n_replies: int) -> None:
        if n_calls > 1 or n_replies > 1:
            text = "which calls were made together, or what was said between them"
            note = f"turn {index + 1}: the recording does not tell {text}"
            self._notes.append(Note("model", note))


@dataclass(slots=True)
class _Answer:
    """One message of the model."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)


def _numbered(turn: Turn, calls: Sequence[ToolCall]) -> list[_Answer]:
    answers: dict[int, _Answer] = {}
    for text, number in zip(turn.replies, turn.said_by, strict=True):
        answers.setdefault(number, _Answer()).texts.append(text)
    for call in calls:
        answers.setdefault(call.asked_by or 0, _Answer()).calls.append(call)
    return [answers[number] for number in sorted(answers)]


def _one_by_one(turn: Turn, calls: Sequence[ToolCall]) -> list[_Answer]:
    made = [_Answer(calls=[call]) for call in calls]
    return made + [_Answer(texts=[text]) for text in turn.replies]


class _WireReader:
    """Takes the answers of a model from what crossed the gateway."""

    def __init__(self, events: Sequence[Event], gold: Scenario | None) -> None:
        self._gold = gold
        self._calls = [event.data for event in events if event.kind == "model_call"]
        self._replies = {e.data["call"]: e.data for e in events if e.kind == "model_reply"}
        self._faults = {
            event.data.get("call"): event.data
            for event in events
            if event.kind == "fault" and event.data.get("injected")
        }
        self._notes: list[Note] = []

    def recorded(self, trace: Trace) -> Recorded:
        """Give the turns of the trace with the steps that were taken in them."""
        turns = tuple(self._turn(index, turn.user) for index, turn in enumerate(trace.turns))
        return Recorded(trace, turns, tuple(dict.fromkeys(self._notes)))

    def _turn(self, index: int, user: str) -> RecordedTurn:
        found = [
            (str(call.get("script") or ""), step)
            for call in self._calls
            if call["turn"] == index
            for step in self._steps(call, index)
        ]
        merged = _with_times(found)
        names = tuple(name for name, _ in merged)
        return RecordedTurn(index, user, tuple(step for _, step in merged), names)

    def _steps(self, call: Mapping[str, Any], index: int) -> Iterator[Step]:
        reply = self._replies.get(call["call"], {}).get("reply")
        fault = self._faults.get(call["call"])
        if fault is not None:
            yield self._fault_step(fault["fault"], call, reply)
        elif not isinstance(reply, Mapping):
            text = f"turn {index + 1}: a request of the agent was not answered; add what it needs"
            self._notes.append(Note("model", text))
        else:
            yield from self._answer_steps(reply)

    def _answer_steps(self, reply: Mapping[str, Any]) -> Iterator[Step]:
        if "json" in reply or "refusal" in reply:
            yield {key: reply[key] for key in ("json", "refusal") if key in reply}
            return
        tools = reply.get("tools") or ()
        uses = [(use["tool"], use.get("args") or {}) for use in tools if "raw_args" not in use]
        thought = {"thinking": reply["thinking"]} if reply.get("thinking") else {}
        if uses:
            yield thought | tools_step(uses, reply.get("text") or "")
        elif not tools or reply.get("text"):
            yield thought | {"text": reply.get("text") or ""}
        for use in tools:
            if "raw_args" in use:
                yield _broken_step(use["tool"], use["raw_args"], self._notes)

    def _fault_step(self, name: str, call: Mapping[str, Any], reply: JSON) -> Step:
        """Write a fault with what it spoiled, whole where the scenario that was run has it."""
        known = _step_taken(self._gold, call)
        if isinstance(known, FaultStep) and known.fault == name:
            return known.model_dump(exclude_defaults=True, exclude={"times"})
        said = reply if isinstance(reply, Mapping) else {}
        tools = said.get("tools") or [{}]
        if said.get("text") or "raw_args" in tools[-1]:
            text = f"turn {call['turn'] + 1}: what the fault {name} cut off is not known whole"
            self._notes.append(Note("model", text))
        used = {key: tools[-1][key] for key in ("tool", "args") if tools[-1].get(key)}
        return {"fault": name, **used}


def _step_taken(gold: Scenario | None, call: Mapping[str, Any]) -> object:
    """Find the step of a scenario that answered a request, by its place in the script."""
    turns: Sequence[Any] = gold.turns if gold else ()
    model = turns[call["turn"]].model if call["turn"] < len(turns) else None
    script = model.scripts.get(call.get("script") or "") if model else None
    steps = [s for s in (script.steps if script else ()) for _ in range(getattr(s, "times", 1))]
    place = call.get("step")
    return steps[place] if isinstance(place, int) and place < len(steps) else None


def _with_times(steps: Sequence[tuple[str, Step]]) -> list[tuple[str, Step]]:
    """Write equal faults in a row as one, with how often."""
    merged: list[tuple[str, Step]] = []
    for name, step in steps:
        last = merged[-1] if merged else ("", {})
        if "fault" in step and (name, step) == (last[0], _untimed(last[1])):
            merged[-1] = (name, {**step, "times": last[1].get("times", 1) + 1})
        else:
            merged.append((name, step))
    return merged


def _untimed(step: Step) -> Step:
    return {key: value for key, value in step.items() if key != "times"}


def usable_turns(recorded: Recorded, *, is_import: bool) -> Recorded:
    """Leave out what no user said or no model answered, and say so.

    Parameters
    ----------
    recorded
        What the trial shows.
    is_import
        Whether another tool recorded it: then two things that the user says in a
        row reached the model together, and what nobody answered is no turn.

    Returns
    -------
    Recorded
        Perhaps without any turn.
    """
    turns, notes = list(recorded.turns), list(recorded.notes)
    while turns and not turns[0].happens:
        first = turns.pop(0)
        if first.steps:
            notes.append(Note("", f"turn {first.index + 1} left out: the agent spoke first in it"))
    if is_import:
        turns = _merged(turns, notes)
    notes += [_unfinished(turn) for turn in turns if turn.steps and _asks(turn.steps[-1])]
    return replace(recorded, turns=tuple(turns), notes=tuple(notes))


def _asks(step: Step) -> bool:
    """Say whether a model that answers so is asked again."""
    return "fault" not in step and ("tool" in step or "tools" in step)


def _unfinished(turn: RecordedTurn) -> Note:
    text = "ends with a tool call: the model will be asked once more, write what it answers"
    return Note("model", f"turn {turn.index + 1} {text}")


def _merged(turns: Sequence[RecordedTurn], notes: list[Note]) -> list[RecordedTurn]:
    kept: list[RecordedTurn] = []
    waiting: list[str] = []
    for turn in turns:
        waiting.append(turn.user)
        if turn.steps is None:
            continue
        if len(waiting) > 1:
            notes.append(Note("", f"turn {turn.index + 1} joins {len(waiting)} user messages"))
        kept.append(replace(turn, user="\n\n".join(waiting)))
        waiting.clear()
    if waiting:
        text = "the last thing the user said is left out: nothing answered it"
        notes.append(Note("", text, needs_review=False))
    return kept
