"""`evalkit scenario from-trial`: drafts on the screen and in files, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalkit.cli.app import call
from evalkit.importers import import_run

TRACES = Path(__file__).parents[2] / "data" / "traces"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Import a run with four failed trials, and its own suite."""
    monkeypatch.chdir(tmp_path)
    path = TRACES / "tau_bench_twin.json"
    tools = ["rent_bike", "return_bike"]
    return str(import_run("tau-bench", path, out=tmp_path / "runs", write_tools=tools).folder)


def test_many_failures_become_one_checked_file(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command for all failed trials; the report counts, and names what to review."""
    assert call(["scenario", "from-trial", run, "--many", "--out", "drafts.yaml"]) == 0
    told = capsys.readouterr().out
    assert "drafted 4 scenarios, 1 to review" in told
    assert "review  task-3-trial-2: turn 1 ends with a tool call" in told
    assert call(["check", "drafts.yaml"]) == 0
    text = Path("drafts.yaml").read_text()
    assert text.count("# From run ") == 4
    assert text.count("# REVIEW: ") == 2  # the agent's name, and the script that ends early


def test_one_trial_is_printed_as_a_suite(run: str, tmp_path: Path) -> None:
    """The suite goes to stdout, the report to stderr, so that a pipe gets only the suite."""
    done = subprocess.run(
        [sys.executable, "-m", "evalkit.cli", "scenario", "from-trial", run, "task-0", "1"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    Path("piped.yaml").write_bytes(done.stdout)
    assert call(["check", "piped.yaml"]) == 0
    assert b"drafted 1 scenario, 0 to review" in done.stderr
    assert b"- id: task-0-trial-1" in done.stdout


def test_drafts_are_appended_once(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--append adds below what is there; the same ids again, or no --append, exit with 3."""
    draft = ["scenario", "from-trial", run, "--out", "drafts.yaml"]
    assert call([*draft, "task-0", "0"]) == 0
    assert call([*draft, "task-0", "2"]) == 3
    assert "add to it with --append" in capsys.readouterr().err
    assert call([*draft, "task-0", "2", "--append"]) == 0
    assert call([*draft, "task-0", "2", "--append"]) == 3
    assert "has scenarios of these ids already: task-0-trial-2" in capsys.readouterr().err
    assert call(["check", "drafts.yaml"]) == 0
    assert "2 scenarios" in capsys.readouterr().out


def test_json_tells_what_was_drafted(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts learn the ids, what to review, what is the same, and the text."""
    assert call(["scenario", "from-trial", run, "--many", "--status", "any", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["drafted"]) + len(told["same"]) == 12
    assert told["undrafted"] == []
    assert told["text"].startswith("# Drafted by evalkit")
    assert {"id", "scenario", "trial", "review"} == set(told["drafted"][0])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name the SCENARIO, or give --many"),
        (["task-0", "0", "--many"], "leave TRIAL out"),
        (["task-0", "--status", "any"], "add --many"),
        (["--many", "--append"], "--append needs --out"),
        (["--many", "--status", "incomplete"], "no trial is incomplete"),
        (["task-9"], "no scenario 'task-9' in this run; did you mean"),
        (["task-0", "77"], "has trials 0 to 2, not 77"),
        (["task-0", "-1"], "No such option"),
        (["--many", "--suite", "missing.yaml"], "there is no such file"),
    ],
)
def test_wrong_usage_exits_with_3(
    run: str, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot mean anything says what would."""
    assert call(["scenario", "from-trial", run, *arguments]) == 3
    assert problem in capsys.readouterr().err


def test_a_run_that_is_not_there_exits_with_3(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt run is wrong usage."""
    assert call(["scenario", "from-trial", "runz", "task-0"]) == 3
    assert "Did you mean runs" in capsys.readouterr().err


def test_what_cannot_be_drafted_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A conversation without a user is counted with its reason; alone it exits with 3."""
    greeting = {"scenario": "greeting", "messages": [{"role": "assistant", "content": "Hi!"}]}
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    talk = {"scenario": "talk", "messages": said}
    path = tmp_path / "talks.jsonl"
    path.write_text(f"{json.dumps(greeting)}\n{json.dumps(talk)}\n")
    folder = str(import_run("openai", path, out=tmp_path).folder)
    out = str(tmp_path / "drafts.yaml")
    many = ["scenario", "from-trial", folder, "--many", "--status", "any"]
    assert call([*many, "--out", out]) == 0
    told = capsys.readouterr().out
    assert "could not draft 1:" in told
    assert "greeting, trial 0: no user turn with an answer" in told
    assert call(["scenario", "from-trial", folder, "greeting"]) == 3
    assert "nothing could be drafted" in capsys.readouterr().err
