"""What a trial is told of the world around its agent, as plain values that travel.

The runner writes it (it reads the files and issues the certificates); the trial's
process serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


class _Plain:
    """Travels as the bare values: what dataclasses do by themselves takes far longer."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        values: Any = self
        return type(self), tuple(getattr(self, one.name) for one in fields(values))


@dataclass(frozen=True, slots=True)
class Answer(_Plain):
    """What a fixture answers once, or several times."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    fault: str = ""
    """``disconnect`` or ``timeout``: then nothing is answered."""
    delay_s: float = 0.0
    """How long it waits before it answers."""
    times: int | None = None
    """How many requests it answers; ``None``: one, and the last all that follow."""


@dataclass(frozen=True, slots=True)
class Fixture(_Plain):
    """The answers to one kind of request."""

    request: str
    """``METHOD address``, as the suite writes it."""
    answers: tuple[Answer, ...]


class Leaf(NamedTuple):
    """A certificate that was issued beforehand, with its key."""

    hosts: frozenset[str]
    pem: bytes
    """Private key and certificate."""


NO_LEAF = Leaf(frozenset(), b"")


@dataclass(frozen=True, slots=True)
class WorldPlan(_Plain):
    """The world of one trial."""

    fixtures: tuple[Fixture, ...] = ()
    allow: tuple[str, ...] = ()
    """Hosts that may be asked without failing the trial: ``host`` or ``host:port``."""
    leaf: Leaf = NO_LEAF
    """For the hosts that are named."""
    authority: tuple[bytes, bytes] = (b"", b"")
    """Certificate and key that sign for all other hosts. The agent's process could read
    the key: it is made for one run, and nobody but its trials trusts it."""
