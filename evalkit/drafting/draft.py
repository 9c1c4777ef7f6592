"""One draft: a scenario from one trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evalkit.drafting.recorded import Note
from evalkit.drafting.yaml_text import scenario_lines
from evalkit.errors import UsageError
from evalkit.ledger import JSON


class Undraftable(UsageError):
    """A trial that no scenario can be drafted from; the text says why."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario drafted from a trial."""

    id: str
    scenario: str
    """Where it comes from: the run's scenario."""
    trial: int
    data: dict[str, JSON]
    """The scenario, in the form that a suite file has."""
    notes: tuple[Note, ...]
    about: tuple[str, ...]
    """What stands above it: run, trial, status, reason."""

    @property
    def review(self) -> tuple[str, ...]:
        """What a person has to decide; each stands in the text, marked REVIEW."""
        return tuple(note.text for note in self.notes if note.needs_review)

    @property
    def lines(self) -> list[str]:
        """The scenario as lines of a suite file, two spaces in."""
        return scenario_lines(self.data, about=self.about, notes=self.notes)


class LeftOut(NamedTuple):
    """A trial without a draft of its own, and why."""

    scenario: str
    trial: int
    reason: str
