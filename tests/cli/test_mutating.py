"""``evalkit mutate``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.cli.mutating import mutate
from evalkit.errors import UsageError
from evalkit.run import run_suite

AGENT = "evalkit.examples.travel_rules:agent"
WEATHER: Any = {
    "id": "weather",
    "input": "What's the weather in Denver?",
    "expect": {"tools": ["get_weather"], "reply": {"contains": "clear"}},
}


def call(*arguments: str) -> int:
    """Run the command and give its exit code."""
    code = mutate.main(list(arguments), standalone_mode=False)
    assert isinstance(code, int)
    return code


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def prepare(*scenarios: Any) -> tuple[str, ...]:
    """Write a suite and run it; gives the arguments for both."""
    Path("s.yaml").write_text(yaml.safe_dump({"suite": "s", "scenarios": list(scenarios)}))
    done = run_suite("s.yaml", agent=AGENT, lane="live", isolation="none", out="runs")
    return "s.yaml", "--run", str(done.folder)


@pytest.mark.parametrize(
    ("more", "code"),
    [([], 0), (["--min-score", "0.5"], 0), (["--min-score", "0.99"], 1)],
    ids=["no threshold", "reached", "missed"],
)
def test_score_decides_the_exit_code(
    more: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Survivors alone fail nothing; a score below the threshold does."""
    assert call(*prepare(WEATHER), *more) == code
    printed = capsys.readouterr()
    assert printed.out.startswith("mutation score of s: ")
    assert ("below 0.99" in printed.err) == (code == 1)


def test_nothing_measured_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A suite of which no trial passes has no score."""
    assert call(*prepare(WEATHER | {"expect": {"tools": ["book"]}})) == 2
    assert "no mutant could be measured" in capsys.readouterr().err


def test_a_scenario_left_out_cannot_reach_a_threshold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was not measured is no pass: with --min-score, it exits with 2."""
    arguments = prepare(WEATHER, WEATHER | {"id": "b", "expect": {"tools": ["book"]}})
    assert call(*arguments) == 0
    assert call(*arguments, "--min-score", "0.5") == 2
    assert "1 scenario(s) have no trial that passes" in capsys.readouterr().err


def test_json_is_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Stdout holds nothing but JSON, with every mutant."""
    assert call(*prepare(WEATHER), "--json", "--operator", "cut-reply") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mutants"][0]["operator"] == "cut-reply"
    assert told["score"] in (0.0, 1.0)


def test_operators_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its kind and what it does; no suite is needed for that."""
    assert call("--list-operators") == 0
    assert "swap-calls" in capsys.readouterr().out


def test_wrong_usage_is_refused() -> None:
    """A run or an operator that is not there is named, with what is near."""
    suite, option, folder = prepare(WEATHER)
    with pytest.raises(UsageError, match="did you mean"):
        call(suite, option, folder, "--operator", "drop-cal")
    with pytest.raises(UsageError, match="no such run directory"):
        call(suite, option, "nowhere")
    with pytest.raises(UsageError, match="--import nothing_here"):
        call(suite, option, folder, "--import", "nothing_here")
    with pytest.raises(Exception, match="SUITE"):
        call()
