"""Where `evalkit run` and `evalkit grade` write beside the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from evalkit import shipped
from evalkit.cli.app import call

TRAVEL = str(shipped.suite("travel"))
RULES = "evalkit.examples.travel_rules"
GOOD = ["run", TRAVEL, "--lane", "live", "--agent", f"{RULES}:agent"]
BAD = ["run", TRAVEL, "--lane", "live", "--agent", f"{RULES}:wrong_id"]


@pytest.fixture(autouse=True)
def _a_machine_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


def test_junit_is_written_and_changes_no_exit_code() -> None:
    """Also into a folder that does not exist yet."""
    assert call([*BAD, "--junit", "out/junit.xml"]) == 1
    root = ET.parse("out/junit.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("5", "1")
    assert [path.name for path in Path("out").iterdir()] == ["junit.xml"]


def test_older_junit_is_never_taken_for_this_run() -> None:
    """Where nothing can be run, yesterday's result must not lie there."""
    Path("junit.xml").write_text("<testsuites/>")
    assert call(["run", TRAVEL, "--agent", "nobody:agent", "--junit", "junit.xml"]) == 3
    assert not Path("junit.xml").exists()


@pytest.mark.parametrize("target", ["folder", "file/junit.xml"])
def test_junit_that_cannot_be_written_stops_before_the_run(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody waits for a run whose result goes nowhere."""
    Path("folder").mkdir()
    Path("file").touch()
    assert call([*GOOD, "--junit", target]) == 3
    assert target in capsys.readouterr().err
    assert not Path("data").exists()


def test_result_that_cannot_be_written_in_the_end_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2: a result that nobody can read is none."""

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("evalkit.publishing.write_file", full)
    assert call([*GOOD, "--junit", "junit.xml"]) == 2
    assert "No space left on device" in capsys.readouterr().err


def test_device_gets_junit_as_it_is() -> None:
    """It is not replaced by a file."""
    assert call([*GOOD, "--junit", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


def test_on_github_summary_and_annotations_come_by_themselves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stdout stays what it was; the summary is added to what the step wrote before."""
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path(TRAVEL).parents[2]))
    assert call([*BAD, "--json"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["status"] == "failed"
    assert told.err.startswith("::error title=travel-support / weather-gate-book%3A failed,file=")
    assert "travel.yaml,line=15::truth: missing" in told.err
    summary = Path("summary.md").read_text()
    assert summary.startswith("before\n<h2>")
    assert "weather-gate-book" in summary


def test_github_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For those who write their own."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert call([*BAD, "--no-github"]) == 1
    assert "::error" not in capsys.readouterr().err
    assert not Path("summary.md").exists()


def test_elsewhere_github_is_off_and_without_a_summary_it_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--github` without GitHub prints annotations, and why there is no summary."""
    assert call(BAD) == 1
    assert capsys.readouterr().err == ""
    assert call([*BAD, "--github"]) == 1
    assert "GITHUB_STEP_SUMMARY names no file" in capsys.readouterr().err


def test_summary_that_is_full_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One byte more, and GitHub would show nothing of the whole step."""
    Path("summary.md").write_text("x" * (1024 * 1024 - 10))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert call([*GOOD, "--github"]) == 0
    assert "the step has filled it already" in capsys.readouterr().err
    assert len(Path("summary.md").read_text()) == 1024 * 1024 - 10


HOSTILE_AGENT = """\
def agent(text):
    raise ValueError("x\\n::add-mask::a\\n##[set-output name=a]b \\x00\\x1b[2J ]]> <b> \\ud800")
"""
HOSTILE_SUITE = """\
suite: hostile
agent: hostile:agent
scenarios:
  - {id: a, input: hi, expect: {reply: {contains: hi}}}
"""


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_what_an_agent_says_gives_a_runner_no_orders(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither on stdout nor in annotations; and files stay whole."""
    Path("hostile.py").write_text(HOSTILE_AGENT)
    Path("hostile.yaml").write_text(HOSTILE_SUITE)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    arguments = ["run", "hostile.yaml", "--lane", "live", "--junit", "j.xml"]
    assert call([*arguments, *(["--json"] if as_json else [])]) == 1
    told = capsys.readouterr()
    lines = (told.out + told.err).splitlines()
    assert [line[:8] for line in lines if line.lstrip().startswith("::")] == ["::error "]
    assert not [line for line in lines if "##[" in line]
    if as_json:
        assert "##[set-output" in json.loads(told.out)["runs"][0]["trials"][0]["reason"]
    assert "##[set-output" in str(ET.parse("j.xml").find(".//failure").text)  # type: ignore[union-attr]


def test_grade_writes_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Grading again is shown where running is."""
    assert call([*BAD, "--json"]) == 1
    folder = json.loads(capsys.readouterr().out)["runs"][0]["folder"]
    assert call(["grade", folder, "--suite", TRAVEL, "--junit", "j.xml"]) == 1
    assert ET.parse("j.xml").getroot().get("failures") == "1"
