"""What happens inside a trial's own process: the conversation, told as events.

Runs in a fresh process (:func:`serve`, called by the fork server), or in the
caller's for debugging (:func:`converse`). Whatever the agent does, this code
ends with a ``trial_end`` event, unless the process dies.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from evalkit.agents import AgentRef, BadReplyError, Conversation
from evalkit.agents.declared import declared_tools
from evalkit.errors import AgentError, LedgerError
from evalkit.grade import Ending
from evalkit.ledger import Event, encode, event_line
from evalkit.observing import watch_tools, watched_tools
from evalkit.recording import Recorder
from evalkit.trace import Trace
from evalkit.trial.asking import WHICH_TOOLS
from evalkit.trial.logs import LogTaker
from evalkit.trial.order import Advance, TrialOrder
from evalkit.trial.outbox import Outbox

if TYPE_CHECKING:
    from evalkit.sandbox.barrier import Barrier
    from evalkit.sandbox.room import Entered
    from evalkit.trial.stage import Stage

MAX_EVENT_BYTES: Final = 20_000_000
"""What one call, reply or log of an agent may take in the ledger."""

_TRACEBACK_LINES: Final = 12
_MAX_REASON: Final = 10_000


@dataclass(frozen=True, slots=True)
class Preparation:
    """What the server is told, before any trial."""

    agent: AgentRef
    barrier: Barrier | None = None
    """``None`` outside the contract lane."""
    keep: tuple[str, ...] = ()
    """Folders that trials must see, wherever they lie."""
    certificate: bytes = b""
    rehearses: bool = True
    """Whether trials follow, which a rehearsal makes cheaper."""


class _Here:
    """What this process is, once it is a trial's."""

    order: TrialOrder | None = None
    entered: Entered | None = None
    notes: tuple[str, ...] = ()
    """What is weaker here than it should be."""
    refused: Any = None
    """What the agent tried to reach while it was imported in the server."""


def prepare(payload: bytes) -> Any:
    """Load the agent once, in the warm server that trials are forked from."""
    import pickle

    told = pickle.loads(payload)  # noqa: S301 - our own parent's bytes, over a private socket
    assert isinstance(told, Preparation)
    if told.barrier is None:
        return told.agent.load()
    room = _rooms()
    ready = room.prepare(
        told.agent.load, barrier=told.barrier, keep=told.keep, certificate=told.certificate
    )
    _Here.notes, _Here.refused = ready.notes, ready.refused
    # A spawned trial is in its room already, and no other process comes from it.
    if told.rehearses and told.barrier == "namespace" and _Here.order is None:
        from evalkit.trial.rehearsal import rehearse

        rehearse()
    return ready.agent


def enter(payload: bytes) -> None:
    """Build the trial's room around this process, before anything of the agent runs in it."""
    if payload == WHICH_TOOLS:
        return
    _Here.order = TrialOrder.from_bytes(payload)
    staging = _Here.order.staging
    if staging is not None:
        _Here.entered = _rooms().enter(staging.room)
        if not staging.port:
            from evalkit.trial.ports import reserve_port

            reserve_port()


def _rooms() -> ModuleType:
    """Import all that stands around a trial of the contract lane, before it is in a room.

    Other lanes do without, and the fewer pages their server has, the cheaper its forks.
    """
    # Forks find imported what stands around a trial, and what describes its script.
    import evalkit.trial.stage  # noqa: F401
    from evalkit.sandbox import room

    return room


def serve(agent: Any, payload: bytes, channel: socket.socket) -> None:
    """Run one trial in this process and send its events; or say which tools the agent has."""
    if payload == WHICH_TOOLS:
        channel.sendall(encode(declared_tools(agent)))
        return
    order = _Here.order or TrialOrder.from_bytes(payload)
    outbox = Outbox(channel)

    def surround(recorder: Recorder) -> Stage | None:
        logging.getLogger().addHandler(LogTaker(recorder))
        if order.staging is None or _Here.entered is None:
            return None
        notes = [*_Here.notes, *_Here.entered.notes]
        if notes:  # of this machine, so in no digest
            recorder.event("state", {}, real={"notes": notes})
        from evalkit.trial.stage import Stage

        early = {} if _Here.refused is None else {"refused_before": _Here.refused}
        return Stage(order.staging, _Here.entered, recorder=recorder, outbox=outbox, **early)

    def emit(line: bytes) -> None:
        outbox.put(line if _Here.entered is None else _Here.entered.settle_paths(line))

    with conditions(order):
        converse(order, agent, emit=emit, surround=surround)


@contextmanager
def conditions(order: TrialOrder) -> Iterator[None]:
    """Give a trial its randomness and its environment; take the latter back afterwards."""
    if order.staging is not None:  # the room has both
        yield
        return
    before = {name: os.environ.get(name) for name in order.env}
    os.environ.update(order.env)
    random.seed(order.seed)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


