"""`evalkit baseline`: what is printed, and with which code it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import evalkit as ek
from evalkit.cli.baselines import baseline
from evalkit.errors import BaselineError, EvalkitError, UsageError

SUITE = """\
suite: small
scenarios:
  - id: greets
    input: Hello
    expect: {reply: {contains: hello}}
  - id: books
    input: Book it.
    expect: {reply: {contains: booked}}
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run an agent that never books, three times, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SUITE)
    return [
        str(
            ek.run_suite(
                "small.yaml",
                agent=lambda _: "Hello!",
                lane="live",
                seed=seed,
                isolation="none",
            ).folder
        )
        for seed in range(3)
    ]


def call(*arguments: str) -> tuple[int, str]:
    """Call the group, and give its code and what it prints."""
    done = CliRunner().invoke(baseline, arguments, standalone_mode=False)
    if isinstance(done.exception, EvalkitError):
        raise done.exception
    assert done.exception is None
    return done.return_value, done.output


def test_pin_list_show_verify(runs: list[str]) -> None:
    """The four commands, as a user types them one after the other."""
    code, told = call("pin", "main", *runs)
    assert code == 0
    assert "3 runs, 2 scenarios, 6 trials" in told
    assert "cost      unknown" in told
    assert "pinned data/baselines/main.json; review it and commit it like code" in told
    code, told = call("list")
    assert code == 0
    assert told.splitlines()[1].split()[:7] == ["main", "small", "live", "3", "2", "6", "50.0%"]
    code, told = call("show", "main")
    assert code == 0
    assert Path(runs[0]).name in told
    assert any(line.split()[0] == "books" and "0.0%" in line for line in told.splitlines() if line)
    assert call("verify", "main", *runs, "--suite", "small.yaml") == (
        0,
        "main: verified, its seal and 3 runs\n",
    )


def test_json_is_for_scripts(runs: list[str]) -> None:
    """Each command gives JSON and nothing else."""
    content = json.loads(call("pin", "main", *runs, "--json")[1])
    assert content == json.loads(Path("data/baselines/main.json").read_text())
    assert json.loads(call("show", "main", "--json")[1]) == content
    (row,) = json.loads(call("list", "--json")[1])
    assert (row["name"], row["rate"], row["problem"]) == ("main", 0.5, "")
    assert json.loads(call("verify", "main", "--json")[1]) == []


def test_what_cannot_be_pinned_is_wrong_usage(runs: list[str]) -> None:
    """All reasons stand there at once; nothing is written."""
    with pytest.raises(UsageError) as caught:
        call("pin", "main", runs[0], runs[0])
    assert str(caught.value).splitlines() == [
        "baseline 'main' is not pinned, for 2 reasons:",
        "  - a baseline pools at least 3 runs, and here are 2; fewer cannot show how much runs "
        "differ",
        f"  - {Path(runs[0]).name}: is given twice",
    ]
    assert not Path("data/baselines").exists()
    with pytest.raises(UsageError, match="no such run directory"):
        call("pin", "main", *runs[:2], runs[2] + "x")


def test_an_edited_baseline_is_not_shown(runs: list[str]) -> None:
    """Verify and list end with 1; show raises what the command line ends with 2 on."""
    call("pin", "main", *runs)
    path = Path("data/baselines/main.json")
    path.write_text(path.read_text().replace('"failed": [1, 1, 1]', '"failed": [0, 0, 0]'))
    code, told = call("verify", "main")
    assert code == 1
    assert "edited" in told
    assert "main: 1 wrong" in told
    code, told = call("list")
    assert code == 1
    assert told.startswith("cannot be used: data/baselines/main.json: was edited")
    with pytest.raises(BaselineError, match="was edited"):
        call("show", "main")


def test_what_became_of_the_suite_is_no_error(runs: list[str]) -> None:
    """Scenarios that changed are listed; pinning anew is for people to decide."""
    call("pin", "main", *runs)
    Path("small.yaml").write_text(SUITE.replace("contains: booked", "contains: done"))
    code, told = call("verify", "main", "--suite", "small.yaml")
    assert code == 0
    assert "books  has other content now; it failed 3 of 3 trials" in told
    assert "1 scenarios are not as they were when it was pinned" in told


def test_empty_folder_says_how_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No baselines is no error."""
    monkeypatch.chdir(tmp_path)
    assert call("list") == (0, "data/baselines: no baselines; pin one: evalkit baseline pin\n")
