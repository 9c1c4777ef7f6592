"""What a worker is told: one trial, as plain values."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.ledger import JSON
    from evalkit.outside.plan import WorldPlan
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
class Deliver(_Plain):
    """A turn that reaches the agent as a request, or for the second time."""

    text: str
    """What the user says with it."""
    update_id: int = 0
    """Number of the turn that it first was, from 1."""
    is_again: bool = False
    """Whether it was delivered before."""
    method: str = ""
    """Empty: the agent is called with the text."""
    address: str = ""
    """A path of the agent's own, or the absolute address that it polls."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    n_replies: int = 0
    """The turn is not over before so many came out."""

    @property
    def request(self) -> str:
        """Method and address; empty where the agent is called."""
        return f"{self.method} {self.address}".strip()

    @property
    def told(self) -> Mapping[str, JSON]:
        """How the event of the turn tells it."""
        return {
            "deliver": self.request or None,
            "update_id": self.update_id if self.method else None,
            "redelivered": self.update_id if self.is_again else None,
        }


@dataclass(frozen=True, slots=True)
class Restart(_Plain):
    """A turn in which the agent's process ends, and another one begins."""

    kind: str
    """``kill`` or ``graceful``."""


@dataclass(frozen=True, slots=True)
class Life(_Plain):
    """What the next process of a trial must know of those before it."""

    number: int
    """From 1: the first process of a trial goes on with nothing."""
    first_turn: int
    """Where to go on, from 0."""
    events: bytes
    """The ledger so far, as lines."""
    estate: bytes
    """What the process before has left; see :mod:`evalkit.trial.lives`."""
    n_settled: int
    """Events of those that the scripted model goes on from; what is held again does not count."""
    is_again: bool = False
    """Whether the first turn was begun before, and is held from its beginning."""

    @property
    def n_begun(self) -> int:
        """How many turns have begun before."""
        return self.first_turn + self.is_again


@dataclass(frozen=True, slots=True)
class DatabaseLook(_Plain):
    """A query that is asked after a turn, or at the end."""

    database: str
    query: str
    turn: int | None = None
    """From 0; ``None`` for the end."""


@dataclass(frozen=True, slots=True)
class DatabaseLooks(_Plain):
    """What is watched of the trial's databases."""

    names: tuple[str, ...] = ()
    """Databases that there are or should be, by their path in the working directory."""
    queries: tuple[DatabaseLook, ...] = ()


@dataclass(frozen=True, slots=True)
class Staging(_Plain):
    """What the contract lane puts around an agent."""

    scripts: tuple[Mapping[str, Any], ...]
    """The scripted model, turn by turn, as plain data."""
    room: Room
    port: int
    """Where the scripted model listens; 0 for a free port."""
    polls: Mapping[str, bytes] = field(default_factory=dict)
    """Requests by which the agent asks for its turns -> what answers one that comes too early."""
    reply_from: tuple[str, str] | None = None
    """Which requests of the agent's are replies, and the field that holds the text."""
    databases: DatabaseLooks | None = None
    """``None`` where nobody watches databases."""
    world: WorldPlan | None = None
    """What answers requests to the outside; ``None`` where nothing does."""


@dataclass(frozen=True, slots=True)
class TrialOrder(_Plain):
    """One trial to run."""

    scenario: str
    trial: int
    turns: tuple[str | Advance | Deliver | Restart, ...]
    """What the user says, or what happens, turn by turn."""
    lane: str = "live"
    seed: int = 0
    """The trial's own, see :func:`trial_seed`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the scenario adds to the agent's environment."""
    deadline_s: float = 60.0
    staging: Staging | None = None
    """``None`` outside the contract lane."""
    life: Life | None = None
    """``None`` for the first process of a trial."""
    die_after: int | None = None
    """Event after which the process is killed, by its number; ``None``: it is not."""

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
