"""What a worker is told: one trial, as plain values."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.sandbox.room import Room


class _Plain:
    """Travels as the bare values: what dataclasses do by themselves takes far longer."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        values: Any = self
        return type(self), tuple(getattr(self, one.name) for one in fields(values))


@dataclass(frozen=True, slots=True)
class Advance:
    """A turn in which nobody speaks: the clock moves forward."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Staging(_Plain):
    """What the contract lane puts around an agent."""

    scripts: tuple[Mapping[str, Any], ...]
    """The scripted model, turn by turn, as plain data."""
    room: Room
    port: int
    """Where the scripted model listens; 0 for a free port."""


@dataclass(frozen=True, slots=True)
class TrialOrder(_Plain):
    """One trial to run."""

    scenario: str
    trial: int
    turns: tuple[str | Advance, ...]
    """What the user says, or what happens, turn by turn."""
    lane: str = "live"
    seed: int = 0
    """The trial's own, see :func:`trial_seed`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the scenario adds to the agent's environment."""
    deadline_s: float = 60.0
    staging: Staging | None = None
    """``None`` outside the contract lane."""

    def to_bytes(self) -> bytes:
        """Pack the order for the trip to the worker."""
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def from_bytes(payload: bytes) -> TrialOrder:
        """Unpack an order; the bytes come from :meth:`to_bytes` in our own parent."""
        order = pickle.loads(payload)  # noqa: S301 - our own parent's bytes, over a private socket
        assert isinstance(order, TrialOrder)
        return order


def trial_seed(seed: int, scenario: str, trial: int) -> int:
    """Derive the seed of one trial from the run's.

    Returns
    -------
    int
        Below 2**63, the same on every machine.

    Examples
    --------
    >>> trial_seed(7, "weather-only", 0) == trial_seed(7, "weather-only", 1)
    False
    """
    text = f"{seed}\n{scenario}\n{trial}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1
