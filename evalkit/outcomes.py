"""What the trials of one scenario add up to, with the reasons in words.

Everything that shows a run scenario by scenario - JUnit XML, GitHub, JSON, pytest -
says the same of it, because it says what stands here. Rates over scenarios and
their intervals are :mod:`evalkit.stats`'.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalkit.grade import REASON_CODES, Grade, Status, worst
from evalkit.results import PlannedScenario, TrialRecord

if TYPE_CHECKING:
    from evalkit.results import Run

MAX_REASONS: Final = 20_000
"""Characters of a scenario's reasons that are shown; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scenario of a run, with all its planned trials."""

    planned: PlannedScenario
    records: tuple[TrialRecord, ...]

    @property
    def scenario(self) -> str:
        """The scenario's id."""
        return self.planned.id

    @property
    def status(self) -> Status:
        """Failed if any trial failed, else incomplete if any is, else passed."""
        return worst(record.status for record in self.records) if self.records else "incomplete"

    def count(self, status: Status) -> int:
        """Count the trials of a status."""
        return sum(record.status == status for record in self.records)

    @property
    def rate(self) -> float | None:
        """Passed of those that were measured; ``None`` if none was."""
        n_passed, n_failed = self.count("passed"), self.count("failed")
        return n_passed / (n_passed + n_failed) if n_passed + n_failed else None

    @property
    def duration_s(self) -> float | None:
        """What its trials took together; ``None`` where that is not known of all."""
        known = [record.duration_s for record in self.records if record.duration_s is not None]
        return sum(known) if known and len(known) == len(self.records) else None

    @property
    def deciding(self) -> TrialRecord | None:
        """The first trial that has the scenario's status."""
        return next((record for record in self.records if record.status == self.status), None)

    @property
    def headline(self) -> str:
        """What is wrong, in one line; empty if every trial passed."""
        if self.status == "passed":
            return ""
        reason = "it has no trial" if self.deciding is None else _first_line(_reason(self.deciding))
        return f"{self._how_many}: {reason}" if len(self.records) > 1 else reason

    @property
    def reasons(self) -> str:
        """Everything that is wrong, trial by trial; trials of which the same is said together."""
        said: dict[tuple[Status, tuple[str, ...]], list[int]] = {}
        for record in self.records:
            if record.status != "passed":
                said.setdefault((record.status, tuple(_said_of(record))), []).append(record.trial)
        parts = [
            "\n".join(self._part(*key, trials=trials)) for key, trials in said.items()
        ]  # fmt: skip
        return _clipped("\n".join(parts))

    @property
    def _how_many(self) -> str:
        n, n_failed, n_incomplete = (
            len(self.records),
            self.count("failed"),
            self.count("incomplete"),
        )
        if not n_failed:
            return f"{n_incomplete} of {n} trials incomplete"
        rest = f", {n_incomplete} incomplete" if n_incomplete else ""
        return f"{n_failed} of {n} trials failed{rest}"

    def _part(
        self, status: Status, lines: Sequence[str], *, trials: Sequence[int]
    ) -> Iterator[str]:
        if len(self.records) == 1:
            yield from lines
            return
        word = "trial" if len(trials) == 1 else "trials"
        yield f"{word} {', '.join(map(str, trials))} {status}:"
        yield from (f"  {line}" for line in "\n".join(lines).splitlines())


def outcomes(run: Run) -> tuple[Outcome, ...]:
    """Sum up a run by scenario, in plan order.

    Parameters
    ----------
    run
        As from :func:`evalkit.results.load_run`.
    """
    by_scenario: dict[str, list[TrialRecord]] = {planned.id: [] for planned in run.manifest.plan}
    for record in run.records:
        by_scenario[record.scenario].append(record)
    return tuple(
        Outcome(planned, tuple(by_scenario[planned.id])) for planned in run.manifest.plan
    )  # fmt: skip


def show_command(run: Run, outcome: Outcome) -> str:
    """Give the command that shows the trial which decided an outcome."""
    deciding = outcome.deciding
    trial = [str(deciding.trial)] if deciding is not None and deciding.trial else []
    return shlex.join(["evalkit", "show", str(run.folder), outcome.scenario, *trial])


def _said_of(record: TrialRecord) -> Iterator[str]:
    """Give the trial's own reason, then what each grader that did not pass it says."""
    told = dict.fromkeys((_reason(record), *map(_grade_reason, _not_passed(record))))
    yield from (line for line in told if line)


def _not_passed(record: TrialRecord) -> list[Grade]:
    """Give the grades that are not passed: failed ones first."""
    found = [grade for grade in record.grades if grade.status != "passed"]
    return sorted(found, key=lambda grade: grade.status != "failed")


def _reason(record: TrialRecord) -> str:
    """Give the reason of a trial; never an empty one for a trial that is not passed."""
    if record.reason.strip():
        return record.reason.strip()
    return REASON_CODES.get(record.reason_code, "") or f"{record.status}, no reason was given"


def _grade_reason(grade: Grade) -> str:
    return f"{grade.grader}: {grade.reason or REASON_CODES[grade.reason_code]}".strip()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _clipped(text: str) -> str:
    left_out = len(text) - MAX_REASONS
    return text if left_out <= 0 else f"{text[:MAX_REASONS]}\n... and {left_out:,} more characters"
