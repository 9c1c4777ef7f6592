"""Runs trials, several at a time, each in a fresh process; keeps their ledgers.

The controller owns the fork server, the deadlines and the ledger files. It
does not grade and it does not write results; that is the runner's.
"""

from __future__ import annotations

import math
import pickle
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, cast

from evalkit.agents import AgentRef
from evalkit.agents.declared import DeclaredTools
from evalkit.grade import Ending
from evalkit.ledger import (
    JSON,
    Event,
    EventKind,
    event_line,
    parse_event,
    parse_events,
)
from evalkit.reading import ending_of
from evalkit.sandbox.barrier import Barrier
from evalkit.sandbox.child import Child, Ended, Output, Received
from evalkit.sandbox.connections import Refused
from evalkit.sandbox.folders import remove_folder
from evalkit.sandbox.pool import ForkServer, Mode
from evalkit.trial.asking import ask_for_tools
from evalkit.trial.endings import how_it_ended, too_slow
from evalkit.trial.filing import not_written, open_ledger, write_ledger
from evalkit.trial.order import TrialOrder
from evalkit.trial.outbox import ACKNOWLEDGE, ACKNOWLEDGED
from evalkit.trial.worker import Preparation, conditions, converse

_OUTPUT_LIMIT: Final = 100_000
"""Bytes of what an agent printed that its ledger keeps."""

_STARTUP_S: Final = 300.0
"""Seconds that a process may take to begin its trial; the agent's deadline counts from there."""

_MAX_PATIENCE_S: Final = 3600.0

LedgerPath = Callable[[TrialOrder], Path]


class FinishedTrial(NamedTuple):
    """A trial that was run: what it did, and how that ended."""

    order: TrialOrder
    events: tuple[Event, ...]
    ending: Ending


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
        flights: dict[Child, _Flight] = {}
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
        self, flights: dict[Child, _Flight], waiting: deque[TrialOrder], ledger_path: LedgerPath
    ) -> None:
        """Start as many trials as may be under way; one that told its end only takes its leave."""
        n_leaving = sum(flight.has_told_end for flight in flights.values())
        n_free = self._n_parallel + min(n_leaving, self._n_parallel) - len(flights)
        for _ in range(min(n_free, len(waiting))):
            order = waiting.popleft()
            flight = _Flight(order, ledger_path(order))
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


def _server(agent: AgentRef, surroundings: Surroundings | None) -> ForkServer:
    """Make the server; where trials share the loopback, each imports the agent by itself."""
    if surroundings is None:
        told, env, mode = Preparation(agent), None, "auto"
    else:
        around = surroundings
        told = Preparation(agent, around.barrier, around.keep, around.certificate, around.rehearses)
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
        output_limit=_OUTPUT_LIMIT,
    )


def _progress(server: ForkServer, flights: dict[Child, _Flight]) -> Iterator[FinishedTrial]:
    """Wait for something to happen, and give the trials that it finished."""
    patience = min(flight.time_left_s for flight in flights.values())
    for event in server.wait(min(max(patience, 0.0), _MAX_PATIENCE_S)):
        match event:
            case Received(child, data):
                for _ in range(flights[child].receive(data)):
                    child.send(ACKNOWLEDGED)
            case Ended(child):
                yield flights.pop(child).finish(event)
    for child, flight in flights.items():
        if flight.time_left_s <= 0:
            flight.is_overdue = True
            child.kill()


def _postpone(flights: dict[Child, _Flight], seconds: float) -> None:
    """Move all deadlines: while a caller grades, nobody hears that a trial is done."""
    for flight in flights.values():
        flight.due += seconds


def _abandon(flights: dict[Child, _Flight]) -> None:
    for flight in flights.values():
        flight.abandon()


