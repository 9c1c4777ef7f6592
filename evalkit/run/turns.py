"""From the turns of a scenario to what a worker is told of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from evalkit.ledger import encode
from evalkit.suite import (
    AdvanceTurn,
    DeliverTurn,
    Delivery,
    RedeliverTurn,
    RestartTurn,
    Scenario,
    Turn,
    UserTurn,
    filled,
)
from evalkit.trial import Advance, Deliver, Restart

OrderedTurn: TypeAlias = str | Advance | Deliver | Restart


def turns_of(scenario: Scenario, folder: Path) -> tuple[OrderedTurn, ...]:
    """Write the turns of a scenario down as they are brought to the agent.

    Parameters
    ----------
    scenario
        What should happen.
    folder
        Where its fixtures are.
    """
    return tuple(_Turns(scenario, folder).all())


def polls_of(scenario: Scenario) -> Mapping[str, bytes]:
    """Give the requests by which an agent asks for turns, each with what says "nothing yet"."""
    polled = [each for each in scenario.deliveries if each.is_polled]
    return {each.request: json.dumps(each.idle).encode("ascii") for each in polled}


class _Turns:
    """Writes the turns of one scenario."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self._scenario = scenario
        self._read: Callable[[str], bytes] = lambda name: (folder / name).read_bytes()

    def all(self) -> Iterator[OrderedTurn]:
        """Give each turn; its update bears its number."""
        for number, turn in enumerate(self._scenario.turns, start=1):
            yield self._turn(turn, number)

    def _turn(self, turn: Turn, number: int) -> OrderedTurn:
        match turn:
            case UserTurn() if self._scenario.deliver is None:
                return turn.user
            case UserTurn() | DeliverTurn():
                return self._delivered(turn, number, now=turn)
            case RedeliverTurn():
                earlier = self._scenario.turns[turn.redeliver - 1]
                return self._delivered(earlier, turn.redeliver, now=turn)
            case AdvanceTurn():
                return Advance(turn.advance_s)
            case RestartTurn():
                return Restart(turn.restart)

    def _delivered(self, turn: Turn, number: int, *, now: Turn) -> Deliver:
        """Write a turn as it is delivered, now or (by another turn) again."""
        is_again = now is not turn
        delivery, text = self._scenario.deliver, ""
        if isinstance(turn, DeliverTurn):
            delivery = turn.deliver
            text = _shown(delivery)
        elif isinstance(turn, UserTurn):
            text = turn.user
        if delivery is None:  # called with the same words once more
            return Deliver(text, number, is_again)
        sent = filled(delivery, text=text, update_id=number, read=self._read)
        return Deliver(
            text,
            number,
            is_again,
            sent.method,
            sent.address,
            dict(sent.headers),
            sent.body,
            _awaited(now, is_again=is_again) if delivery.until == "reply" else 0,
        )


def _awaited(turn: Turn, *, is_again: bool) -> int:
    """Say how many replies to wait for: as many as are expected, or one to what is new."""
    expected = turn.expect.replies if turn.expect is not None else None
    if expected is not None:
        return expected.min
    return 0 if is_again else 1


def _shown(delivery: Delivery) -> str:
    """Give what a delivery of another shape says, in place of a user's words."""
    if delivery.body_file is not None:
        return f"(the file {delivery.body_file})"
    if delivery.text is not None:
        return delivery.text
    given = "json_body" in delivery.model_fields_set
    return encode(delivery.json_body).decode().strip() if given else ""
