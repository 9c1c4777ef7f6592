"""Canaries in what commands print: named, unless the user wants to see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from evalkit.errors import ReportError, UsageError

if TYPE_CHECKING:
    from evalkit.ledger import Event
    from evalkit.results import Run
    from evalkit.scanning import Hiding

reveal_option = click.option(
    "--reveal-canaries", "reveal", is_flag=True, help="Print the values of canaries as they are."
)


def hiding_of(runs: Sequence[Run], *, reveal: bool) -> Hiding:
    """Give what hides the canaries of some runs; nothing is hidden where all is to be seen.

    Raises
    ------
    UsageError
        If nobody knows what to hide.
    """
    from evalkit.canaries import Canaries, canaries_of

    if reveal:
        return Canaries().hiding
    canaries = canaries_of(runs)
    if canaries.unknown:
        raise UsageError(
            f"{canaries.unknown}, so nobody can tell what to hide; put the suite back, or "
            "look at everything as it is with --reveal-canaries"
        )
    return canaries.hiding


def hidden_events(events: Iterable[Event], hiding: Hiding) -> list[Event]:
    """Hide values in the events of a ledger, before anything is cut or put together."""
    return [
        event._replace(data=hiding.json(event.data), real=hiding.json(event.real))
        for event in events
    ]


def checked(text: str, hiding: Hiding) -> str:
    """Give a text back, if no value is left in it that could not be hidden.

    Raises
    ------
    ReportError
        If one is; the message names it.
    """
    if left := hiding.found(text):
        raise ReportError(
            f"the output would hold {left} in a way that cannot be hidden; it was not printed "
            "(--reveal-canaries prints everything as it is)"
        )
    return text
