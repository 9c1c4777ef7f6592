"""Whether the trials of one scenario of the contract lane did the same.

They are copies: same seed, same clock, same script. So more than one of them measures
nothing but this. Two that passed and differ are no pass: an agent in this process has
failed, because all that it could draw on was the same. Of another program, whose
randomness nobody seeds, that cannot be said, and its trial is ``incomplete``.

Compared is what a digest covers, without the trial's number, in canonical order: what
ran side by side, or made up ids of its own, may have come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalkit.errors import LedgerError
from evalkit.grade import Ending
from evalkit.ledger import JSON, Event, digest, encode
from evalkit.results import Manifest, TrialRecord, load_run

if TYPE_CHECKING:
    from evalkit.diffing import Difference

_MAX_SHOWN: Final = 80
_PROGRAM_CLOCKS: Final = frozenset({"libfaketime", "real"})


class _Copy(NamedTuple):
    """A trial that the others of its scenario are compared with."""

    trial: int
    events: tuple[Event, ...]
    digest: str


class Copies:
    """The trials of a run, compared with each other as they are graded.

    Parameters
    ----------
    manifest
        Says whether trials are copies, and of what kind the agent is.
    """

    def __init__(self, manifest: Manifest) -> None:
        n_trials = max((planned.n_trials for planned in manifest.plan), default=0)
        self._is_wanted = manifest.lane == "contract" and n_trials > 1
        self._is_program = manifest.clock in _PROGRAM_CLOCKS
        self._first: dict[str, _Copy] = {}

    def take_up(self, folder: Path) -> None:
        """Go on with a run: its trials that passed are compared with, too."""
        if not self._is_wanted:
            return
        run = load_run(folder)
        for record in run.records:
            if record.status == "passed" and record.scenario not in self._first:
                with suppress(LedgerError):  # whoever looks at this trial is told
                    ledger = run.ledger(record.scenario, record.trial)
                    self._remember(record.scenario, record.trial, ledger)

    def fault_of(self, record: TrialRecord, events: Iterable[Event]) -> Ending | None:
        """Compare a trial that passed; say how it ends if it differs from the first that did."""
        if not self._is_wanted or record.status != "passed":
            return None
        first = self._first.get(record.scenario)
        if first is None:
            self._remember(record.scenario, record.trial, events)
            return None
        told = _told(events)
        if digest(told) == first.digest:
            return None
        from evalkit.diffing import first_difference

        found = first_difference(first.events, told, in_canonical_order=True)
        if found is None:
            return None
        which = f"trial {record.trial} differs from trial {first.trial}"
        return replace(self._ending(which, found), duration_s=record.duration_s)

    def _remember(self, scenario: str, trial: int, events: Iterable[Event]) -> None:
        told = _told(events)
        self._first[scenario] = _Copy(trial, told, digest(told))

    def _ending(self, which: str, found: Difference) -> Ending:
        where = f"under the same conditions {which}: {_shown(found)}"
        if self._is_program:
            reason = f"another program's randomness is not seeded, and {where}"
            return Ending("incomplete", "not_repeatable", reason)
        return Ending("failed", "not_deterministic", f"the agent is not deterministic: {where}")


def _told(events: Iterable[Event]) -> tuple[Event, ...]:
    """Leave out what names the trial."""
    return tuple(event for event in events if event.kind != "trial_start")


def _shown(found: Difference) -> str:
    """Name the first event that differs, and what stands there."""
    there, here = (None if one is None else one.kind for one in (found.first, found.second))
    place = f"event {found.position + 2}"  # the one that names the trial is the first
    if there is None:
        return f"{place} ({here}) is one more"
    if here is None:
        return f"{place} ({there}) is missing"
    if there != here:
        return f"{place} is a {here}, not a {there}"
    values = " and not ".join(map(_value, reversed(found.values)))
    return f"{place} ({here}), {found.path}: {values}"


def _value(value: JSON) -> str:
    from evalkit.diffing import ABSENT

    if value is ABSENT:
        return "nothing"
    text = encode(value).decode("utf-8", "replace").strip()
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
