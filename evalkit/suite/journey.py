"""The turns of a journey: what happens one after the other in a scenario.

``turns`` is numbered from 1, and every entry counts, also one that only moves the
clock. Each entry may carry the model script, the expectations and the bans for
what it sets off.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from evalkit.suite.bans import Forbid
from evalkit.suite.delivery import Delivery
from evalkit.suite.expectations import Expect
from evalkit.suite.fields import Duration, Position, SuiteModel, one_of_words
from evalkit.suite.model_script import ModelScript


class TurnBase(SuiteModel):
    """What each entry of ``turns`` can carry."""

    model: ModelScript | None = None
    """``None``: nothing is scripted, so only the live lane can run it."""
    expect: Expect | None = None
    forbid: Forbid | None = None


class UserTurn(TurnBase):
    """The user says something."""

    user: str


class DeliverTurn(TurnBase):
    """A request of any shape reaches the agent: an upload, say."""

    deliver: Delivery


class AdvanceTurn(TurnBase):
    """The clock moves forward."""

    advance_s: Duration = Field(alias="advance")


class RestartTurn(TurnBase):
    """The agent's process ends and starts again; its files and database stay.

    ``kill`` gives it no chance to tidy up, ``graceful`` lets it close.
    """

    restart: Literal["kill", "graceful"]


class RedeliverTurn(TurnBase):
    """The update of an earlier turn arrives again."""

    redeliver: Position
    """Position of that turn in ``turns``; the first is 1."""


_TURN_KINDS: dict[type, str] = {
    UserTurn: "<user>",
    DeliverTurn: "<deliver>",
    AdvanceTurn: "<advance>",
    RestartTurn: "<restart>",
    RedeliverTurn: "<redeliver>",
}
TURN_KEYS = tuple(kind.strip("<>") for kind in _TURN_KINDS.values())


def _turn_kind(turn: Any) -> str | None:
    if not isinstance(turn, dict):
        return _TURN_KINDS.get(type(turn))
    return next((f"<{key}>" for key in TURN_KEYS if key in turn), None)


Turn = Annotated[
    Annotated[UserTurn, Tag("<user>")]
    | Annotated[DeliverTurn, Tag("<deliver>")]
    | Annotated[AdvanceTurn, Tag("<advance>")]
    | Annotated[RestartTurn, Tag("<restart>")]
    | Annotated[RedeliverTurn, Tag("<redeliver>")],
    Discriminator(
        _turn_kind,
        custom_error_type="no_turn",
        custom_error_message=f"a turn is a mapping with one of the keys {one_of_words(TURN_KEYS)}",
    ),
]
