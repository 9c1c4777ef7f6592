"""What the gate is asked to hold a run to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from evalkit.errors import UsageError

OnInconclusive = Literal["warn", "fail"]
FloorOn = Literal["pass_rate", "mean_grade"]

MAX_MISSING: Final = 0.05
"""Share of the planned trials that may be without a result."""
MIN_COVERAGE: Final = 0.9
"""Share of all scenarios that must be in the run and in the baseline alike."""
MIN_SCENARIOS: Final = 10
"""With fewer, an interval says little about what users may bring."""
MIN_BASELINE_TRIALS: Final = 3
"""A baseline pools at least so many runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the gate holds a run to; the arguments of :func:`evalkit.gating.gate`.

    Raises
    ------
    UsageError
        If a number or a word cannot mean anything.
    """

    floor: float | None = None
    floor_proven: bool = False
    floor_on: FloorOn = "pass_rate"
    margin: float = 0.05
    confidence: float = 0.95
    looks: int = 1
    on_inconclusive: OnInconclusive = "warn"
    accept: tuple[str, ...] = ()
    gate_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.floor is not None and not 0 <= self.floor <= 1:
            raise UsageError(f"floor is {self.floor!r}; it is a rate, such as 0.90 for 90 %")
        if not 0 < self.margin < 1:
            raise UsageError(f"margin is {self.margin!r}; it is a drop of a rate, such as 0.05")
        if not 0.5 < self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence!r}; it is a level, such as 0.95")
        if not self.looks >= 1:  # nan is not less, either
            raise UsageError(f"looks is {self.looks!r}; it counts how often one looks: 1, 2 ...")
        if self.floor_proven and self.floor is None:
            raise UsageError("floor_proven says how to hold a floor: give floor, such as 0.90, too")
        _one_of("on_inconclusive", self.on_inconclusive, get_args(OnInconclusive))
        _one_of("floor_on", self.floor_on, get_args(FloorOn))

    @property
    def level(self) -> float:
        """Confidence of each interval; with several looks, Bonferroni's."""
        return 1 - (1 - self.confidence) / self.looks


def _one_of(name: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise UsageError(f"{name} is {value!r}; it can be {' or '.join(words)}")
