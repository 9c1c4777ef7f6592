"""What the gate says: one verdict, and the checks that it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from evalkit.ledger import JSON

if TYPE_CHECKING:
    import pandas as pd

Outcome: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE", "INVALID"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("FAIL", "INVALID", "INCONCLUSIVE", "PASS")
"""Gravest first: a fault that was seen is not undone by what could not be measured."""

_EXIT_CODES: Final[Mapping[Outcome, int]] = {"PASS": 0, "FAIL": 1, "INVALID": 2, "INCONCLUSIVE": 2}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the gate looked at, and what came out."""

    name: str
    outcome: Outcome
    reason: str
    """A sentence for people."""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    """The interval that decided, where one did."""
    limit: float | None = None
    """What the interval or the estimate was held against."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's decision about one run.

    Examples
    --------
    >>> verdict = Verdict("FAIL", run="r", checks=(Check("floor", "FAIL", "below the floor"),))
    >>> verdict.passed, verdict.exit_code, verdict.reasons
    (False, 1, ('below the floor',))
    """

    verdict: Outcome
    checks: tuple[Check, ...]
    """Everything that was looked at, gravest first."""
    run: str = ""
    suite: str = ""
    lane: str = ""
    baseline: str = ""
    """Name of what the run was compared with; empty without."""
    resolution: str = ""
    """What so many scenarios and trials can detect at all."""
    notes: tuple[str, ...] = ()
    """What one should know, and what does not decide."""
    strict: bool = False
    """Whether an inconclusive verdict fails the build."""

    @property
    def passed(self) -> bool:
        """Whether the verdict is PASS; an inconclusive run has not passed."""
        return self.verdict == "PASS"

    @property
    def exit_code(self) -> int:
        """Exit code of ``evalkit gate``: 0 passed, 1 failed, 2 could not be measured."""
        if self.verdict == "INCONCLUSIVE" and not self.strict:
            return 0
        return _EXIT_CODES[self.verdict]

    @property
    def reasons(self) -> tuple[str, ...]:
        """What decided, as sentences."""
        return tuple(check.reason for check in self.checks if check.outcome == self.verdict)

    @property
    def deciding(self) -> Check | None:
        """The check whose interval decided; ``None`` where none did."""
        decisive = (check for check in self.checks if check.outcome == self.verdict)
        return next((check for check in decisive if check.low is not None), None)

    def to_frame(self) -> pd.DataFrame:
        """Give the checks as a frame.

        Returns
        -------
        pandas.DataFrame
            Columns ``check``, ``outcome``, ``estimate``, ``low``, ``high``,
            ``limit`` (rates and differences as fractions, NaN where there is
            none) and ``reason``; gravest first.
        """
        import pandas as pd

        numbers = {
            name: pd.Series([getattr(check, name) for check in self.checks], dtype="float64")
            for name in ("estimate", "low", "high", "limit")
        }
        return pd.DataFrame(
            {
                "check": [check.name for check in self.checks],
                "outcome": [check.outcome for check in self.checks],
                **numbers,
                "reason": [check.reason for check in self.checks],
            }
        )

    def to_json(self) -> dict[str, JSON]:
        """Give everything as a JSON object, for scripts."""
        told = asdict(self)
        first = ("verdict", "exit_code", "reasons")
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "reasons": list(self.reasons),
            **{name: value for name, value in told.items() if name not in first},
            "checks": [asdict(check) for check in self.checks],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from evalkit.gating.wording import verdict_text

        return verdict_text(self)

    def _repr_html_(self) -> str:
        from evalkit.markup import join, table, tag

        title = tag("p", tag("strong", self.verdict), f" {self.run} {self.resolution}")
        return str(join([title, table(self.to_frame()), *(tag("p", n) for n in self.notes)]))


def worst_outcome(checks: Sequence[Check]) -> Outcome:
    """Give the gravest outcome of some checks."""
    return min((check.outcome for check in checks), key=OUTCOMES.index)


def gravest_first(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Sort checks by what matters most, else as they were made."""
    return tuple(sorted(checks, key=lambda check: OUTCOMES.index(check.outcome)))


def as_floats(*values: Any) -> tuple[float | None, ...]:
    """Give numbers of a frame as plain ones; NaN as ``None``."""
    return tuple(None if value != value else float(value) for value in values)
