"""``evalkit gate``: what it prints, and how it exits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evalkit.cli.app import call
from evalkit.grade import Ending, Grade, Status
from evalkit.ledger import digest, event_line
from evalkit.recording import ledger_of
from evalkit.results import Manifest, PlannedScenario, RunWriter, TrialRecord
from evalkit.trace import Trace

WORDS: Mapping[str, tuple[Status, str]] = {
    "p": ("passed", ""),
    "f": ("failed", "grader_failed"),
    "i": ("incomplete", "grader_raised"),
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where there is nothing, and where no runner looks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


def write_run(name: str, outcomes: Mapping[str, str], *, lane: str = "live", seed: int = 0) -> str:
    """Write a run directory from outcomes such as ``{"book": "ppf"}``; give its path."""
    plan = tuple(PlannedScenario(key, len(o), hash=f"of-{key}") for key, o in outcomes.items())
    told: dict[str, Any] = {"suite_hash": "h", "agent": "a", "agent_hash": "b", "seed": seed}
    writer = RunWriter.create(Path("runs") / name, Manifest(name, "suite", lane, plan, **told))
    for scenario, letters in outcomes.items():
        for trial, letter in enumerate(letters):
            _add(writer, scenario, trial, letter=letter, reply=f"{name} {trial}")
    writer.finish()
    return f"runs/{name}"


def _add(writer: RunWriter, scenario: str, trial: int, *, letter: str, reply: str) -> None:
    """Write one trial with its ledger."""
    status, code = WORDS[letter]
    reason = "" if status == "passed" else "missing: book"
    trace = Trace.from_calls([], reply=reply)
    events = ledger_of(trace, scenario=scenario, trial=trial, lane="live", ending=Ending())
    grades = (Grade("truth", 1.0 if status == "passed" else 0.0, reason=reason),)
    record = TrialRecord(
        scenario, trial, status, code, reason, digest=digest(events), grades=grades
    )
    writer.add(record, b"".join(map(event_line, events)))


def some(n: int, letters: str) -> dict[str, str]:
    """Give the same outcomes to n scenarios."""
    return {f"s{i:03}": letters for i in range(n)}


@pytest.mark.parametrize(
    ("outcomes", "code", "word"),
    [
        ({"a": "p", "b": "p"}, 0, "PASS"),
        ({"a": "p", "b": "f"}, 1, "FAIL"),
        ({"a": "p", "b": "i"}, 2, "INVALID"),
    ],
    ids=["passed", "failed", "incomplete"],
)
def test_contract_runs_need_no_baseline(
    capsys: pytest.CaptureFixture[str], outcomes: dict[str, str], code: int, word: str
) -> None:
    """A run of scripted trials is gated as it is: 0, 1 or 2."""
    assert call(["gate", write_run("r", outcomes, lane="contract")]) == code
    assert capsys.readouterr().out.startswith(word)


@pytest.mark.parametrize(
    ("letters", "options", "code"),
    [
        ("ppp", ["--floor", "0.9"], 0),
        ("fff", ["--floor", "0.9"], 1),
        ("iii", ["--floor", "0.9"], 2),
        ("ppp", [], 3),
        ("ppp", ["--floor", "90"], 3),
        ("ppp", ["--baseline", "nobody"], 3),
    ],
    ids=["above", "below", "unmeasured", "nothing-to-decide-by", "percent", "no-baseline"],
)
def test_exit_codes_tell_what_happened(letters: str, options: list[str], code: int) -> None:
    """0 passed, 1 failed, 2 could not be measured, 3 was asked wrongly."""
    assert call(["gate", write_run("r", some(20, letters)), *options]) == code


def test_inconclusive_is_loud_and_fails_only_when_told_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Too few scenarios exit with 0 and a warning, or with 2 under ``fail``."""
    run = write_run("r", some(3, "ppp"))
    assert call(["gate", run, "--floor", "0.5"]) == 0
    assert capsys.readouterr().out.startswith("INCONCLUSIVE  r  (not a pass")
    assert call(["gate", run, "--floor", "0.5", "--on-inconclusive", "fail"]) == 2


def test_pinned_baseline_is_found_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Three runs are pinned, a fourth is gated; one of the three is not."""
    good = {f"s{i:03}": "ppp" if i % 5 else "fff" for i in range(200)}
    runs = [write_run(f"r{seed}", good, seed=seed) for seed in range(3)]
    assert call(["baseline", "pin", "main", *runs]) == 0
    fourth, worse = write_run("r9", good, seed=9), write_run("w", some(200, "fpf"), seed=8)
    capsys.readouterr()
    assert call(["gate", fourth, "--baseline", "main"]) == 0
    assert "against baseline 'main'" in capsys.readouterr().out
    assert call(["gate", worse, "--baseline", "main"]) == 1
    assert call(["gate", runs[0], "--baseline", "main"]) == 2
    assert "compared with itself" in capsys.readouterr().out


def test_an_edited_baseline_decides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline whose counts were touched up exits with 2 and says what to do."""
    runs = [write_run(f"r{seed}", some(20, "ppf"), seed=seed) for seed in range(3)]
    assert call(["baseline", "pin", "main", *runs]) == 0
    path = Path("data/baselines/main.json")
    path.write_text(path.read_text().replace('"failed": [1, 1, 1]', '"failed": [3, 3, 3]', 1))
    capsys.readouterr()
    assert call(["gate", write_run("r9", some(20, "ppf")), "--baseline", "main"]) == 2
    assert "was edited" in capsys.readouterr().err


def test_a_baseline_of_other_graders_is_invalid(capsys: pytest.CaptureFixture[str]) -> None:
    """Grades of another grader, or version of it, are not comparable."""
    runs = [write_run(f"r{seed}", some(20, "ppp"), seed=seed) for seed in range(3)]
    assert call(["baseline", "pin", "main", *runs]) == 0
    run = Path(write_run("r9", some(20, "ppp"), seed=9))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["graders"] = {"truth": "2"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    assert call(["gate", str(run), "--baseline", "main"]) == 2
    assert "not comparable with baseline 'main'" in capsys.readouterr().out


def test_verdict_is_written_as_json_and_junit(capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts get all checks as JSON; a CI dashboard gets the verdict as a test case."""
    run = write_run("r", some(20, "fff"))
    assert call(["gate", run, "--floor", "0.9", "--json", "--junit", "out/gate.xml"]) == 1
    told = json.loads(capsys.readouterr().out)["verdict"]
    assert (told["verdict"], told["exit_code"]) == ("FAIL", 1)
    assert {check["name"] for check in told["checks"]} == {"floor", "trials"}
    cases = ElementTree.parse("out/gate.xml").getroot().iter("testcase")
    assert any(case.find("failure") is not None for case in cases)
