"""`evalkit init` makes a project whose own check passes, and whose suite bites."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli import starting
from evalkit.cli.app import call
from evalkit.scaffolding import KINDS

NEEDS = {"anthropic": ("anthropic",), "langgraph": ("langgraph", "langchain_anthropic")}
EVALKIT = [sys.executable, "-m", "evalkit.cli"]
_ON_ITS_WAY = re.compile(r'    if order\["status"\] != "delivered":\n.*\n')
BREAKS: dict[str, tuple[str, str]] = {
    "callable": ("no-refund-on-its-way", "called forbidden tool: refund"),
    "command": ("no-refund-on-its-way", "called forbidden tool: refund"),
    "anthropic": ("refund-while-overloaded", ""),
    "langgraph": ("refund-while-overloaded", ""),
}
"""The scenario that catches the change that the README proposes, and its reason."""


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def typed(*words: str, cwd: Path) -> tuple[int, str]:
    """Run the command as a user does, in a process of its own."""
    python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*EVALKIT, *words], cwd=cwd, env={**os.environ, "PATH": python}, timeout=200,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def contract_run(folder: Path) -> dict[str, Any]:
    """Run the project's suites in the contract lane."""
    code, out = typed("run", "data/suites", "--lane", "contract", "--json", cwd=folder)
    assert code in (0, 1), out
    told: dict[str, Any] = json.loads(out)
    (run,) = told["runs"]
    return {**run, "code": code}


def break_agent(kind: str, file: Path) -> None:
    """Make the change that the README proposes."""
    text = file.read_text()
    if kind in NEEDS:
        broken = text.replace("max_retries=2", "max_retries=0")
    else:
        broken = _ON_ITS_WAY.sub("", text)
    assert broken != text
    file.write_text(broken)


@pytest.mark.sdk
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_green_and_its_suite_bites(kind: str) -> None:
    """Check and contract lane pass at once; the README's planted change turns the run red."""
    for module in NEEDS.get(kind, ()):
        assert importlib.util.find_spec(module), f"the tests need {module}"
    assert call(["init", "bot", "--agent", kind]) == 0
    assert typed("check", "data/suites", cwd=Path("bot"))[0] == 0
    green = contract_run(Path("bot"))
    assert (green["code"], green["n_passed"], green["n_planned"]) == (0, 4, 4)

    break_agent(kind, Path("bot/support_agent.py"))
    red = contract_run(Path("bot"))
    scenario, reason = BREAKS[kind]
    failed = {trial["scenario"]: trial["reason"] for trial in red["trials"] if trial["reason"]}
    assert (red["code"], list(failed)) == (1, [scenario])
    assert reason in failed[scenario]
    assert scenario in Path("bot/README.md").read_text()


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.has_model])
def test_agents_without_a_model_run_live_too(kind: str) -> None:
    """They need no key, in no lane."""
    assert call(["init", "bot", "--agent", kind]) == 0
    code, out = typed("run", "data/suites", "--lane", "live", "--trials", "3", cwd=Path("bot"))
    assert code == 0, out
    assert "12 passed, 0 failed, 0 incomplete of 12 trials" in out


def test_init_says_what_it_made_and_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    """Each file is named once, then the first commands, with quotes where a shell needs them."""
    assert call(["init", "my bot", "--agent", "command"]) == 0
    out = capsys.readouterr().out
    made = re.findall(r"^(\S+) +made$", out, re.MULTILINE)
    there = [path for path in Path("my bot").rglob("*") if path.is_file()]
    assert sorted(made) == sorted(str(path.relative_to("my bot")) for path in there)
    assert re.findall(r"^  (\S.*)$", out, re.MULTILINE) == [
        "cd 'my bot'",
        "python -m pip install -r requirements-evals.txt",
        "evalkit check data/suites",
        "evalkit run data/suites",
    ]
    assert "README.md goes on" in out


def test_init_here_needs_no_cd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a folder the working directory is meant; a second time there is nothing to do."""
    assert call(["init", "--name", "bot"]) == 0
    assert "  cd " not in capsys.readouterr().out
    assert (tmp_path / "data/suites/bot.yaml").is_file()
    assert call(["init", "--name", "bot"]) == 0
    assert "nothing was made" in capsys.readouterr().out


def test_init_stops_at_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    """Another kind over a project is a conflict: exit 3, files listed, nothing changed."""
    assert call(["init", "bot"]) == 0
    before = {path: path.read_bytes() for path in Path("bot").rglob("*") if path.is_file()}
    capsys.readouterr()
    assert call(["init", "bot", "--agent", "command"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.findall(r"^  (\S+)$", printed.err, re.MULTILINE) == [
        "bot/support_agent.py",
        "bot/data/suites/bot.yaml",
    ]
    after = {path: path.read_bytes() for path in Path("bot").rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before


def test_init_adds_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """--keep-existing leaves a changed agent alone and brings a lost file back."""
    assert call(["init", "bot"]) == 0
    Path("bot/support_agent.py").write_text("mine\n")
    Path("bot/.github/workflows/agent-evals.yml").unlink()
    assert call(["init", "bot"]) == 3
    capsys.readouterr()
    assert call(["init", "bot", "--keep-existing"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^support_agent\.py +left as it is$", out, re.MULTILINE)
    assert re.findall(r"^(\S+) +made$", out, re.MULTILINE) == [".github/workflows/agent-evals.yml"]
    assert Path("bot/support_agent.py").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--name", "Shop Bot"], "'shop-bot' would do"),
        (["--agent", "rust"], "callable"),
    ],
    ids=["name", "agent"],
)
def test_init_refuses_what_it_cannot_make(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong name or kind exits with 3, says what would do, and makes nothing."""
    assert call(["init", "bot", *words]) == 3
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_help_offers_every_kind() -> None:
    """The command line and the package know the same kinds."""
    assert tuple(KINDS) == starting._AGENTS


@pytest.mark.notebook
def test_copied_notebook_renders() -> None:
    """The project's own copy of a notebook makes a report, as the shipped one does."""
    assert call(["init", "bot"]) == 0
    contract_run(Path("bot"))
    words = ("report", "notebooks/pass_rates.ipynb", "--run", "data/runs")
    code, out = typed(*words, cwd=Path("bot"))
    assert code == 0, out
    (report,) = Path("bot/reports").glob("*.html")
    assert "Pass rates" in report.read_text()
