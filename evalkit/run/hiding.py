"""Records that name canaries, and never say what they are.

Graders and endings quote what an agent said. All that others read of a run - reports,
JUnit, summaries, baselines - begins with its records, so values are hidden there; the
ledgers stay as they are, for they are the evidence.
"""

from __future__ import annotations

from dataclasses import replace

from evalkit.grade import Grade
from evalkit.graders import planted_in
from evalkit.results import TrialRecord
from evalkit.scanning import Hiding, hiding_for
from evalkit.suite import Scenario


def without_values(record: TrialRecord, scenario: Scenario) -> TrialRecord:
    """Hide the values of a scenario's canaries in what is said of a trial."""
    if not scenario.canaries:
        return record
    hiding = hiding_for(planted_in(scenario))
    return replace(
        record,
        reason=hiding.text(record.reason),
        grades=tuple(_hidden(grade, hiding) for grade in record.grades),
    )


def _hidden(grade: Grade, hiding: Hiding) -> Grade:
    return replace(
        grade, reason=hiding.text(grade.reason), evidence=hiding.json(dict(grade.evidence))
    )
