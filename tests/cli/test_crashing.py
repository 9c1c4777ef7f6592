"""``evalkit crash-test``: what it shows, and its exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.cli.crashing import crash_test
from evalkit.errors import UsageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

AGENTS = """
from pathlib import Path

def saves(text):
    Path(text).write_text("saved")
    return "saved"

class Waits:
    def __init__(self):
        self.waiting = []

    def reply(self, text):
        self.waiting.append(text)
        if len(self.waiting) == 2:
            for name in self.waiting:
                Path(name).write_text("saved")
        return "saved"
"""

Call = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path) -> Call:
    """Run the command on a scenario of an agent."""
    (tmp_path / "savers.py").write_text(AGENTS)
    turns = [{"user": name, "model": []} for name in ("milk", "bread")]
    scenario = {"id": "a", "turns": turns, "expect": {"files": {"milk": True, "bread": True}}}
    suite = tmp_path / "suite.yaml"
    suite.write_text(json.dumps({"suite": "s", "scenarios": [scenario]}))

    def run(agent: str, *options: str, name: str = "a") -> int:
        arguments = [str(suite), name, "--agent", f"savers:{agent}", *options]
        code = crash_test.main(arguments, standalone_mode=False)
        assert isinstance(code, int)
        return code

    return run


def test_agent_that_gets_over_it(run: Call, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and a sentence; every moment is listed if that is asked for."""
    assert run("saves") == 0
    assert "and each time it came to the same end" in capsys.readouterr().out
    assert run("saves", "--all", "--parallel", "1") == 0
    shown = capsys.readouterr().out
    assert "event  kind" in shown
    assert "0 failed, 0 incomplete" in shown


def test_agent_that_loses_something(run: Call, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and the moments that failed, with what was lost."""
    assert run("Waits") == 1
    shown = capsys.readouterr().out
    assert "files: milk" in shown
    assert "passed  " not in shown


def test_rows_as_json(run: Call, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts get all columns of all moments."""
    assert run("Waits", "--json") == 1
    rows = json.loads(capsys.readouterr().out)
    assert {row["status"] for row in rows} == {"passed", "failed"}
    assert all(row["lost"] == "" for row in rows if row["status"] == "passed")
    assert rows[0]["turn"] is None


def test_unknown_scenario(run: Call) -> None:
    """It is named."""
    with pytest.raises(UsageError, match="'b'"):
        run("saves", name="b")
