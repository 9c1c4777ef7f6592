"""Drafts without the values of canaries: names stand for them, and the draft says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from evalkit.drafting.draft import Draft, Undraftable
from evalkit.drafting.recorded import Note
from evalkit.graders import planted_in
from evalkit.results import TrialRecord
from evalkit.scanning import Hiding, hiding_for
from evalkit.suite import Scenario

_NOTE = "names of canaries stand for their values: put back what the agent has to meet"


def hiding_of(record: TrialRecord, gold: Iterable[Scenario]) -> Hiding:
    """Give what hides the canaries that a trial may have met.

    Raises
    ------
    Undraftable
        If the trial was searched for one that these scenarios do not have.
    """
    planted = all_planted(gold)
    known = {name for name, _ in planted}
    if missing := [name for name in _searched(record) if name not in known]:
        raise Undraftable(
            f"its suite is gone or has changed, so nobody knows the value of its canary "
            f"{missing[0]!r}, which a draft might hold: name the right one with --suite"
        )
    return hiding_for(planted)


def all_planted(gold: Iterable[Scenario]) -> tuple[tuple[str, str], ...]:
    """Give name and value of each canary of some scenarios."""
    return tuple(dict.fromkeys(pair for scenario in gold for pair in planted_in(scenario)))


def _searched(record: TrialRecord) -> Iterator[str]:
    """Name the canaries that a trial was searched for."""
    for grade in record.grades:
        if grade.grader == "canary":
            yield from grade.evidence.get("canaries", ())


def without_values(draft: Draft, hiding: Hiding) -> Draft:
    """Hide canaries in all that is written of a draft, and note it for review.

    Raises
    ------
    Undraftable
        If a value is left that cannot be hidden.
    """
    data = hiding.json(draft.data)
    notes = tuple(note._replace(text=hiding.text(note.text)) for note in draft.notes)
    if data != draft.data:
        notes = (*notes, Note("", _NOTE))
    about = tuple(map(hiding.text, draft.about))
    hidden = replace(draft, id=data["id"], data=data, notes=notes, about=about)
    if left := hiding.found("\n".join(hidden.lines)):
        raise Undraftable(f"the draft would hold {left} in a way that cannot be hidden")
    return hidden
