"""What happens inside a trial's own process: the conversation, told as events.

Runs in a fresh process (:func:`serve`, called by the fork server), or in the
caller's for debugging (:func:`converse`). Whatever the agent does, this code
ends with a ``trial_end`` event, unless the process dies.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from evalkit.agents import AgentRef, BadReplyError, Conversation
from evalkit.agents.declared import declared_tools
from evalkit.grade import Ending
from evalkit.ledger import encode
from evalkit.observing import watch_tools
from evalkit.recording import Recorder
from evalkit.trace import Trace
from evalkit.trial.asking import WHICH_TOOLS
from evalkit.trial.faults import fault_of
from evalkit.trial.logs import LogTaker
from evalkit.trial.order import Deliver, Restart, TrialOrder
from evalkit.trial.outbox import Outbox
from evalkit.trial.pen import AgentClock, Pen
from evalkit.trial.turns import Turns

if TYPE_CHECKING:
    from evalkit.sandbox.barrier import Barrier
    from evalkit.sandbox.room import Entered
    from evalkit.trial.leaving import Leaver
    from evalkit.trial.lives import Past
    from evalkit.trial.stage import Stage


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
    modules: tuple[str, ...] = ()
    """Modules that trials will need beside those that all of them do."""


class _Here:
    """What this process is, once it is a trial's."""

    order: TrialOrder | None = None
    entered: Entered | None = None
    past: Past | None = None
    """What other processes of the trial did before."""
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
    for name in told.modules:
        import_module(name)
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
    order = _Here.order = TrialOrder.from_bytes(payload)
    staging = order.staging
    if staging is not None:
        _Here.entered = _rooms().enter(staging.room) if order.life is None else _moved_in(order)
        if not staging.port:
            from evalkit.trial.ports import reserve_port

            reserve_port()
        if staging.world is not None and staging.room.barrier != "namespace":
            from evalkit.trial.worlds import reserve_proxy

            reserve_proxy()


def _moved_in(order: TrialOrder) -> Entered:
    """Enter the room of a trial that goes on, and put what it holds where it was."""
    from evalkit.sandbox.archives import unpack
    from evalkit.trial.lives import Past

    assert order.life is not None
    assert order.staging is not None
    past = _Here.past = Past(order, order.life)
    entered: Entered = _rooms().enter(past.room(order.staging.room))
    unpack(past.estate.files)
    return entered


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
    leaver = _leaver(order, outbox)
    put = outbox.put if leaver is None else leaver.put

    def surround(recorder: Recorder) -> Stage | None:
        LogTaker(recorder).listen()
        if order.staging is None or _Here.entered is None:
            return None
        notes = [*_Here.notes, *_Here.entered.notes]
        if notes:  # of this machine, so in no digest
            recorder.event("state", {}, real={"notes": notes})
        from evalkit.trial.stage import Stage

        is_told = _Here.refused is None or _Here.past is not None
        early = {} if is_told else {"refused_before": _Here.refused}
        return Stage(
            order.staging,
            _Here.entered,
            recorder=recorder,
            outbox=outbox,
            past=_Here.past,
            **early,
        )

    def emit(line: bytes) -> None:
        put(line if _Here.entered is None else _Here.entered.settle_paths(line))

    with conditions(order):
        converse(order, agent, emit=emit, surround=surround, past=_Here.past, leaver=leaver)


def _leaver(order: TrialOrder, outbox: Outbox) -> Leaver | None:
    """Give who ends this process so that another one goes on, if that is to happen."""
    ends = order.die_after is not None or any(isinstance(turn, Restart) for turn in order.turns)
    if not ends or _Here.entered is None:
        return None
    from evalkit.trial.leaving import Leaver

    return Leaver(outbox, _Here.entered, past=_Here.past, die_after=order.die_after)


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


def converse(
    order: TrialOrder,
    agent: Any,
    *,
    emit: Callable[[bytes], None],
    interruptible: bool = False,
    surround: Callable[[Recorder], Stage | None] = lambda _: None,
    past: Past | None = None,
    leaver: Leaver | None = None,
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
    past
        What other processes of the trial did before this one.
    leaver
        Ends this process where another one is to go on.

    Returns
    -------
    Ending
        How it ended; else never raises for what the agent does.
    """
    clock = AgentClock()
    pen = Pen(emit, clock)
    recorder = Recorder(pen.write, clock=clock)
    if leaver is not None:
        leaver.clock = clock
    with pen.together():
        if past is None:
            recorder.start(
                scenario=order.scenario, trial=order.trial, lane=order.lane, seed=order.seed
            )
        else:
            past.go_on(recorder, clock)
        stage = surround(recorder)
    turns = Turns(recorder, stage, pen, past=past, leaver=leaver)
    ending = _outcome(order, agent, turns, interruptible=interruptible)
    with pen.together():
        if stage is not None:
            ending = stage.verdict(ending)
        if past is not None:
            ending = past.over_all(ending)
        ending = replace(ending, duration_s=round(clock(), 6))
        recorder.end(ending)
    return ending


def _outcome(order: TrialOrder, agent: Any, turns: Turns, *, interruptible: bool) -> Ending:
    try:
        with Conversation(agent) as conversation:
            turns.open(conversation)
            is_restarted = _hold(order, conversation, turns)
        if is_restarted:
            _exit_in_order()
            turns.leave(is_kill=False)
    except BaseException as error:
        if interruptible and isinstance(error, KeyboardInterrupt):
            raise
        _keep_report(error, turns)
        return fault_of(error)
    finally:
        watch_tools(None)
    return Ending()


def _hold(order: TrialOrder, conversation: Conversation, turns: Turns) -> bool:
    """Hold the turns that this process is there for; say whether another one goes on."""
    courier = turns.courier(conversation, order)
    for turn in order.turns[turns.n :]:
        if courier is not None:
            courier.make_ready(turn, number=turns.n + 1)
        turns.begin(turn)
        if isinstance(turn, Restart):
            if turn.kind == "kill":
                conversation.kill()
                turns.leave(is_kill=True)
            return True
        if said := _said(turn):
            turns.answer(turns.reply(conversation, *said))
        elif courier is not None:
            courier.bring(turn, number=turns.n)
        turns.end(conversation)
    return False


def _exit_in_order() -> None:
    """Do what Python does where a program ends in order."""
    import atexit

    atexit._run_exitfuncs()


def _said(turn: object) -> tuple[str, ...]:
    """Give what an agent that is called is told in a turn; nothing in turns of another kind."""
    if isinstance(turn, str):
        return (turn,)
    return (turn.text,) if isinstance(turn, Deliver) and not turn.method else ()


def _keep_report(error: BaseException, turns: Turns) -> None:
    """Write what an agent had told before its fault."""
    trace = getattr(error, "trace", None)
    if isinstance(error, BadReplyError) and isinstance(trace, Trace):
        turns.answer(trace)
