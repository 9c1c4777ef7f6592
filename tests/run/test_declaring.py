"""A suite that names tools that its agent does not have is refused before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek
from evalkit.cli.app import call
from evalkit.errors import SuiteError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

AGENT = """\
import evalkit as ek

@ek.tool
def book(flight_id: str, date: str) -> str:
    return f"{flight_id} is booked for {date}."

def agent(text: str) -> str:
    return text

agent.tools = [book, "search"]

def silent(text: str) -> str:
    return text
"""
SUITE = """\
suite: s
agent: flights:agent
scenarios:
  - id: a
    input: hi
    model: []
    expect:
      tools: [{bok: {}}, {book: {fligt_id: AA1}}, search]
    forbid: {tools: [serch, delete]}
"""
SAID = [
    "8: scenarios[0].expect.tools[0]: the agent has no tool 'bok'. Did you mean `book`?",
    "8: scenarios[0].expect.tools[1].book.fligt_id: 'book' takes no argument 'fligt_id'. "
    "Did you mean `flight_id`?",
    "9: scenarios[0].forbid.tools[0]: a ban of 'serch' never fires: the agent has no such "
    "tool. Did you mean `search`?",
]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Write an agent that says which tools it has, and a suite with slips."""
    (tmp_path / "flights.py").write_text(AGENT)
    path = tmp_path / "s.yaml"
    path.write_text(SUITE)
    return path


def test_check_lists_what_the_agent_does_not_have(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With line, place and nearest name; a ban of what must never exist is none of them."""
    assert call(["check", str(suite)]) == 3
    assert capsys.readouterr().err.splitlines() == [f"{suite}:{said}" for said in SAID]


@pytest.mark.parametrize("options", [{}, {"lane": "live"}, {"lane": "live", "isolation": "none"}])
def test_run_refuses_before_anything_runs(
    options: dict[str, Any], suite: Path, tmp_path: Path
) -> None:
    """Nothing is run, and nothing written."""
    with pytest.raises(SuiteError) as caught:
        ek.run_suite(suite, out=tmp_path / "runs", **options)
    assert len(caught.value.problems) == 3
    assert not (tmp_path / "runs").exists()


def test_agent_that_says_nothing_is_not_held_to_anything(suite: Path, tmp_path: Path) -> None:
    """A wrapped tool is not said to be the only one."""
    suite.write_text(SUITE.replace("flights:agent", "flights:silent"))
    assert call(["check", str(suite)]) == 0
    run = ek.run_suite(suite, out=tmp_path / "runs")
    assert run.status == "failed"


def test_check_of_an_agent_that_cannot_be_loaded_is_not_in_the_way(suite: Path) -> None:
    """Whoever runs it is told; a suite can be checked without its agent."""
    suite.write_text(SUITE.replace("flights:agent", "nowhere:agent"))
    assert call(["check", str(suite)]) == 0
