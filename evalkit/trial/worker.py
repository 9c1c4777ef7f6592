"""What happens inside a trial's own process: the conversation, told as events.

Runs in a fresh process (:func:`serve`, called by the fork server), or in the
caller's for debugging (:func:`converse`). Whatever the agent does, this code
ends with a ``trial_end`` event, unless the process dies.
"""

from __future__ import annotations

import os
import random
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from evalkit.agents import AgentRef, BadReplyError, Conversation
from evalkit.errors import AgentError, LedgerError
from evalkit.grade import Ending
from evalkit.ledger import Event, event_line
from evalkit.recording import Recorder
from evalkit.trial.order import TrialOrder

MAX_EVENT_BYTES: Final = 20_000_000
"""What one call, reply or log of an agent may take in the ledger."""

_TRACEBACK_LINES: Final = 12
_MAX_REASON: Final = 10_000


def prepare(payload: bytes) -> Any:
    """Load the agent once, in the warm server that trials are forked from."""
    import pickle

    reference = pickle.loads(payload)  # noqa: S301 - our own parent's bytes, over a private socket
    assert isinstance(reference, AgentRef)
    return reference.load()


def serve(agent: Any, payload: bytes, channel: socket.socket) -> None:
    """Run one trial in this process and send its events."""
    order = TrialOrder.from_bytes(payload)
    owner = os.getpid()

    def send(line: bytes) -> None:
        # A process that the agent forked comes by here too; it must not speak for the trial.
        if os.getpid() == owner:
            channel.sendall(line)

    with conditions(order):
        converse(order, agent, emit=send)


@contextmanager
def conditions(order: TrialOrder) -> Iterator[None]:
    """Give a trial its environment and its randomness; take both back afterwards."""
    before = {name: os.environ.get(name) for name in order.env}
    state = random.getstate()
    os.environ.update(order.env)
    random.seed(order.seed)
    try:
        yield
    finally:
        random.setstate(state)
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


class _AgentClock:
    """Seconds since the trial began, without those that it waited for evalkit."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._started

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the time inside not count."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._started += time.monotonic() - began


def converse(
    order: TrialOrder,
    agent: Any,
    *,
    emit: Callable[[bytes], None],
    interruptible: bool = False,
) -> Ending:
    """Hold a trial's conversation with an agent.

    Parameters
    ----------
    order
        What to say.
    agent
        In any form that :class:`~evalkit.agents.Conversation` takes.
    emit
        Called with each event, as a line of the ledger.
    interruptible
        Whether a ``KeyboardInterrupt`` comes from the keyboard, and is raised on.
        In a trial's own process only the agent can raise one.

    Returns
    -------
    Ending
        How it ended; else never raises for what the agent does.
    """
    clock = _AgentClock()

    def write(event: Event) -> None:
        with clock.stopped():
            emit(_bounded_line(event))

    recorder = Recorder(write, clock=clock)
    recorder.start(scenario=order.scenario, trial=order.trial, lane=order.lane, seed=order.seed)
    ending = _outcome(order, agent, recorder, interruptible=interruptible)
    ending = replace(ending, duration_s=round(clock(), 6))
    recorder.end(ending)
    return ending


def _bounded_line(event: Event) -> bytes:
    line = event_line(event)
    if len(line) > MAX_EVENT_BYTES:
        raise BadReplyError(
            "reply_too_large",
            f"the agent returned a trace with a {event.kind} of {len(line):,} bytes; "
            f"one may have at most {MAX_EVENT_BYTES:,}",
        )
    return line


def _outcome(order: TrialOrder, agent: Any, recorder: Recorder, *, interruptible: bool) -> Ending:
    try:
        with Conversation(agent) as conversation:
            for text in order.turns:
                recorder.turn(text)
                recorder.answer(conversation.reply(text))
    except BaseException as error:
        if interruptible and isinstance(error, KeyboardInterrupt):
            raise
        return _fault(error)
    return Ending()


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
