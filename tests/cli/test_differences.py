"""`evalkit diff`: two runs, two trials, and what a terminal may be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.cli.app import call
from evalkit.importers import import_run
from evalkit.run import run_suite
from evalkit.suite import suite_from_data
from evalkit.trace import Trace

SCENARIOS = [
    {"id": "book", "input": "Book it.", "expect": {"tools": ["book"]}},
    {"id": "ask", "input": "Ask.", "expect": {"tools": ["ask"]}},
]


def _good(text: str) -> Trace:
    name = "book" if "Book" in text else "ask"
    return Trace.from_calls([(name, {"note": "x" * 200 + "same"})], "Done.", user=text)


def _bad(text: str) -> Trace:
    if "Ask" in text:
        return _good(text)
    return Trace.from_calls([("book", {"note": "x" * 200 + "\x1b[2J"})], "Done.", user=text)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two runs that are the same, and one that differs in a hostile text."""
    suite = suite_from_data({"suite": "s", "scenarios": SCENARIOS})
    found = {}
    for name, agent in (("one", _good), ("same", _good), ("other", _bad)):
        out = tmp_path_factory.mktemp(name)
        run = run_suite(suite, agent=agent, lane="live", isolation="none", out=out)
        found[name] = str(run.folder)
    return found


def test_equal_runs_exit_with_0(
    folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No trial differs, and a single trial says so too."""
    assert call(["diff", folders["one"], folders["same"]]) == 0
    assert capsys.readouterr().out == "same: 2 trials\n"
    assert call(["diff", folders["one"], folders["same"], "book"]) == 0
    assert "book, trial 0: same, " in capsys.readouterr().out


def test_runs_that_differ_name_the_trials(
    folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, the trials, and how to look closer; in canonical order as well."""
    for more in ([], ["--canonical"]):
        assert call(["diff", folders["one"], folders["other"], *more]) == 1
        told = capsys.readouterr().out
        assert told.startswith("1 of 2 trials differ")
        assert "evalkit diff RUN_A RUN_B book 0" in told


def test_the_first_event_that_differs_is_shown(
    folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Key, both versions near the place where they part, context; and nothing steers."""
    assert call(["diff", folders["one"], folders["other"], "book", "0"]) == 1
    told = capsys.readouterr().out
    assert "event 4 differs at data.args.note" in told
    assert 'xsame"' in told
    assert "u001b[2J" in told
    assert "\x1b" not in told
    assert "  turn " in told
    assert "1 values differ in all" in told


def test_json_holds_the_difference(
    folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts get every leaf and the first event."""
    assert call(["diff", folders["one"], folders["other"], "book", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["leaves"] == ["[3].data.args.note"]
    assert (told["first"]["event"], told["first"]["path"]) == (4, "data.args.note")
    assert call(["diff", folders["one"], folders["same"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n_trials": 2, "differ": []}


def test_a_shorter_ledger_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An event that only one run has is shown against the end of the other."""
    folders = []
    for n_calls in (1, 2):
        calls = [
            {"id": str(n), "type": "function", "function": {"name": "x", "arguments": "{}"}}
            for n in range(n_calls)
        ]
        messages = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}]
        path = tmp_path / f"{n_calls}.json"
        path.write_text(json.dumps({"scenario": "talk", "messages": messages}))
        folders.append(str(import_run("openai", path, out=tmp_path).folder))
    assert call(["diff", *folders, "talk"]) == 1
    assert "differs at kind" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere"], "nowhere: no such run directory"),
        (["SAME", "boook"], "no scenario 'boook' in this run; did you mean 'book'?"),
        (["SAME", "book", "3"], "has trials 0 to 0, not 3"),
    ],
)
def test_wrong_usage_exits_with_3(
    folders: dict[str, str],
    arguments: list[str],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run, scenario or trial that is not there is wrong usage."""
    given = [folders["same"] if argument == "SAME" else argument for argument in arguments]
    assert call(["diff", folders["one"], *given]) == 3
    assert problem in capsys.readouterr().err
