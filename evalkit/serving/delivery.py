"""What goes back over a connection, as bytes and the way in which they end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Ending = Literal["whole", "clean", "abrupt", "hang"]
"""How an answer ends: as it should; early, but as if it were the end; with the connection
closed in the middle; never."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An answer, ready to be sent."""

    status: int = 200
    """0 for none."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    frames: tuple[bytes, ...] | None = None
    """The events of a stream, in place of a body."""
    ending: Ending = "whole"