class _AgentClock:
    """Seconds since the trial began, without those that it waited for evalkit."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._started

    def go_on_from(self, seconds: float) -> None:
        """Go back to a time: what has passed since does not count."""
        self._started = time.monotonic() - seconds


class _Pen:
    """Writes events down as lines; the time that this takes is not the agent's."""

    def __init__(self, emit: Callable[[bytes], None], clock: _AgentClock) -> None:
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._held: list[bytes] = []
        self._is_holding = False

    def write(self, event: Event) -> None:
        """Write one event."""
        asked_at = self._clock()
        try:
            line = _bounded_line(event)
            with self._lock:
                self._held.append(line)
                self._flush()
        finally:
            self._clock.go_on_from(asked_at)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Keep the lines of what belongs together, and emit them at once."""
        self._is_holding = True
        try:
            yield
        finally:
            self._is_holding = False
            asked_at = self._clock()
            with self._lock:
                self._flush()
            self._clock.go_on_from(asked_at)

    def _flush(self) -> None:
        if self._held and not self._is_holding:
            lines, self._held = b"".join(self._held), []
            self._emit(lines)


def converse(
    order: TrialOrder,
    agent: Any,
    *,
    emit: Callable[[bytes], None],
    interruptible: bool = False,
    surround: Callable[[Recorder], Stage | None] = lambda _: None,
) -> Ending:
    """Hold a trial's conversation with an agent.

    Parameters
    ----------
    order
        What to say.
    agent
        In any form that :class:`~evalkit.agents.Conversation` takes.
    emit
        Called with whole lines of the ledger, as soon as they are known; with those of
        one answer together.
    interruptible
        Whether a ``KeyboardInterrupt`` comes from the keyboard, and is raised on.
        In a trial's own process only the agent can raise one.
    surround
        Sets up what stands around the conversation; in the contract lane a stage.

    Returns
    -------
    Ending
        How it ended; else never raises for what the agent does.
    """
    clock = _AgentClock()
    pen = _Pen(emit, clock)
    recorder = Recorder(pen.write, clock=clock)
    with pen.together():
        recorder.start(scenario=order.scenario, trial=order.trial, lane=order.lane, seed=order.seed)
        stage = surround(recorder)
    ending = _outcome(order, agent, _Turns(recorder, stage, pen), interruptible=interruptible)
    with pen.together():
        if stage is not None:
            ending = stage.verdict(ending)
        ending = replace(ending, duration_s=round(clock(), 6))
        recorder.end(ending)
    return ending


class _Turns:
    """Writes down a conversation, turn by turn, and tells the stage of it."""

    def __init__(self, recorder: Recorder, stage: Stage | None, pen: _Pen) -> None:
        self._recorder = recorder
        self._stage = stage
        self._pen = pen
        self._n = 0

    def watch(self) -> None:
        """Take in what wrapped tools do from now on."""
        tools = watched_tools()
        if tools:
            self._recorder.watched(tools)
            watch_tools(self._recorder)

    def begin(self, turn: str | Advance) -> None:
        """Begin a turn."""
        if self._stage is not None:
            self._stage.begin_turn(self._n)
        self._n += 1
        if isinstance(turn, str):
            self._recorder.turn(turn)
            return
        self._recorder.turn("", advance_s=turn.seconds)
        if self._stage is not None:
            self._stage.advance(turn.seconds)

    def answer(self, trace: Trace) -> None:
        """Write what the agent did in the turn that began last."""
        if self._stage is None:
            if not trace.tools_observed and watched_tools():
                trace = replace(trace, tools_observed=True)
            with self._pen.together():
                self._recorder.answer(trace)
            return
        # The scripted model saw what was asked for; what the agent tells is what ran.
        if trace.tool_calls:
            self._recorder.watched(sorted({call.name for call in trace.tool_calls}))
        for call in trace.tool_calls:
            self._recorder.ran(call)
        told = replace(trace, tool_calls=(), model_calls=())
        with self._pen.together():
            self._recorder.answer(replace(told, tools_observed=True, models_observed=True))


def _bounded_line(event: Event) -> bytes:
    line = event_line(event)
    if len(line) > MAX_EVENT_BYTES:
        raise BadReplyError(
            "reply_too_large",
            f"the agent returned a trace with a {event.kind} of {len(line):,} bytes; "
            f"one may have at most {MAX_EVENT_BYTES:,}",
        )
    return line


def _outcome(order: TrialOrder, agent: Any, turns: _Turns, *, interruptible: bool) -> Ending:
    try:
        with Conversation(agent) as conversation:
            turns.watch()
            for turn in order.turns:
                turns.begin(turn)
                if isinstance(turn, str):
                    turns.answer(conversation.reply(turn))
    except BaseException as error:
        if interruptible and isinstance(error, KeyboardInterrupt):
            raise
        _keep_report(error, turns)
        return _fault(error)
    finally:
        watch_tools(None)
    return Ending()


def _keep_report(error: BaseException, turns: _Turns) -> None:
    """Write what an agent had told before its fault."""
    trace = getattr(error, "trace", None)
    if isinstance(error, BadReplyError) and isinstance(trace, Trace):
        turns.answer(trace)


def _fault(error: BaseException) -> Ending:
    """Say what went wrong, and whose fault it is."""
    match error:
        case BadReplyError():
            return Ending("failed", error.code, error.message)
        case LedgerError():
            return Ending("failed", "bad_reply", f"what the agent returned {error}")
        case AgentError():
            return Ending("incomplete", "agent_unavailable", str(error))
        case SystemExit():
            return Ending("failed", "agent_exited", f"the agent called sys.exit({error.code!r})")
    return Ending("failed", "agent_raised", _raised(error))


def _raised(error: BaseException) -> str:
    """Name what the agent raised, first line first, then where."""
    shown = traceback.format_exception(error, limit=-_TRACEBACK_LINES)
    return f"the agent raised {_one_line(error)}\n{_clipped(''.join(shown).rstrip())}"


def _one_line(error: BaseException) -> str:
    try:
        message = _clipped(str(error).split("\n", 1)[0])
    except BaseException:  # an exception whose __str__ raises is the agent's as well
        message = "(its message cannot be shown)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _clipped(text: str) -> str:
    """Leave out the middle of a text that nobody would read to its end."""
    if len(text) <= _MAX_REASON:
        return text
    return f"{text[: _MAX_REASON // 2]}\n...\n{text[-_MAX_REASON // 2 :]}"
