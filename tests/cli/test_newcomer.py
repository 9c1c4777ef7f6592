"""What somebody meets who uses the command line for the first time, or is interrupted."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit import shipped
from evalkit.cli.app import call
from evalkit.summaries import MAX_SCENARIOS

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "evalkit.cli"]
ECHO = "def agent(text):\n    return text\n"


@pytest.fixture(autouse=True)
def _folder_with_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder that has one agent, which repeats what it is told."""
    monkeypatch.chdir(tmp_path)
    Path("echo.py").write_text(ECHO)


def write_suite(name: str, *inputs: str, agent: str = "agent: echo:agent\n") -> str:
    """Write a suite whose scenarios each want the reply `yes`; return its file."""
    scenarios = "".join(
        f"  - {{id: s{number}, input: '{text}', expect: {{reply: {{contains: yes}}}}}}\n"
        for number, text in enumerate(inputs)
    )
    Path(f"{name}.yaml").write_text(f"suite: {name}\n{agent}scenarios:\n{scenarios}")
    return f"{name}.yaml"


def test_misspelt_suite_file_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is almost right gets the right one."""
    write_suite("travel", "yes")
    assert call(["run", "travel.yml", "--lane", "live"]) == 3
    assert "Did you mean travel.yaml?" in capsys.readouterr().err


def test_misspelt_run_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    """So does a run; a folder of runs stands for its latest, also for --resume."""
    call(["run", write_suite("one", "yes"), "--lane", "live", "--out", "runs"])
    (folder,) = Path("runs").iterdir()
    for command in (["show"], ["run", "--resume"]):
        assert call([*command, f"{folder}x"]) == 3
        assert f"Did you mean {folder}?" in capsys.readouterr().err
        assert call([*command, "runs"]) == 0
        assert "1 passed" in capsys.readouterr().out


def test_run_is_told_when_a_later_suite_cannot_start(capsys: pytest.CaptureFixture[str]) -> None:
    """What has been run is printed, although the next suite names no agent."""
    suites = [write_suite("first", "yes"), write_suite("second", "yes", agent="")]
    assert call(["run", *suites, "--lane", "live"]) == 3
    printed = capsys.readouterr()
    assert "first  (live lane" in printed.out
    assert "'second' names no agent" in printed.err


def test_one_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    """One scenario is no `1 scenarios`; an estimate without an interval shows none."""
    suite = write_suite("one", "yes")
    call(["check", suite])
    call(["run", suite, "--lane", "live"])
    call(["show", "data/runs"])
    out = capsys.readouterr().out
    assert "one.yaml: 1 scenario, no problems" in out
    assert "over 1 scenario," in out
    assert "1 scenarios" not in out
    assert re.search(r"^pass\^1  1\.000$", out, re.MULTILINE)


def test_table_shows_what_happened_and_not_where(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback is for `evalkit show`; the table says what was raised."""
    Path("echo.py").write_text("def agent(text):\n    return {}['lost']\n")
    assert call(["run", write_suite("one", "yes"), "--lane", "live"]) == 1
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("s0 "))
    assert row.endswith("the agent raised KeyError: 'lost'")
    call(["show", "data/runs", "s0"])
    assert "Traceback" in capsys.readouterr().out


def test_long_table_shows_the_worst(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a huge suite the terminal gets what failed, and how much it does not get."""
    texts = ["yes"] * (MAX_SCENARIOS + 20) + ["no"]
    assert call(["run", write_suite("huge", *texts), "--lane", "live"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].startswith(f"s{MAX_SCENARIOS + 20} ")
    assert len([line for line in lines if re.match(r"s\d+ ", line)]) == MAX_SCENARIOS
    assert "... and 21 more scenarios, none worse" in lines


def test_import_prints_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command that grades an import can be typed as it is printed, spaces and all."""
    twin = str(shipped.trace("tau_bench_twin"))
    assert call(["import", "tau-bench", twin, "--write-tools", "book", "--out", "my runs"]) == 0
    (told,) = re.findall(r"^grade  evalkit (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert call(shlex.split(told)) in (0, 1)


@pytest.mark.parametrize(
    "arguments",
    [("schema",), ("run", "one.yaml", "--lane", "live")],
    ids=lambda arguments: str(arguments[0]),
)
def test_output_that_nobody_reads_is_no_pass(arguments: tuple[str, ...]) -> None:
    """With a closed pipe the command ends quietly, and not with 0."""
    write_suite("one", "yes")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (2, b"")


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_interrupted_run_says_how_to_go_on() -> None:
    """Ctrl-C ends with 130 and the very command that goes on; that command finishes the run."""
    Path("echo.py").write_text(f"import time\n{ECHO.replace('return', 'time.sleep(0.3); return')}")
    words = [*COMMAND, "run", write_suite("slow", "yes"), "--lane", "live", "-n", "12"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list(Path().glob("data/runs/*/ledgers/*")))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "evalkit: interrupted" in err
    (told,) = re.findall(r"go on with: evalkit (.*)", err)
    assert call(shlex.split(told)) == 0


# --- the README ---------------------------------------------------------------------------


def readme_consoles() -> list[list[str]]:
    """Give the lines of every console that the README shows."""
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    return [block.splitlines() for block in re.findall(r"```console\n(.*?)```", readme, re.DOTALL)]


@pytest.fixture
def _shipped_data() -> None:
    """Put the shipped suites and traces where the README's paths say."""
    Path("data").mkdir()
    Path("data/suites").symlink_to(shipped.suite("travel").parent)
    Path("data/traces").symlink_to(shipped.trace("travel_good").parent)


@pytest.mark.usefixtures("_shipped_data")
def test_readme_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """The README's first command prints the README's lines; a run's name and digest are its own."""
    command, *expected = readme_consoles()[0]
    assert call(shlex.split(command)[2:]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if not line.startswith(("run  ", "digest"))] == expected


@pytest.mark.usefixtures("_shipped_data")
def test_readme_commands_on_recorded_traces_work(capsys: pytest.CaptureFixture[str]) -> None:
    """Importing, grading and showing work as they are typed there, one after the other."""
    (typed,) = (lines for lines in readme_consoles() if lines[0].startswith("$ evalkit import"))
    codes = {}
    for line in typed:
        words = shlex.split(line, comments=True)[2:]
        if words[0] != "report":  # which takes its time, and has tests of its own
            codes[words[0]] = call(words)
    assert codes == {"import": 0, "grade": 1, "show": 0}
    assert "got 'AA999'" in capsys.readouterr().out
