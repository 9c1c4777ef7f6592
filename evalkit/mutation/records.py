"""What a mutant is, and what an operator that makes mutants is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from evalkit.graders import Trial
from evalkit.ledger import JSON
from evalkit.mutation.toolset import Toolset
from evalkit.suite import Expect, Forbid
from evalkit.trace import Trace

Kind: TypeAlias = Literal[
    "calls", "order", "arguments", "tools", "claims", "reply", "leaks", "route"
]
KINDS: Final[tuple[Kind, ...]] = (
    "calls", "order", "arguments", "tools", "claims", "reply", "leaks", "route",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """A trial that passed, to be broken."""

    trial: Trial
    tools: Toolset

    @property
    def trace(self) -> Trace:
        """What it did."""
        return self.trial.trace

    @property
    def home(self) -> int | None:
        """Where expectations of a whole trial belong: ``None`` for the scenario itself.

        A scenario of one turn that says everything in that turn gets more of it there.
        """
        scenario = self.trial.scenario
        says_in_turn = len(scenario.turns) == 1 and scenario.turns[0].expect is not None
        return 0 if says_in_turn and scenario.expect is None else None

    def place(self, turn: int) -> int | None:
        """Say where expectations of one turn belong."""
        n_turns = len(self.trial.scenario.turns)
        return turn if n_turns > 1 and turn < n_turns else self.home

    def expect(self, place: int | None) -> Expect:
        """Give what is expected at a place, perhaps nothing."""
        scenario = self.trial.scenario
        holder = scenario if place is None else scenario.turns[place]
        return holder.expect or Expect.model_construct()

    def forbid(self, place: int | None) -> Forbid:
        """Give what is forbidden at a place, perhaps nothing."""
        scenario = self.trial.scenario
        holder = scenario if place is None else scenario.turns[place]
        return holder.forbid or Forbid.model_construct()


class Suggestion(NamedTuple):
    """An expectation that would close a hole."""

    turn: int | None
    """0-based turn where it belongs; ``None``: the scenario itself."""
    section: Literal["expect", "forbid"]
    key: str
    text: str
    """YAML, to be pasted under ``section``."""
    replaces: bool
    """Whether it takes the place of what the key holds already."""

    @property
    def where(self) -> str:
        """Say in words where the text belongs."""
        turn = "" if self.turn is None else f" of turn {self.turn + 1}"
        in_place = f", in place of its `{self.key}`" if self.replaces else ""
        return f"under `{self.section}`{turn}{in_place}"


Closer: TypeAlias = Callable[[Subject, "Mutant"], Iterator[Suggestion]]
"""Proposes expectations that may notice a mutant, the most natural first."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A trial's trace with one thing broken."""

    what: str
    """What was broken, in a few words."""
    trace: Trace
    turn: int = 0
    call: int | None = None
    """Position of the call that was broken, among those of the trial."""
    argument: str = ""
    excluded: str = ""
    """Why no suite should notice it; then it is not judged."""
    remark: str = ""
    """What explains it if it survives."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to break a trial.

    Parameters
    ----------
    name
        What it is called in reports.
    kind
        Which part of a suite should notice.
    does
        What it does, in a sentence.
    applies
        Where it applies.
    breaks
        Makes the mutants of one trial.
    closers
        Expectations to try for a mutant that survives.
    """

    name: str
    kind: Kind
    does: str
    applies: str
    breaks: Callable[[Subject], Iterator[Mutant]]
    closers: tuple[Closer, ...]


class Made(NamedTuple):
    """A mutant with the operator that made it."""

    operator: Operator
    mutant: Mutant


Status: TypeAlias = Literal["killed", "survived", "incomplete", "excluded"]


@dataclass(frozen=True, slots=True)
class MutantResult:
    """What became of one mutant."""

    scenario: str
    trial: int
    operator: str
    kind: Kind
    what: str
    status: Status
    """``excluded``: no suite should notice it, for the reason that is given."""
    reason: str = ""
    """Who noticed it and why; why nobody could; why nobody should."""
    suggestion: Suggestion | None = None
    """Of a survivor: the expectation that was tried and notices it."""

    def to_json(self) -> dict[str, JSON]:
        """Give it as a JSON object."""
        told = {name: getattr(self, name) for name in _TOLD}
        return told | {"suggestion": _told(self.suggestion)}


_TOLD: Final = ("scenario", "trial", "operator", "kind", "what", "status", "reason")


def _told(suggestion: Suggestion | None) -> Mapping[str, JSON] | None:
    return None if suggestion is None else suggestion._asdict() | {"where": suggestion.where}


class LeftOut(NamedTuple):
    """A scenario that could not be broken, because it did not pass."""

    scenario: str
    reason: str
