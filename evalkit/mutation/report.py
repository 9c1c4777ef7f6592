"""What mutation testing found: the score, the survivors, and what was not measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalkit.ledger import JSON
from evalkit.mutation.records import KINDS, Kind, LeftOut, MutantResult, Status

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class MutationReport:
    """Which mutants of a suite's passing trials were noticed, and which survived."""

    suite: str
    run_id: str
    lane: str
    seed: int
    scenarios: tuple[str, ...]
    """Those of the suite."""
    results: tuple[MutantResult, ...]
    """One a mutant."""
    left_out: tuple[LeftOut, ...] = ()
    """Scenarios without a trial that passes: nothing is known of them."""
    untried: Mapping[str, int] = field(default_factory=dict)
    """By scenario, the mutants that ``max_mutants`` left out."""

    @property
    def n_killed(self) -> int:
        """Mutants that a grader noticed."""
        return self._count("killed")

    @property
    def n_survived(self) -> int:
        """Mutants that still passed."""
        return self._count("survived")

    @property
    def n_incomplete(self) -> int:
        """Mutants of which no grader could tell."""
        return self._count("incomplete")

    @property
    def n_excluded(self) -> int:
        """Mutants that nobody should notice; their reasons stand in the frame."""
        return self._count("excluded")

    def _count(self, status: Status) -> int:
        return sum(result.status == status for result in self.results)

    @property
    def score(self) -> float:
        """Killed over killed and survived; NaN where neither was measured."""
        return _share(self.n_killed, self.n_killed + self.n_survived)

    @property
    def score_low(self) -> float:
        """The same, with incomplete mutants counted as survivors: what a threshold is held to."""
        if not self.n_killed + self.n_survived:
            return float("nan")
        return _share(self.n_killed, self.n_killed + self.n_survived + self.n_incomplete)

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """The holes of the suite."""
        return tuple(result for result in self.results if result.status == "survived")

    def reaches(self, min_score: float) -> bool:
        """Say whether the score, incomplete mutants counted against it, is high enough."""
        return self.score_low >= min_score

    def counts(self) -> dict[tuple[str, Kind], Counter[Status]]:
        """Count the statuses by scenario and kind."""
        found: dict[tuple[str, Kind], Counter[Status]] = {}
        for result in self.results:
            found.setdefault((result.scenario, result.kind), Counter())[result.status] += 1
        return found

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that occur, in order."""
        seen = {result.kind for result in self.results}
        return tuple(kind for kind in KINDS if kind in seen)

    def to_frame(self) -> pd.DataFrame:
        """Give one row a mutant.

        Returns
        -------
        DataFrame
            ``scenario``, ``trial``, ``operator``, ``kind``, ``what`` was broken,
            ``status`` (``killed``, ``survived``, ``incomplete``, ``excluded``),
            ``reason`` (who noticed; why nobody could or should), ``suggestion`` (YAML)
            and ``where`` it belongs, both empty unless it survived.
        """
        import pandas as pd

        rows = [_row(result) for result in self.results]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def to_json(self) -> dict[str, JSON]:
        """Give everything as a JSON object; a score that nobody knows is ``None``."""
        measured = bool(self.n_killed + self.n_survived)
        return {
            "suite": self.suite,
            "run_id": self.run_id,
            "lane": self.lane,
            "seed": self.seed,
            "score": self.score if measured else None,
            "score_low": self.score_low if measured else None,
            "n_killed": self.n_killed,
            "n_survived": self.n_survived,
            "n_incomplete": self.n_incomplete,
            "n_excluded": self.n_excluded,
            "n_untried": sum(self.untried.values()),
            "mutants": [result.to_json() for result in self.results],
            "left_out": [one._asdict() for one in self.left_out],
            "untried": dict(self.untried),
        }

    def __str__(self) -> str:
        from evalkit.mutation.wording import report_text

        return report_text(self)

    def _repr_html_(self) -> str:
        from evalkit.mutation.wording import report_html

        return report_html(self)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


_COLUMNS = (
    "scenario", "trial", "operator", "kind", "what", "status", "reason", "suggestion", "where",
)  # fmt: skip


def _row(result: MutantResult) -> dict[str, JSON]:
    made = result.suggestion
    return {
        **{name: getattr(result, name) for name in _COLUMNS[:-2]},
        "suggestion": made.text if made else "",
        "where": made.where if made else "",
    }
