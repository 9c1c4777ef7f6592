"""One trial under way, as the controller sees it: its ledger, its deadline, its end.

A trial may need several processes, one after the other; its ledger is one.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalkit.grade import Ending
from evalkit.ledger import JSON, Event, EventKind, event_line, parse_event
from evalkit.reading import ending_of
from evalkit.sandbox.child import Ended, Output
from evalkit.sandbox.connections import Refused
from evalkit.sandbox.folders import remove_folder
from evalkit.trial.endings import how_it_ended, too_slow
from evalkit.trial.filing import not_written, open_ledger
from evalkit.trial.order import TrialOrder
from evalkit.trial.outbox import ACKNOWLEDGE, LEAVING

if TYPE_CHECKING:
    from evalkit.trial.lives import Handover

OUTPUT_LIMIT: Final = 100_000
"""Bytes of what one process of an agent printed that its ledger keeps."""

_STARTUP_S: Final = 300.0
"""Seconds that a process may take to begin its trial; the agent's deadline counts from there."""
_PARTING_S: Final = 120.0
"""Seconds that a process may take to hand over what it leaves."""


class FinishedTrial(NamedTuple):
    """A trial that was run: what it did, and how that ended."""

    order: TrialOrder
    events: tuple[Event, ...]
    ending: Ending


class Flight:
    """One trial under way."""

    def __init__(self, order: TrialOrder, path: Path) -> None:
        self.order = order
        self._broken = ""
        self._spent_s = 0.0
        """Seconds that the agent took in earlier lives."""
        self._events: list[Event] = []
        self._told: Ending | None = None
        self._path = path
        self._ledger = open_ledger(path)
        self._begin(order)

    def _begin(self, order: TrialOrder) -> None:
        """Wait for the first word of a process."""
        self._current = order
        self.due = time.monotonic() + _STARTUP_S
        self.is_overdue = False
        self._begun: float | None = None
        self._pieces: list[bytes] = []
        self._is_leaving = False
        self._handover: Handover | None = None

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
            self.due = self._begun + self.order.deadline_s - self._spent_s
        self._pieces.append(data)
        if b"\n" not in data:
            return 0
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest]
        self._write(b"".join(self._taken(line) for line in lines if line != ACKNOWLEDGE))
        return lines.count(ACKNOWLEDGE)

    def _taken(self, line: bytes) -> bytes:
        """Take in one line; give what of it goes to the ledger."""
        if line.startswith(LEAVING):
            self._take_leave(line.removeprefix(LEAVING))
            return b""
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

    def _take_leave(self, line: bytes) -> None:
        """Take in that a process leaves, and what it hands over then."""
        if not self._is_leaving:
            self._is_leaving = True
            self.due = time.monotonic() + _PARTING_S  # that is evalkit's own time
        if not line:
            return
        from evalkit.trial.lives import read_handover

        try:
            self._handover = read_handover(line)
        except (ValueError, KeyError, TypeError) as error:
            self._broken = self._broken or repr(error)

    def next_order(self, end: Ended) -> TrialOrder | None:
        """Write the order of the process that goes on with the trial; ``None`` if it is over."""
        left = self._handover
        if left is None or left.problem or self._broken or end.exit_status is None:
            return None
        from evalkit.trial.lives import next_order

        self._spent_s = left.agent_s
        self._clear_up()
        self._write_log(end.child.read_output(OUTPUT_LIMIT))
        self._begin(next_order(self._current, self._events, left))
        return self._current

    def _clear_up(self) -> None:
        if self.order.staging is not None:
            remove_folder(self.order.staging.room.spare)

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
        self._clear_up()
        try:
            ending = replace(self._ending(end), duration_s=self._duration_s)
            self._write_end(end.child.read_output(OUTPUT_LIMIT), ending)
        except BaseException:
            self.abandon()
            raise
        self._ledger.close()
        return FinishedTrial(self.order, tuple(self._events), ending)

    def _write_log(self, printed: Output) -> None:
        if printed.text:
            self._append("log", {"text": printed.text, "truncated": printed.truncated})

    def _write_end(self, printed: Output, ending: Ending) -> None:
        self._write_log(printed)
        told = {"status": ending.status, "reason_code": ending.reason_code}
        self._append("trial_end", {**told, "reason": ending.reason}, duration_s=ending.duration_s)

    @property
    def _duration_s(self) -> float | None:
        """Seconds that the agent took, as far as it is known."""
        if self._told is not None:
            return self._told.duration_s
        if self._begun is None:
            return self._spent_s or None
        return self._spent_s + time.monotonic() - self._begun

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
        if self._is_leaving:
            left = self._handover
            problem = left.problem if left is not None else ""
            why = problem or f"it {how_it_ended(status)} before it had handed over what it left"
            return Ending("incomplete", "restart_failed", f"the agent was not restarted: {why}")
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
