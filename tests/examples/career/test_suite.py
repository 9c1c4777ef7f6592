"""The shipped suite and its fixtures: whole, honest, and of the agent as it is."""

from __future__ import annotations

import ast
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalkit import shipped
from evalkit.examples import career
from evalkit.examples.career.storage import SCHEMA
from evalkit.run import load_suite
from evalkit.suite import RestartTurn, Suite
from evalkit.suite.model_script import FaultStep

FIXTURES = Path(shipped.suite("career")).parent / "fixtures" / "career"
PACKAGE = "evalkit.examples.career"


@pytest.fixture(scope="module")
def suite() -> Suite:
    """Load the suite."""
    return load_suite(shipped.suite("career"))


def test_agent_is_an_ordinary_agent() -> None:
    """No module of it imports evalkit: what is tested is what would be deployed."""
    sources = list(Path(career.__file__).parent.rglob("*.py"))
    assert len(sources) >= 20
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            foreign = (name for name in names if not name.startswith(PACKAGE))
            assert not [name for name in foreign if name.split(".")[0] == "evalkit"], source


def test_suite_is_scripted_and_serves_the_agent(suite: Suite) -> None:
    """It can run in the contract lane as it is, and has more than sixteen journeys."""
    assert suite.agent is not None
    assert suite.agent.http is not None
    assert suite.agent.http.serve == f"{PACKAGE}:serve"
    assert len(suite) >= 16
    assert all(scenario.is_scripted for scenario in suite)


def test_each_journey_says_something_of_replies_and_of_the_world(suite: Suite) -> None:
    """A journey that only looks at what is said would not notice what is done."""
    for scenario in suite:
        places = [place for place in (scenario, *scenario.turns) if place.expect or place.forbid]
        expects = [place.expect for place in places if place.expect]
        assert any(expect.reply or expect.replies or expect.http for expect in expects), scenario.id
        assert scenario.deliver is not None
        assert scenario.canaries or any(place.forbid for place in places), scenario.id


def test_resume_journeys_are_out_of_quality_scope(suite: Suite) -> None:
    """What the quality lane does not do, it says."""
    resumes = [scenario for scenario in suite if "resume" in scenario.tags]
    assert len(resumes) >= 5
    assert all(scenario.quality and scenario.quality.skip for scenario in resumes)
    others = [scenario for scenario in suite if "resume" not in scenario.tags]
    assert all(scenario.quality and scenario.quality.rubrics for scenario in others)


def test_suite_meets_faults_and_restarts(suite: Suite) -> None:
    """Models fail in different ways, and processes end in both."""
    turns: list[Any] = [turn for scenario in suite for turn in scenario.turns]
    steps = [
        step
        for turn in turns
        if turn.model is not None
        for script in turn.model.scripts.values()
        for step in script.steps
    ]
    faults = {step.fault for step in steps if isinstance(step, FaultStep)}
    assert faults >= {
        "overloaded", "rate_limited", "malformed_json", "clean_early_end", "truncated_tool_json",
    }  # fmt: skip
    assert {turn.restart for turn in turns if isinstance(turn, RestartTurn)} == {"kill", "graceful"}


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.sql")), ids=lambda path: path.name)
def test_database_fixture_has_the_schema_of_the_agent(path: Path) -> None:
    """Otherwise the agent would meet what it never made."""
    with closing(sqlite3.connect(":memory:")) as made, closing(sqlite3.connect(":memory:")) as own:
        made.executescript(path.read_text(encoding="utf-8"))
        own.executescript(SCHEMA)
        query = "SELECT name, sql FROM sqlite_master ORDER BY name"
        assert made.execute(query).fetchall() == own.execute(query).fetchall()


def test_made_fixtures_are_as_their_maker_makes_them() -> None:
    """Nobody changed them by hand, and they are small."""
    made = runpy.run_path(str(Path(__file__).with_name("make_fixtures.py")))["files"]()
    assert {name: (FIXTURES / name).read_bytes() for name in made} == made
    assert all(len(content) < 64 * 1024 for content in made.values())
