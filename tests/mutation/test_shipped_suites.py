"""The shipped suites notice what is broken; what they do not notice is explained here."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("anthropic", reason="needs the extra `examples`")

from evalkit import shipped
from evalkit.mutation import mutate_suite

EXPLAINED = {
    "travel": {
        ("weather-gate-book", "unexpected-tool"): "looking for flights harms nobody",
        ("search-before-book", "change-id"): "which flight is the cheapest, only a search knows",
        ("ambiguous-needs-search", "contradict-reply"): "nobody says that options are no options",
    },
    "travel_faults": {},
    "career": {},
    "career_polling": {},
}
"""By suite, scenario and operator, why a survivor is no hole."""


@pytest.mark.parametrize("name", EXPLAINED)
def test_shipped_suite_notices_what_is_broken(name: str, tmp_path: Path) -> None:
    """At least 95% of the mutants are noticed, and each survivor is explained."""
    report = mutate_suite(shipped.suite(name), out=tmp_path)
    assert report.left_out == ()
    assert report.untried == {}
    assert report.n_incomplete == 0
    assert report.lane == "contract"
    assert report.n_killed + report.n_survived > 30
    assert report.reaches(0.95), str(report)
    survivors = [(one.scenario, one.operator) for one in report.survivors]
    assert sorted(survivors) == sorted(EXPLAINED[name]), str(report)
