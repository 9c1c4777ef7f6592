"""The travel suites in the contract lane: the good agent passes, each planted mistake is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

pytest.importorskip("anthropic", reason="needs the extra `examples`")

import evalkit as ek
from evalkit import shipped
from evalkit.examples.travel import bugs
from evalkit.results import TrialRecord

SUITES = ("travel", "travel_faults")

# One run for all mistakes: each trial is told by its environment which one it makes.
MISTAKEN = """\
import os

from evalkit.examples.travel import bugs


def agent():
    return getattr(bugs, os.environ["TRAVEL_MISTAKE"])()
"""


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


def with_mistakes(suite: str, folder: Path) -> Path:
    """Write a suite with a copy of every scenario of a shipped one for each mistake."""
    told: dict[str, Any] = yaml.safe_load(shipped.suite(suite).read_text())
    copies = [
        {
            **scenario,
            "id": f"{mistake}--{scenario['id']}",
            "env": {**scenario.get("env", {}), "TRAVEL_MISTAKE": mistake},
        }
        for mistake in MISTAKES
        for scenario in told["scenarios"]
    ]
    (folder / "mistaken.py").write_text(MISTAKEN)
    path = folder / f"{suite}.yaml"
    path.write_text(json.dumps({**told, "agent": "mistaken:agent", "scenarios": copies}))
    return path


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, TrialRecord]]:
    """Give, by mistake and scenario, what became of the trial."""
    folder = tmp_path_factory.mktemp("mistakes")
    records: dict[str, dict[str, TrialRecord]] = {mistake: {} for mistake in MISTAKES}
    for suite in SUITES:
        for record in ek.run_suite(with_mistakes(suite, folder), out=folder / "runs").records:
            mistake, _, scenario = record.scenario.partition("--")
            records[mistake][scenario] = record
    return records


@pytest.mark.parametrize(
    ("suite", "agent"),
    [("travel", "agent"), ("travel", "agent_streaming"), ("travel_faults", "agent_streaming")],
)
def test_good_agent_passes_everything(suite: str, agent: str, tmp_path: Path) -> None:
    """Streaming or not, the agent solves the golden five, and streaming survives every fault."""
    reference = f"evalkit.examples.travel:{agent}"
    run = ek.run_suite(shipped.suite(suite), agent=reference, out=tmp_path)
    reasons = {record.scenario: record.reason for record in run.records}
    assert len(reasons) == {"travel": 5, "travel_faults": 16}[suite]
    assert set(reasons.values()) == {""}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_caught_where_and_as_documented(
    mistake: str, found: Mapping[str, Mapping[str, TrialRecord]]
) -> None:
    """Exactly the documented scenarios fail, each by the named grader and for the named reason."""
    expected = {catch.scenario: catch for catch in CATCHES if catch.mistake == mistake}
    assert len(found[mistake]) == 21
    wrong = {name: one for name, one in found[mistake].items() if one.status != "passed"}
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
