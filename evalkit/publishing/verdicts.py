"""A gate's verdict, as far as it is shown here; and the runs that it must come with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evalkit.results import Run


class GateVerdict(Protocol):
    """What a gate decided."""

    @property
    def verdict(self) -> str:
        """``PASS``, ``FAIL``, ``INCONCLUSIVE`` or ``INVALID``."""

    @property
    def reasons(self) -> Sequence[object]:
        """Why, in sentences."""

    @property
    def exit_code(self) -> int:
        """0 if nothing is blocked, 1 failed, 2 could not be measured."""


def some_runs(runs: Iterable[Run] | Run) -> list[Run]:
    """Give the runs as a list.

    Raises
    ------
    ValueError
        If there is none: a file without a test looks like a pass.
    """
    found = list(runs) if isinstance(runs, Iterable) else [runs]
    if not found:
        raise ValueError("runs == [], must be at least one: nothing measured is no pass")
    return found
