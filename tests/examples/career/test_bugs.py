"""The career suite in the contract lane: the copilot passes, each planted mistake is named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import evalkit as ek
from evalkit import shipped
from evalkit.examples.career import bugs
from evalkit.results import TrialRecord
from evalkit.suite.yaml_reader import read_yaml
from evalkit.testing import crash_test

SUITE = shipped.suite("career")
N_JOURNEYS = 40


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


ALL_CATCHES = tuple(documented_catches())
BY_A_CRASH = "crash_test"
CATCHES = tuple(catch for catch in ALL_CATCHES if catch.by != BY_A_CRASH)
CRASHES = tuple(catch for catch in ALL_CATCHES if catch.by == BY_A_CRASH)
MISTAKES = tuple(mistake.__name__ for mistake in bugs.PLANTED)


def with_mistakes(folder: Path) -> Path:
    """Write a suite with a copy of each scenario for each mistake that it should catch."""
    told = read_yaml(Path(SUITE)).data
    scenarios = {scenario["id"]: scenario for scenario in told["scenarios"]}
    copies = [
        {
            **scenarios[scenario],
            "id": f"{mistake}--{scenario}",
            "env": {**scenarios[scenario].get("env", {}), "COPILOT_MISTAKE": mistake},
        }
        for mistake, scenario in dict.fromkeys((one.mistake, one.scenario) for one in ALL_CATCHES)
    ]
    shutil.copytree(Path(SUITE).parent / "fixtures", folder / "fixtures")
    agent = {"http": {"serve": "evalkit.examples.career.bugs:serve", "port": 8080}}
    path = folder / "career.yaml"
    path.write_text(json.dumps({**told, "agent": agent, "scenarios": copies}))
    return path


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the suite of all mistakes."""
    return with_mistakes(tmp_path_factory.mktemp("mistakes"))


@pytest.fixture(scope="module")
def found(mistaken: Path) -> Mapping[str, TrialRecord]:
    """Give, by ``mistake--scenario``, what became of the trial."""
    run = ek.run_suite(mistaken, out=mistaken.parent / "runs", progress=False)
    return {record.scenario: record for record in run.records}


def test_copilot_passes_everything_twice(tmp_path: Path) -> None:
    """The copilot itself solves every journey, in both runs in the same way."""
    runs = [
        ek.run_suite(SUITE, out=tmp_path / name, n_parallel=n, progress=False)
        for name, n in (("one", 1), ("two", 2))
    ]
    for run in runs:
        reasons = {record.scenario: record.reason for record in run.records}
        assert len(reasons) == N_JOURNEYS
        assert set(reasons.values()) == {""}, reasons
    assert runs[0].digest == runs[1].digest


@pytest.mark.parametrize("catch", CATCHES, ids=lambda catch: f"{catch.mistake}-{catch.scenario}")
def test_mistake_is_caught_where_and_as_documented(
    catch: Catch, found: Mapping[str, TrialRecord]
) -> None:
    """The documented scenario fails, by the named grader and for the named reason."""
    record = found[f"{catch.mistake}--{catch.scenario}"]
    assert record.status == "failed", record.reason
    told = {grade.grader: grade.reason for grade in record.grades if grade.passed is False}
    told[record.reason_code] = record.reason
    assert catch.reason in told.get(catch.by, f"{catch.by} did not catch it: {told}")


@pytest.mark.parametrize("scenario", ["save-posting", "link-before-profile", "delete-my-data"])
def test_copilot_may_be_killed_at_any_moment(scenario: str) -> None:
    """Nothing that it saved is lost, nothing is answered twice, and it comes to the same end."""
    rows = crash_test(SUITE, scenario)
    assert len(rows) > 30
    wrong = rows[rows.status != "passed"]
    assert wrong.empty, wrong[["event", "kind", "what", "reason"]].to_string()
    # Where a message was on its way when it died, nobody knows whether it arrived.
    assert set(rows[rows.unanswered].kind) <= {"http", "database"}


@pytest.mark.parametrize("catch", CRASHES, ids=lambda catch: catch.mistake)
def test_mistake_is_caught_by_a_crash(catch: Catch, mistaken: Path) -> None:
    """The agent with the mistake loses something, or answers twice, at some moment."""
    rows = crash_test(mistaken, f"{catch.mistake}--{catch.scenario}")
    assert catch.reason in "\n".join(rows[rows.status == "failed"].reason)


def test_table_names_every_mistake() -> None:
    """The table and the module agree, and there are at least fifteen mistakes."""
    assert {catch.mistake for catch in ALL_CATCHES} == set(MISTAKES)
    assert len(MISTAKES) == len(set(MISTAKES)) >= 15
    assert len(set(ALL_CATCHES)) == len(ALL_CATCHES)
