"""The travel suites in the contract lane: the good agent passes, each planted mistake is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("anthropic", reason="needs the extra `examples`")

import evalkit as ek
from evalkit import shipped
from evalkit.examples.travel import bugs

SUITES = ("travel", "travel_faults")


class Catch(NamedTuple):
    """Where a mistake is caught."""

    mistake: str
    scenario: str
    by: str
    reason: str


def documented_catches() -> Iterator[Catch]:
    """Read the table in the docstring of the planted mistakes."""
    lines = (bugs.__doc__ or "").splitlines()
    border, *_ = borders = [line for line in lines if line.startswith("====")]
    assert len(borders) == 3
    columns = [slice(*column.span()) for column in re.finditer("=+", border)]
    columns[-1] = slice(columns[-1].start, None)
    body = lines[lines.index(border, lines.index(border) + 1) + 1 :]
    for line in body[: body.index(border)]:
        yield Catch(*(line[column].strip() for column in columns))


CATCHES = tuple(documented_catches())
MISTAKES = tuple(mistake.__name__ for mistake in bugs.PLANTED)


def run(suite: str, agent: str, out: Path) -> ek.Run:
    """Run an agent through a suite that ships."""
    reference = f"evalkit.examples.travel{agent}"
    return ek.run_suite(shipped.suite(suite), agent=reference, lane="contract", out=out)


@pytest.mark.parametrize(
    ("suite", "agent"),
    [("travel", ":agent"), ("travel", ":agent_streaming"), ("travel_faults", ":agent_streaming")],
)
def test_good_agent_passes_everything(suite: str, agent: str, tmp_path: Path) -> None:
    """Streaming or not, the agent solves the golden five, and streaming survives every fault."""
    found = {record.scenario: record.reason for record in run(suite, agent, tmp_path).records}
    assert len(found) == {"travel": 5, "travel_faults": 14}[suite]
    assert set(found.values()) == {""}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_caught_where_and_as_documented(mistake: str, tmp_path: Path) -> None:
    """Exactly the documented scenarios fail, each by the named grader and for the named reason."""
    expected = {catch.scenario: catch for catch in CATCHES if catch.mistake == mistake}
    runs = [run(suite, f".bugs:{mistake}", tmp_path) for suite in SUITES]
    records = {record.scenario: record for run in runs for record in run.records}
    wrong = {name: record for name, record in records.items() if record.status != "passed"}
    assert wrong.keys() == expected.keys(), {name: one.reason for name, one in wrong.items()}
    for scenario, catch in expected.items():
        record = wrong[scenario]
        assert record.status == "failed"
        told = {grade.grader: grade.reason for grade in record.grades if grade.passed is False}
        told[record.reason_code] = record.reason
        assert catch.reason in told.get(catch.by, f"{catch.by} did not catch it: {told}")


def test_table_names_every_mistake() -> None:
    """The table and the module agree, and there are at least ten mistakes."""
    assert {catch.mistake for catch in CATCHES} == set(MISTAKES)
    assert len(MISTAKES) == len(set(MISTAKES)) >= 10
    assert len({(catch.mistake, catch.scenario) for catch in CATCHES}) == len(CATCHES)


def test_every_journey_with_a_fault_catches_a_mistake() -> None:
    """A scenario that catches nothing would be a decoration."""
    scenarios = {scenario.id for scenario in ek.load_suite(shipped.suite("travel_faults"))}
    assert scenarios <= {catch.scenario for catch in CATCHES}
