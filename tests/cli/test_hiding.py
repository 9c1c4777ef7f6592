"""What commands print and write names canaries, and never says what they are."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import call
from evalkit.results import Run
from evalkit.run import run_suite
from evalkit.scanning import Scanner
from evalkit.trace import Trace

SECRET = "Canary-7Q2M@example.test"
NAME = "resume-email"
WRITTEN: Mapping[str, Callable[[str], str]] = {
    "plain": lambda value: value,
    "upper": str.upper,
    "base64": lambda value: base64.b64encode(b"to: " + value.encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "reversed": lambda value: value[::-1],
    "spaced": " ".join,
    "base64 twice": lambda value: base64.b64encode(base64.b64encode(value.encode())).decode(),
    "percent": lambda value: "".join(f"%{code:02x}" for code in value.encode()),
}


@pytest.fixture(params=WRITTEN)
def leaked(request: pytest.FixtureRequest) -> str:
    """Write the value in one way after the other."""
    return WRITTEN[request.param](SECRET)


@pytest.fixture(autouse=True)
def _a_machine_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


def write_suite(path: Path, scenario: str = "mail", **canary: Any) -> Path:
    """Write a suite with a canary; what it expects is never met."""
    told = {
        "id": scenario,
        "input": "Mail it.",
        "canaries": [{"name": NAME, "value": SECRET, **canary}],
        "expect": {"reply": {"equals": "no"}},
    }
    path.write_text(json.dumps({"suite": "s", "scenarios": [told]}))
    return path


def run_of(suite: Path, said: str, out: str = "runs") -> Run:
    """Run an agent that mails something and says it."""

    def agent(text: str) -> Trace:
        return Trace.from_calls([("mail", {"to": said, "n": 1})], f"Sent {said}.", user=text)

    return run_suite(suite, agent=agent, lane="live", isolation="none", out=out)


def says_no_value(text: str) -> bool:
    """Tell whether a text names the canary, and holds its value in no writing."""
    assert not Scanner([("it", SECRET)]).scan(text).hits
    assert NAME in text
    return True


@pytest.mark.parametrize("as_json", [False, True])
def test_show_names_the_canary(
    leaked: str, as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In events and grades; the user can ask for the value."""
    run = run_of(write_suite(tmp_path / "s.yaml"), leaked)
    command = ["show", str(run.folder), "mail", *(["--json"] if as_json else [])]
    assert call(command) == 0
    assert says_no_value(capsys.readouterr().out)
    assert call([*command, "--reveal-canaries"]) == 0
    assert leaked in capsys.readouterr().out


@pytest.mark.parametrize("as_json", [False, True])
def test_diff_names_the_canary(
    leaked: str, as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the event that differs, in what differs, and in the events before."""
    suite = write_suite(tmp_path / "s.yaml")
    folders = [str(run_of(suite, text, name).folder) for text, name in ((leaked, "a"), ("x", "b"))]
    command = ["diff", *folders, "mail", *(["--json"] if as_json else [])]
    assert call(command) == 1
    assert says_no_value(capsys.readouterr().out)
    assert call([*command, "--reveal-canaries"]) == 1
    assert leaked in capsys.readouterr().out


def test_values_that_are_written_differently_still_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hiding comes after comparing."""
    suite = write_suite(tmp_path / "s.yaml")
    folders = [
        str(run_of(suite, text, name).folder)
        for text, name in ((SECRET, "a"), (SECRET.upper(), "b"))
    ]
    assert call(["diff", *folders, "mail"]) == 1
    assert "differs at" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "diff"])
def test_values_that_nobody_knows_are_not_printed(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the suite has changed, what hides is missing: only who asks for all sees the trial."""
    suite = write_suite(tmp_path / "s.yaml")
    runs = [str(run_of(suite, SECRET, name).folder) for name in ("a", "b")]
    write_suite(suite, allow="reply")
    asked = [command, *runs[: 1 if command == "show" else 2], "mail"]
    assert call(asked) == 3
    told = capsys.readouterr()
    assert "its suite" in told.err
    assert "--reveal-canaries" in told.err
    assert SECRET not in told.out + told.err
    assert call([*asked, "--reveal-canaries"]) == 0


def test_draft_names_the_canary(
    leaked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A draft is meant for a repository; what it lacks is marked for review."""
    run = run_of(write_suite(tmp_path / "s.yaml"), leaked)
    command = ["scenario", "from-trial", str(run.folder), "mail"]
    assert call([*command, "--out", "draft.yaml"]) == 0
    text = Path("draft.yaml").read_text()
    assert says_no_value(text)
    assert "REVIEW: names of canaries stand for their values" in text
    capsys.readouterr()
    assert call([*command, "--json"]) == 0
    assert says_no_value(capsys.readouterr().out)


def test_draft_of_a_canary_that_nobody_knows_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless the suite that knows it is named."""
    suite = write_suite(tmp_path / "s.yaml")
    run = run_of(suite, SECRET)
    kept = tmp_path / "kept.yaml"
    kept.write_text(suite.read_text())
    write_suite(suite, value="OTHER_CANARY_9X8Y7Z6W")
    command = ["scenario", "from-trial", str(run.folder), "mail", "--out", "draft.yaml"]
    assert call(command) == 3
    told = capsys.readouterr()
    assert f"its canary {NAME!r}" in told.err
    assert SECRET not in told.out + told.err
    assert not Path("draft.yaml").exists()
    assert call([*command, "--suite", str(kept)]) == 0
    assert says_no_value(Path("draft.yaml").read_text())


def grade_again(run: Run, suite: Path, *options: str) -> int:
    """Have a run graded, and everything written."""
    return call(["grade", str(run.folder), "--suite", str(suite), *options])


def test_nothing_published_says_the_value(
    leaked: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """JUnit, JSON, step summary, annotations, and what `grade` and `gate` print."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    suite = write_suite(tmp_path / "s.yaml")
    run = run_of(suite, leaked)
    assert grade_again(run, suite, "--junit", "junit.xml", "--github") == 1
    assert call(["gate", str(run.folder), "--floor", "0.5", "--junit", "gate.xml", "--json"]) == 1
    told = capsys.readouterr()
    for text in (told.out, told.err, *map(_read, ("junit.xml", "gate.xml", "summary.md"))):
        assert says_no_value(text)


def _read(path: str) -> str:
    return Path(path).read_text()


@pytest.mark.parametrize("options", [["--junit", "junit.xml"], ["--json"], ["--github"]])
def test_value_that_cannot_be_hidden_is_not_written(
    options: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An id says it in hex, and in an attribute nothing can take its place: exit code 2."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    leak = SECRET.encode().hex()
    run = run_of(write_suite(tmp_path / "s.yaml", scenario=leak), "x")
    if "--junit" not in options:  # elsewhere texts can be withheld; suppose that failed
        monkeypatch.setattr("evalkit.scanning.hiding.Hiding.text", lambda _, text: text)
        monkeypatch.setattr("evalkit.scanning.hiding.Hiding.json", lambda _, value: value)
    code = call(["gate", str(run.folder), "--floor", "0.0", *options])
    told = capsys.readouterr()
    assert code == 2
    assert f"would hold canary {NAME!r} (hex)" in told.err
    assert leak not in told.err
    assert not Path("junit.xml").exists()
    assert not Path("summary.md").exists()
