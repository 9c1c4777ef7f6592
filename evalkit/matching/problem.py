"""What an assignment of calls to expectations has to respect, as bit masks.

A **place** is room for one call of an expectation: it has as many required
places as calls that must match, and optional ones up to ``times.max``. A place
may be **pinned** to a call (or to none); from the pins follow the calls that
every other place may still have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from evalkit.matching.bipartite import bits
from evalkit.matching.calls import Expectation, MadeCall, view

Order = Literal["any", "in_order", "exact"]

Pins = Mapping[int, int | None]
"""Place -> call, or ``None`` for a place that stays empty."""


class Place(NamedTuple):
    """Room for one call of an expectation."""

    expected: int
    required: bool


class Masks(NamedTuple):
    """What may go where, calls as bits."""

    places: tuple[int, ...]
    """For each place the calls that it may have."""
    must: int
    """Calls that have to be given to a place."""


@dataclass(frozen=True)
class Problem:
    """Expectations, calls and the rules between them."""

    expected: Sequence[Expectation]
    calls: Sequence[MadeCall]
    order: Order = "any"
    refused: int = 0
    """Bits of the calls that may not be left over."""
    _referred: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)

    @cached_property
    def fitting(self) -> list[int]:
        """For each expectation the calls that fit, references apart."""
        by_name: dict[str, list[int]] = {}
        for index, made in enumerate(self.calls):
            by_name.setdefault(made.name, []).append(index)
        return [
            sum(1 << at for at in by_name.get(one.call.tool, ()) if one.fits(self.calls[at]))
            for one in self.expected
        ]

    @cached_property
    def places(self) -> list[Place]:
        """The room that the expectations have, required places first within each."""
        return [
            Place(index, number < one.call.n_required)
            for index, one in enumerate(self.expected)
            for number in range(one.call.n_places(self.fitting[index].bit_count()))
        ]

    @cached_property
    def required(self) -> list[list[int]]:
        """For each expectation its places that must be filled."""
        found: list[list[int]] = [[] for _ in self.expected]
        for at, place in enumerate(self.places):
            if place.required:
                found[place.expected].append(at)
        return found

    @cached_property
    def n_required(self) -> int:
        """How many places must be filled."""
        return sum(map(len, self.required))

    @cached_property
    def by_id(self) -> dict[str, int]:
        """Position of each expectation that has an id."""
        return {one.call.id: at for at, one in enumerate(self.expected) if one.call.id}

    @cached_property
    def waits_for(self) -> list[set[int]]:
        """For each expectation those whose calls must come before its own.

        In an ordered mode the list itself is the order, and ``after`` adds nothing.
        """
        free = self.order == "any"
        return [
            {
                self.by_id[name]
                for name in (*one.needs, *(one.call.after if free else ()))
                if name in self.by_id
            }
            for one in self.expected
        ]

    @cached_property
    def sequence(self) -> list[int]:
        """Expectations, each after those that it waits for; without those in a circle."""
        done: dict[int, None] = {}
        while True:
            ready = [
                at
                for at, others in enumerate(self.waits_for)
                if at not in done and others <= done.keys()
            ]
            if not ready:
                return list(done)
            done.update(dict.fromkeys(ready))

    @cached_property
    def impossible(self) -> set[int]:
        """Expectations that no call can satisfy: they wait for themselves, or for nobody."""
        lost = set(range(len(self.expected))) - set(self.sequence)
        for index, one in enumerate(self.expected):
            named = [self.by_id.get(name) for name in (*one.needs, *one.call.after)]
            against_list = self.order != "any" and any(
                at is not None and at >= index for at in named
            )
            if None in named or against_list:
                lost.add(index)
        return lost

    @cached_property
    def pinned(self) -> list[int]:
        """Places to decide one by one: others depend on them (or, in any order, they on others)."""
        chosen: set[int] = set()
        for index, others in enumerate(self.waits_for):
            chosen |= others
            if others and self.order == "any":
                chosen.add(index)
        return [at for index in self.sequence if index in chosen for at in self.required[index]]

    def masks(self, pins: Pins, *, strict: bool) -> Masks:
        """Work out what may go where.

        Parameters
        ----------
        pins
            What is decided.
        strict
            Whether every required place is to be filled, so that those that
            others wait for must leave room behind them.
        """
        rows, must = [0] * len(self.expected), self.refused
        for index in self.sequence:
            known = self._referring(index, pins)
            if known is not None and self.expected[index].call.n_at_most is not None:
                must |= known
            if index not in self.impossible:
                base = self.fitting[index] if known is None else known
                rows[index] = base & self._late_enough(index, rows, pins=pins)
        early = self._early_enough(rows) if strict else [-1] * len(rows)
        return Masks(tuple(self._places_masks(rows, early, pins=pins)), must)

    def _places_masks(
        self, rows: Sequence[int], early: Sequence[int], *, pins: Pins
    ) -> Iterator[int]:
        """Give each place what its expectation may have, narrowed by its pin."""
        for at, place in enumerate(self.places):
            mask = rows[place.expected]
            if place.required:
                mask &= early[place.expected]
            call = pins.get(at, -1)
            yield mask if call == -1 else 0 if call is None else mask & 1 << call

    def _late_enough(self, index: int, rows: Sequence[int], *, pins: Pins) -> int:
        """Give the calls after those that it waits for; one that is missing binds nobody."""
        latest = -1
        for other in self.waits_for[index]:
            for place in self.required[other]:
                call = pins.get(place, -1)
                if call == -1 and rows[other]:
                    call = (rows[other] & -rows[other]).bit_length() - 1
                latest = max(latest, -1 if call is None else call)
        return -1 << (latest + 1)

    def _early_enough(self, rows: list[int]) -> list[int]:
        """Give for each expectation the calls before the last one of those that wait for it."""
        early = [-1] * len(rows)
        for index in reversed(self.sequence):
            last = (rows[index] & early[index]).bit_length() - 1
            for other in self.waits_for[index] if self.required[index] else ():
                early[other] &= (1 << max(last, 0)) - 1
        return early

    def _referring(self, index: int, pins: Pins) -> int | None:
        """Give the calls whose references hold, ``None`` while what they refer to is undecided."""
        one = self.expected[index]
        if not one.needs:
            return self.fitting[index]
        targets = [self.required[self.by_id[name]] for name in one.needs if name in self.by_id]
        places = [place for target in targets for place in target]
        if not set(places) <= pins.keys():
            return None
        held = tuple(-1 if (call := pins[place]) is None else call for place in places)
        if (index, held) not in self._referred:
            self._referred[index, held] = self._matching_refs(index, refs_of(self, pins))
        return self._referred[index, held]

    def _matching_refs(self, index: int, refs: Mapping[str, Sequence[object]]) -> int:
        """Try the references of every call that fits otherwise."""
        one, fitting = self.expected[index], self.fitting[index]
        return sum(1 << at for at in bits(fitting) if one.fits_refs(self.calls[at], refs))


def refs_of(problem: Problem, pins: Pins) -> dict[str, list[object]]:
    """Give each id the calls in its required places, for ``$ref``."""
    return {
        name: [
            view(problem.calls[call])
            for place in problem.required[index]
            if (call := pins.get(place)) is not None
        ]
        for name, index in problem.by_id.items()
    }
