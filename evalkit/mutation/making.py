"""All mutants of one trial, and some of them where there are too many."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evalkit.mutation.operators import OPERATORS
from evalkit.mutation.records import Made, Operator, Subject
from evalkit.trace import Trace


def mutants_of(subject: Subject, operators: Sequence[Operator] = OPERATORS) -> Iterator[Made]:
    """Make every mutant of one trial; what equals the original or an earlier one is excluded."""
    seen: list[tuple[str, Trace]] = [("", subject.trace)]
    for operator in operators:
        for mutant in operator.breaks(subject):
            same = next((name for name, trace in seen if trace == mutant.trace), None)
            if same is not None and not mutant.excluded:
                why = f"{same} makes the same mutant" if same else "nothing changed"
                mutant = replace(mutant, excluded=why)
            seen.append((operator.name, mutant.trace))
            yield Made(operator, mutant)


def chosen_among(made: Sequence[Made], limit: int, chance: random.Random) -> list[Made]:
    """Keep at most ``limit`` mutants, of each operator in turn, in their own order."""
    if len(made) <= limit:
        return list(made)
    by_operator: dict[str, list[int]] = {}
    for position, one in enumerate(made):
        by_operator.setdefault(one.operator.name, []).append(position)
    for positions in by_operator.values():
        chance.shuffle(positions)
    ranked = sorted(
        (rank, number, position)
        for number, positions in enumerate(by_operator.values())
        for rank, position in enumerate(positions)
    )
    return [made[position] for position in sorted(each[2] for each in ranked[:limit])]
