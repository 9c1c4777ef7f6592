"""The command line: every command, its exit code, what it prints and where."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from evalkit import shipped
from evalkit.cli.app import _COMMANDS, call

RULES = "evalkit.examples.travel_rules"
RULES_AGENT = f"{RULES}:agent"
TRAVEL = str(shipped.suite("travel"))


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evalkit(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "evalkit.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help` exits with 0 and shows how the command is typed."""
    assert call([command, "--help"]) == 0
    assert f"Example: evalkit {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("agent", "code"), [("agent", 0), ("wrong_id", 1), ("looping", 1), ("blind_booking", 1)]
)
def test_run_exits_by_status(agent: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """0 if every trial passed, 1 if one failed."""
    assert call(["run", TRAVEL, "--lane", "live", "--agent", f"{RULES}:{agent}"]) == code
    assert ("PASSED" if code == 0 else "FAILED") in capsys.readouterr().out


def test_run_that_cannot_measure_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A text-only agent shows no tool calls: incomplete, not passed and not failed."""
    Path("chatty.py").write_text(
        "def agent(text):\n    return 'Booked Monday, Denver clear, did not book, options?'\n"
    )
    assert call(["run", TRAVEL, "--lane", "live", "--agent", "chatty:agent"]) == 2
    assert "INCOMPLETE: 0 passed, 0 failed, 5 incomplete of 5 trials" in capsys.readouterr().out


BARE = """\
suite: bare
scenarios:
  - id: a
    input: hi
    expect: {reply: {contains: hello}}
"""

USAGE_ERRORS = {
    "no suite": (["run"], "give at least one suite"),
    "no such suite": (["run", "nowhere.yaml"], "no such file or folder"),
    "no lane": (["run", "bare.yaml", "--agent", RULES_AGENT], "--lane live"),
    "unknown option": (["run", TRAVEL, "--trails", "3"], "--trials"),
    "unknown command": (["rnu"], "Did you mean 'run'"),
    "no trials": (["run", TRAVEL, "--trials", "0"], "--trials"),
    "none at a time": (["run", TRAVEL, "--parallel", "0"], "--parallel"),
    "no run to grade": (["grade", "nowhere", "--suite", TRAVEL], "no such run directory"),
    "no run to resume": (["run", "--resume", "nowhere"], "no such run directory"),
    "wrong type": (["run", TRAVEL, "--trials", "many"], "is not a valid integer"),
    "no such agent": (["run", TRAVEL, "--lane", "live", "--agent", "nobody:agent"], "no module"),
    "no such name": (
        ["run", TRAVEL, "--lane", "live", "--agent", f"{RULES}:agnet"],
        "did you mean",
    ),
    "no such scenario": (["run", TRAVEL, "--lane", "live", "-s", "weather-onyl"], "weather-only"),
    "no such run": (["show", "nowhere"], "no such run directory"),
    "no such format": (["import", "tau_bench", "x.json"], "did you mean 'tau-bench'"),
    "no such import": (["run", TRAVEL, "--import", "no_such_module"], "no_such_module"),
    "two things": (["run", TRAVEL, "--resume", "x"], "not both"),
}


@pytest.mark.parametrize("name", USAGE_ERRORS)
def test_wrong_usage_exits_with_3_and_says_what_is_right(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage is 3, one sentence on stderr, nothing on stdout, no traceback."""
    Path("bare.yaml").write_text(BARE)
    arguments, sentence = USAGE_ERRORS[name]
    assert call(arguments) == 3
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_check_lists_every_problem_and_exits_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    """All problems at once, with file, line and key."""
    Path("bad.yaml").write_text(
        "suite: s\nscenarios:\n  - id: a\n    inptu: hi\n  - id: b\n    input: hi\n"
        "    expect: {reply: {contians: x}}\n"
    )
    assert call(["check", "bad.yaml"]) == 3
    complaint = capsys.readouterr().err
    assert "bad.yaml:4:" in complaint
    assert "bad.yaml:7:" in complaint
    assert "contains" in complaint
    assert call(["check", TRAVEL]) == 0


def test_json_outputs_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints one JSON document on stdout and nothing else."""
    call(["run", TRAVEL, "--lane", "live", "--agent", RULES_AGENT, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "passed"
    folder = told["runs"][0]["folder"]
    for arguments in (["show", folder, "--json"], ["check", TRAVEL, "--json"], ["schema"]):
        assert call(arguments) == 0
        assert json.loads(capsys.readouterr().out)
    assert call(["show", folder, "weather-only", "--json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert events[0]["kind"] == "trial_start"


def test_import_grade_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    """A recorded behaviour is imported, graded and shown."""
    assert (
        call(["import", "openai", str(shipped.trace("travel_wrong_id.jsonl")), "--out", "r"]) == 0
    )
    assert "evalkit grade" in capsys.readouterr().out
    (imported,) = Path("r").iterdir()
    assert call(["grade", str(imported), "--suite", TRAVEL, "--out", "g"]) == 1
    assert "AA999" in capsys.readouterr().out.replace("…", "AA999")
    assert call(["show", "g", "weather-gate-book"]) == 0
    shown = capsys.readouterr().out
    assert "missing/incorrect: book {'flight_id': 'AA123', 'date': 'Friday'}" in shown
    assert '"AA999"' in shown


def test_grade_with_match(capsys: pytest.CaptureFixture[str]) -> None:
    """Scenario ids that differ are matched by hand; what has no match is incomplete."""
    call(["import", "openai", str(shipped.trace("travel_good.jsonl")), "--out", "r"])
    (imported,) = Path("r").iterdir()
    suite = Path(TRAVEL).read_text().replace("id: weather-only", "id: just-weather")
    Path("other.yaml").write_text(suite)
    assert call(["grade", str(imported), "--suite", "other.yaml"]) == 2
    assert "no scenario of the suite" in capsys.readouterr().out
    assert (
        call(
            [
                "grade",
                str(imported),
                "--suite",
                "other.yaml",
                "--match",
                "weather-only=just-weather",
            ]
        )
        == 0
    )


def test_folder_of_suites_prints_a_combined_digest(capsys: pytest.CaptureFixture[str]) -> None:
    """One run directory a suite, one digest over all; twice the same."""
    Path("suites").mkdir()
    for name in ("one", "two"):
        text = Path(TRAVEL).read_text().replace("suite: travel-support", f"suite: {name}")
        Path(f"suites/{name}.yaml").write_text(text)
    digests = set()
    for _ in range(2):
        assert call(["run", "suites", "--lane", "live", "--agent", RULES_AGENT]) == 0
        digests.add(capsys.readouterr().out.splitlines()[-1])
    assert len(digests) == 1
    assert digests.pop().startswith("combined digest")


def test_resume_of_a_finished_run_exits_by_its_status() -> None:
    """Resuming a finished run is no error."""
    call(["run", TRAVEL, "--lane", "live", "--agent", f"{RULES}:looping"])
    (folder,) = Path("data/runs").iterdir()
    assert call(["run", "--resume", str(folder)]) == 1


def test_agents_text_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences in replies and reasons are shown, not obeyed."""
    Path("rude.py").write_text(
        "import evalkit as ek\n"
        "def agent(text):\n"
        "    calls = [('book', {'x': '\\x1b]0;owned\\x07'})]\n"
        "    return ek.Trace.from_calls(calls, reply='\\x1b[2J')\n"
    )
    call(["run", TRAVEL, "--lane", "live", "--agent", "rude:agent"])
    (folder,) = Path("data/runs").iterdir()
    call(["show", str(folder), "weather-gate-book"])
    assert "\x1b" not in capsys.readouterr().out


def test_import_registers_own_graders(capsys: pytest.CaptureFixture[str]) -> None:
    """`--import` loads a module of graders that a suite may name."""
    Path("my_graders.py").write_text(
        "import evalkit as ek\n@ek.grader\ndef is_short(trial):\n    return len(trial.reply) < 3\n"
    )
    code = call(
        [
            *("run", TRAVEL, "--lane", "live", "--agent", RULES_AGENT),
            *("--import", "my_graders", "--grader", "is_short"),
        ]
    )
    assert code == 1
    assert "is_short" in capsys.readouterr().out


def test_command_as_a_process() -> None:
    """The installed command works in an empty folder; its output is not buffered away."""
    done = evalkit("run", TRAVEL, "--lane", "live", "--agent", RULES_AGENT, "--trials", "2")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress bar in a pipe, no warning
    assert "10 passed, 0 failed, 0 incomplete of 10 trials" in done.stdout
    assert evalkit("check").returncode == 3


def test_closed_pipe_is_no_error() -> None:
    """`evalkit schema | head` ends quietly."""
    shell = f"{sys.executable} -m evalkit.cli schema | head -c 10"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert os.waitstatus_to_exitcode(0) == done.returncode


def test_doctor_says_what_this_machine_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Every finding has a state; the exit code says whether the contract lane can run."""
    code = call(["doctor", "--json"])
    findings = {one["name"]: one["state"] for one in json.loads(capsys.readouterr().out)}
    assert findings["network barrier"] in {"good", "limited", "missing"}
    assert code == (2 if "missing" in findings.values() else 0)
    call(["doctor"])
    assert "evalkit-lab" in capsys.readouterr().out


def test_progress_shows_on_a_terminal_only() -> None:
    """A bar on a terminal's stderr; the table on stdout stays as it is."""
    terminal, end = os.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = ["run", TRAVEL, "--lane", "live", "--agent", RULES_AGENT, "--trials", "5"]
    done = subprocess.run(
        [sys.executable, "-m", "evalkit.cli", *words],
        stdout=subprocess.PIPE,
        stderr=end,
        check=True,
        timeout=120,
    )
    os.set_blocking(terminal, False)
    shown = os.read(terminal, 100_000)  # while the other end is open: afterwards it is gone
    os.close(end)
    os.close(terminal)
    assert b"travel-support" in shown
    assert b"trial/s" in shown
    assert b"25 passed" in done.stdout
    assert b"\r" not in done.stdout
