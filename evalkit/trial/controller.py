"""Runs trials, several at a time, each in a fresh process; keeps their ledgers.

The controller owns the fork server, the deadlines and the ledger files. It
does not grade and it does not write results; that is the runner's.
"""

from __future__ import annotations

import pickle
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

from evalkit.agents import AgentRef
from evalkit.agents.declared import DeclaredTools
from evalkit.ledger import (
    parse_events,
)
from evalkit.sandbox.barrier import Barrier
from evalkit.sandbox.child import Child, Ended, Received
from evalkit.sandbox.pool import ForkServer, Mode
from evalkit.trial.asking import ask_for_tools
from evalkit.trial.filing import write_ledger
from evalkit.trial.flight import OUTPUT_LIMIT, FinishedTrial, Flight
from evalkit.trial.order import TrialOrder
from evalkit.trial.outbox import ACKNOWLEDGED
from evalkit.trial.worker import Preparation, conditions, converse

_MAX_PATIENCE_S: Final = 3600.0

LedgerPath = Callable[[TrialOrder], Path]


class ProcessTrials:
    """Runs trials in fresh processes, several at a time; a context manager.

    Entering loads the agent, once, in the server that the processes are forked from.

    Parameters
    ----------
    agent
        What to load.
    n_parallel
        Trials in flight at a time.
    surroundings
        What the contract lane puts around the server; ``None`` outside of it.

    Raises
    ------
    AgentError
        On entering, if the agent cannot be loaded.
    SandboxError
        On entering, if there is no barrier; later, if the server is lost.
    """

    def __init__(
        self, agent: AgentRef, *, n_parallel: int, surroundings: Surroundings | None = None
    ) -> None:
        self._n_parallel = n_parallel
        self._server = _server(agent, surroundings)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._server.__exit__(*problem)

    def declared_tools(self) -> DeclaredTools | None:
        """Ask the agent which tools it says that it has; before any trial."""
        return ask_for_tools(self._server)

    def run(
        self, orders: Iterable[TrialOrder], *, ledger_path: LedgerPath
    ) -> Iterator[FinishedTrial]:
        """Run each trial, and give them as they finish.

        Parameters
        ----------
        orders
            The trials.
        ledger_path
            Where the ledger of a trial is written.

        Raises
        ------
        LedgerError
            If the disk does not take a ledger.
        """
        waiting = deque(orders)
        flights: dict[Child, Flight] = {}
        with ExitStack() as stack:
            stack.callback(_abandon, flights)
            while waiting or flights:
                self._fill(flights, waiting, ledger_path)
                for finished in _progress(self._server, flights):
                    if finished.ending.reason_code != "worker_lost":  # there may be no server
                        self._fill(flights, waiting, ledger_path)  # runs while the caller grades
                    left = time.monotonic()
                    yield finished
                    _postpone(flights, time.monotonic() - left)

    def _fill(
        self, flights: dict[Child, Flight], waiting: deque[TrialOrder], ledger_path: LedgerPath
    ) -> None:
        """Start as many trials as may be under way; one that told its end only takes its leave."""
        n_leaving = sum(flight.has_told_end for flight in flights.values())
        n_free = self._n_parallel + min(n_leaving, self._n_parallel) - len(flights)
        for _ in range(min(n_free, len(waiting))):
            order = waiting.popleft()
            flight = Flight(order, ledger_path(order))
            flights[self._server.start(order.to_bytes())] = flight


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the contract lane puts around the server that trials are forked from."""

    barrier: Barrier
    env: Mapping[str, str]
    """The whole environment of the server."""
    keep: tuple[str, ...] = ()
    """Folders that trials must see, wherever they lie."""
    certificate: bytes = b""
    """The one certificate to trust, as PEM text."""
    rehearses: bool = True
    """Whether trials follow, which a rehearsal makes cheaper."""
    modules: tuple[str, ...] = ()
    """Modules that trials will need beside those that all of them do."""


def _server(agent: AgentRef, surroundings: Surroundings | None) -> ForkServer:
    """Make the server; where trials share the loopback, each imports the agent by itself."""
    if surroundings is None:
        told, env, mode = Preparation(agent), None, "auto"
    else:
        around = surroundings
        told = Preparation(
            agent,
            around.barrier,
            around.keep,
            around.certificate,
            around.rehearses,
            around.modules,
        )
        env = surroundings.env
        mode = "auto" if surroundings.barrier == "namespace" else "spawn"
    return ForkServer(
        "evalkit.trial.worker:serve",
        prepare="evalkit.trial.worker:prepare",
        prepare_payload=pickle.dumps(told),
        enter="evalkit.trial.worker:enter",
        env=env,
        mode=cast("Mode", mode),
        secluded=surroundings is not None,
        output_limit=OUTPUT_LIMIT,
    )


def _progress(server: ForkServer, flights: dict[Child, Flight]) -> Iterator[FinishedTrial]:
    """Wait for something to happen, and give the trials that it finished."""
    patience = min(flight.time_left_s for flight in flights.values())
    for event in server.wait(min(max(patience, 0.0), _MAX_PATIENCE_S)):
        match event:
            case Received(child, data):
                for _ in range(flights[child].receive(data)):
                    child.send(ACKNOWLEDGED)
            case Ended(child):
                flight = flights.pop(child)
                following = _next_process(flight, event, server)
                if following is not None:
                    flights[following] = flight
                else:
                    yield flight.finish(event)
    for child, flight in flights.items():
        if flight.time_left_s <= 0:
            flight.is_overdue = True
            child.kill()


def _next_process(flight: Flight, end: Ended, server: ForkServer) -> Child | None:
    """Start the process that goes on with a trial, in place of the one that ended."""
    try:
        order = flight.next_order(end)
        return None if order is None else server.start(order.to_bytes())
    except BaseException:
        flight.abandon()
        raise


def _postpone(flights: dict[Child, Flight], seconds: float) -> None:
    """Move all deadlines: while a caller grades, nobody hears that a trial is done."""
    for flight in flights.values():
        flight.due += seconds


def _abandon(flights: dict[Child, Flight]) -> None:
    for flight in flights.values():
        flight.abandon()


def run_here(
    orders: Iterable[TrialOrder], agent: object, *, ledger_path: LedgerPath
) -> Iterator[FinishedTrial]:
    """Run each trial in this very process, for debugging: no isolation, no deadline.

    Parameters
    ----------
    orders
        The trials.
    agent
        In any form that :class:`~evalkit.agents.Conversation` takes.
    ledger_path
        Where the ledger of a trial is written.

    Raises
    ------
    LedgerError
        If the disk does not take a ledger.
    """
    randomness = random.getstate()
    try:
        for order in orders:
            lines: list[bytes] = []
            with conditions(order):
                ending = converse(order, agent, emit=lines.append, interruptible=True)
            content = b"".join(lines)
            write_ledger(ledger_path(order), content)
            # Read back, so that what is graded is what was written, whatever the agent keeps.
            yield FinishedTrial(order, parse_events(content), ending)
    finally:
        random.setstate(randomness)