class _Flight:
    """One trial under way."""

    def __init__(self, order: TrialOrder, path: Path) -> None:
        self.order = order
        self.due = time.monotonic() + _STARTUP_S
        self.is_overdue = False
        self._begun: float | None = None
        self._pieces: list[bytes] = []
        self._broken = ""
        self._events: list[Event] = []
        self._told: Ending | None = None
        self._path = path
        self._ledger = open_ledger(path)

    @property
    def time_left_s(self) -> float:
        """Seconds until the deadline; for ever once the trial was killed for it."""
        return math.inf if self.is_overdue else self.due - time.monotonic()

    @property
    def has_told_end(self) -> bool:
        """Whether nothing but the end of its process is missing."""
        return self._told is not None

    def receive(self, data: bytes) -> int:
        """Take in what the worker sent; whole lines go to the ledger at once.

        Returns
        -------
        int
            How many acknowledgements the worker waits for.
        """
        if self._begun is None:
            self._begun = time.monotonic()
            self.due = self._begun + self.order.deadline_s
        self._pieces.append(data)
        if b"\n" not in data:
            return 0
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest]
        self._write(b"".join(self._taken(line) for line in lines if line != ACKNOWLEDGE))
        return lines.count(ACKNOWLEDGE)

    def _taken(self, line: bytes) -> bytes:
        """Take in one line; give what of it goes to the ledger."""
        try:
            event = parse_event(line)
            if event.kind == "trial_end":
                self._told = ending_of([event])  # what the agent printed comes before it
        except (ValueError, KeyError, TypeError) as error:
            self._broken = self._broken or repr(error)
            return b""
        if event.seq != len(self._events) + 1:
            self._broken = self._broken or f"event {event.seq} follows {len(self._events)}"
        if event.kind == "trial_end":
            return b""
        self._events.append(event)
        return line + b"\n"

    def _write(self, lines: bytes) -> None:
        try:
            self._ledger.append(lines)
        except OSError as error:
            raise not_written(self._path, error) from error

    def _append(self, kind: EventKind, data: dict[str, JSON], **real: JSON) -> None:
        event = Event(len(self._events) + 1, kind, data, real=real)
        self._events.append(event)
        self._write(event_line(event))

    def finish(self, end: Ended) -> FinishedTrial:
        """Complete the ledger of a trial whose process has ended."""
        if self.order.staging is not None:
            remove_folder(self.order.staging.room.spare)
        try:
            ending = replace(self._ending(end), duration_s=self._duration_s)
            self._write_end(end.child.read_output(_OUTPUT_LIMIT), ending)
        except BaseException:
            self.abandon()
            raise
        self._ledger.close()
        return FinishedTrial(self.order, tuple(self._events), ending)

    def _write_end(self, printed: Output, ending: Ending) -> None:
        if printed.text:
            self._append("log", {"text": printed.text, "truncated": printed.truncated})
        told = {"status": ending.status, "reason_code": ending.reason_code}
        self._append("trial_end", {**told, "reason": ending.reason}, duration_s=ending.duration_s)

    @property
    def _duration_s(self) -> float | None:
        """Seconds that the agent took, as far as it is known."""
        if self._told is not None:
            return self._told.duration_s
        return None if self._begun is None else time.monotonic() - self._begun

    def _ending(self, end: Ended) -> Ending:
        """Say how the trial ended, and who is to blame."""
        told = self._told
        if self._broken:
            return Ending("incomplete", "ledger_broken", f"the worker's report: {self._broken}")
        if told is None:
            ending = self._early_end(end.exit_status, end.reason)
            is_staged = self.order.staging is not None
            return self._unseen(ending, end.n_refused) if is_staged else ending
        if (told.duration_s or 0.0) > self.order.deadline_s:
            return too_slow(self.order.deadline_s)
        return told

    def _early_end(self, status: int | None, lost: str) -> Ending:
        """Say why a process ended that never told the end of its trial."""
        if lost or status is None:
            return Ending("incomplete", "worker_lost", f"the trial's process was lost: {lost}")
        if self._begun is None:
            late = f"had not begun the trial after {_STARTUP_S:g} s"
            how = late if self.is_overdue else f"{how_it_ended(status)} before the trial began"
            return Ending("incomplete", "worker_lost", f"the trial's process {how}")
        if self.is_overdue:
            return too_slow(self.order.deadline_s)
        code = "agent_killed" if status < 0 else "agent_exited"
        return Ending(
            "failed", code, f"the agent's process {how_it_ended(status)} in the trial's middle"
        )

    def _unseen(self, ending: Ending, n_refused: int | None) -> Ending:
        """Tell what is known of a trial that could not tell it itself, and what nobody saw."""
        if ending.status != "failed":
            return ending
        reason, files = ending.reason, "what it did to its files was not seen"
        if n_refused is None:
            return replace(
                ending, reason=f"{reason}; whether it tried to reach the outside, and {files}"
            )
        if n_refused:
            told = {"to": "outside", "n_refused": n_refused, "destinations": []}
            self._append("http", told)
            reason = f"{Refused(n_refused, ())}; {reason}"
        return replace(ending, reason=f"{reason}; {files}")

    def abandon(self) -> None:
        """Leave the ledger as it is: partial."""
        self._ledger.close(whole=False)


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
