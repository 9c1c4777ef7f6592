"""The pytest plugin, in real pytest processes: what is collected, how results are told."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from evalkit import shipped

pytest_plugins = ("pytester",)

TRAVEL = shipped.suite("travel").read_text(encoding="utf-8")
RULES = "evalkit.examples.travel_rules"
BUGS = "evalkit.examples.travel.bugs"
LIVE = ("--evalkit-lane", "live", "--evalkit-agent", f"{RULES}:agent")
IDS = [
    "weather-gate-book",
    "search-before-book",
    "no-book-when-raining",
    "weather-only",
    "ambiguous-needs-search",
]
PLUGINS = ("-p", "evalkit.pytest_plugin", "-p", "xdist", "-p", "pytest_timeout")
Pytest = Callable[..., pytest.RunResult]


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "CI", "BUILD_NUMBER", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    # Those of others take longer to load than all that is tested here.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def run(pytester: pytest.Pytester) -> Pytest:
    """Run pytest in a process of its own, in a folder with the travel suite."""
    pytester.path.joinpath("travel.yaml").write_text(TRAVEL, encoding="utf-8")

    def run_pytest(*arguments: str) -> pytest.RunResult:
        command = (sys.executable, "-m", "pytest", *PLUGINS, "-W", "error", "-rA", *arguments)
        return pytester.run(*command, timeout=240)

    return run_pytest


def told(result: pytest.RunResult) -> dict[str, str]:
    """Give each item's outcome by its name, from the short summary."""
    pattern = r"^(PASSED|FAILED|ERROR|XFAIL|SKIPPED) \S+?::(\S+)"
    return {name: word for word, name in re.findall(pattern, result.stdout.str(), re.MULTILINE)}


def runs_in(folder: Path) -> list[Path]:
    """List the run directories of a folder."""
    return [path.parent for path in folder.glob("**/manifest.json")]


def test_suite_file_is_a_test_file(run: Pytest, pytester: pytest.Pytester) -> None:
    """Each scenario is a test, the whole suite another; the run is made once, and named."""
    result = run("travel.yaml", "--evalkit-out", "kept")
    assert result.ret == 0
    assert told(result) == dict.fromkeys([*IDS, "_whole_suite"], "PASSED")
    (folder,) = runs_in(pytester.path / "kept")
    result.stdout.fnmatch_lines(
        [
            "*travel-support (contract lane): 5 passed, 0 failed, 0 incomplete of 5 trials*",
            f"*run {folder}",
        ]
    )


@pytest.mark.parametrize(
    ("bug", "scenario", "reason"),
    [
        ("default_answer", "weather-only", "truth: missing/incorrect: get_weather"),
        ("looping", "ambiguous-needs-search", "were used before this request"),
    ],
)
def test_failure_is_told_by_its_reason_alone(
    run: Pytest, bug: str, scenario: str, reason: str
) -> None:
    """The planted mistake fails its scenario and the whole; no traceback, no other test."""
    result = run("travel.yaml", "--evalkit-agent", f"{BUGS}:{bug}")
    assert result.ret == 1
    good = {name: "PASSED" for name in IDS if name != scenario}
    assert told(result) == {**good, scenario: "FAILED", "_whole_suite": "FAILED"}
    text = result.stdout.str()
    assert reason in text
    assert f"1 of 5 scenarios not passed: {scenario}" in text
    assert "Traceback" not in text
    assert "suite_files.py" not in text
    assert re.search(rf"evalkit show \S+ {scenario}", text)


def test_junit_of_pytest_names_the_reason(run: Pytest, pytester: pytest.Pytester) -> None:
    """And the line of the suite's file, and the time of the trial itself."""
    run("travel.yaml", *LIVE[:2], "--evalkit-agent", f"{RULES}:wrong_id", "--junit-xml", "j.xml")
    failure = ET.parse(pytester.path / "j.xml").find(
        ".//testcase[@name='weather-gate-book']/failure"
    )
    assert failure is not None
    assert str(failure.get("message")).startswith("truth: missing/incorrect: book")


def test_incomplete_is_an_error(run: Pytest, pytester: pytest.Pytester) -> None:
    """What could not be measured is neither passed, nor failed, nor skipped."""
    reply = "Booked Monday, Denver clear, did not book, options?"
    pytester.makepyfile(chatty=f"def agent(text):\n    return {reply!r}\n")
    result = run("travel.yaml", "--evalkit-lane", "live", "--evalkit-agent", "chatty:agent",
                 "--junit-xml", "j.xml")  # fmt: skip
    assert result.ret == 1
    assert set(told(result).values()) == {"ERROR"}
    assert len(told(result)) == 6
    assert "nobody saw" in result.stdout.str()
    assert "5 of 5 scenarios incomplete" in result.stdout.str()
    root = ET.parse(pytester.path / "j.xml").getroot()[0]
    assert (root.get("errors"), root.get("failures"), root.get("skipped")) == ("6", "0", "0")


def test_xdist_runs_the_suite_once(run: Pytest, pytester: pytest.Pytester) -> None:
    """Whichever worker is first runs it; the others wait; the whole sees all outcomes."""
    agent = ("--evalkit-lane", "live", "--evalkit-agent", f"{RULES}:wrong_id")
    result = run("travel.yaml", *agent, "-n", "3", "--evalkit-out", "kept")
    assert result.ret == 1
    good = dict.fromkeys(IDS, "PASSED")
    assert told(result) == {**good, "weather-gate-book": "FAILED", "_whole_suite": "FAILED"}
    assert len(runs_in(pytester.path / "kept")) == 1
    assert "1 of 5 scenarios not passed: weather-gate-book" in result.stdout.str()
    assert "FAILED travel.yaml::weather-gate-book - truth: missing/incorrect" in result.stdout.str()
    assert result.stdout.str().count("5 scenarios: too few") >= 1


SELECTIONS = {
    "keyword": (("-k", "weather-only"), ["weather-only"]),
    "tag-as-keyword": (("-k", "sneaky"), ["ambiguous-needs-search", "no-book-when-raining"]),
    "tag-as-marker": (
        ("-m", "booking and not condition", "--strict-markers"),
        ["search-before-book"],
    ),
    "keyword-with-the-whole": (("-k", "weather-only or _whole_suite"), ["weather-only"]),
    "without-the-whole": (("-k", "not _whole_suite"), sorted(IDS)),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_only_what_is_selected_is_run(run: Pytest, pytester: pytest.Pytester, name: str) -> None:
    """The item for the whole suite steps aside where only a part is run."""
    arguments, selected = SELECTIONS[name]
    result = run("travel.yaml", *LIVE, *arguments, "--evalkit-out", "kept")
    assert result.ret == 0
    assert told(result) == dict.fromkeys(selected, "PASSED")
    (folder,) = runs_in(pytester.path / "kept")
    plan = json.loads((folder / "manifest.json").read_text())["plan"]
    assert sorted(each["id"] for each in plan) == selected


def test_one_node_id_runs_one_scenario(run: Pytest, pytester: pytest.Pytester) -> None:
    """As pytest names it."""
    result = run("travel.yaml::weather-only", *LIVE)
    assert told(result) == {"weather-only": "PASSED"}


def test_whole_suite_alone_runs_all_of_it(run: Pytest, pytester: pytest.Pytester) -> None:
    """It never passes without every outcome."""
    agent = ("--evalkit-lane", "live", "--evalkit-agent", f"{RULES}:wrong_id")
    result = run("travel.yaml::_whole_suite", *agent)
    assert told(result) == {"_whole_suite": "FAILED"}
    assert "1 of 5 scenarios not passed: weather-gate-book" in result.stdout.str()


def test_last_failed_runs_what_failed_and_then_the_whole(
    run: Pytest, pytester: pytest.Pytester
) -> None:
    """First the scenario that failed alone; once it is mended, the suite as a whole."""
    bad = ("travel.yaml", "--evalkit-lane", "live", "--evalkit-agent", f"{RULES}:wrong_id")
    run(*bad)
    assert told(run(*bad, "--lf")) == {"weather-gate-book": "FAILED"}
    good = ("travel.yaml", *LIVE, "--lf")
    assert told(run(*good)) == {"weather-gate-book": "PASSED"}
    assert told(run(*good)) == {"_whole_suite": "PASSED"}


def test_stop_at_the_first_failure(run: Pytest) -> None:
    """`-x` ends the reports; the whole suite is not told as passed."""
    agent = ("--evalkit-lane", "live", "--evalkit-agent", f"{RULES}:wrong_id")
    result = run("travel.yaml", *agent, "-x")
    assert result.ret == 1
    assert told(result) == {"weather-gate-book": "FAILED"}


BOOKS_SOME = """\
def agent(text):
    from evalkit.trace import Trace
    return Trace.from_calls([("book", {})] if text == "always" else [], reply="done")
"""
RATES = """\
suite: rates
agent: books_some:agent
scenarios:
  - {id: a, input: always, expect: {tools: [book]}}
  - {id: b, input: always, expect: {tools: [book]}}
  - {id: c, input: always, expect: {tools: [book]}}
  - {id: d, input: never, expect: {tools: [book]}BAR}
"""
FLOORS = {
    "no-floor": ("", None, {"d": "FAILED", "_whole_suite": "FAILED"}),
    "above-the-floor": ("", "0.7", {"d": "XFAIL", "_whole_suite": "PASSED"}),
    "below-the-floor": ("", "0.8", {"d": "XFAIL", "_whole_suite": "FAILED"}),
    "must-pass": (", must_pass: true", "0.7", {"d": "FAILED", "_whole_suite": "FAILED"}),
    "own-rate-missed": (", min_pass_rate: 0.5", "0.7", {"d": "FAILED", "_whole_suite": "FAILED"}),
    "own-rate-met": (", min_pass_rate: 0.0", None, {"d": "PASSED", "_whole_suite": "PASSED"}),
}


@pytest.mark.parametrize("name", FLOORS)
def test_live_lane_floor(run: Pytest, pytester: pytest.Pytester, name: str) -> None:
    """With a floor the rate decides, but for scenarios of which the suite asks more."""
    bar, floor, expected = FLOORS[name]
    pytester.makepyfile(books_some=BOOKS_SOME)
    pytester.path.joinpath("rates.yaml").write_text(RATES.replace("BAR", bar))
    arguments = ("--evalkit-floor", floor) if floor else ()
    result = run("rates.yaml", "--evalkit-lane", "live", "--evalkit-trials", "2", *arguments)
    assert told(result) == {**dict.fromkeys("abc", "PASSED"), **expected}
    assert result.ret == ("FAILED" in expected.values())
    assert "pass rate 75.0% over 4 scenarios, 95% interval" in result.stdout.str()


def test_floor_excuses_nothing_where_the_whole_is_not_run(
    run: Pytest, pytester: pytest.Pytester
) -> None:
    """Nobody would keep it."""
    pytester.makepyfile(books_some=BOOKS_SOME)
    pytester.path.joinpath("rates.yaml").write_text(RATES.replace("BAR", ""))
    live = ("rates.yaml", "--evalkit-lane", "live", "--evalkit-floor", "0.1")
    assert told(run(*live, "-k", "d and not _whole_suite")) == {"d": "FAILED"}


BROKEN = {
    "two-problems": (
        "suite: s\nscenarios:\n  - {id: a, inptu: hi}\n  - {id: a, input: x, expect: {tool: []}}\n",
        ["*broken.yaml:3: *inptu*", "*broken.yaml:4: *"],
    ),
    "no-yaml": ("suite: s\nscenarios: [\n", ["*broken.yaml:*no YAML*"]),
    "no-scenario": ("suite: s\nscenarios: []\n", ["*scenarios: is empty*"]),
    "no-script": (
        "suite: s\nscenarios:\n  - {id: a, input: x, expect: {reply: {contains: y}}}\n",
        ["*--lane live*"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_wrong_suite_is_a_collection_error(
    run: Pytest, pytester: pytest.Pytester, name: str
) -> None:
    """With every problem, without a traceback."""
    text, lines = BROKEN[name]
    pytester.path.joinpath("broken.yaml").write_text(text)
    result = run("broken.yaml")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(lines)
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--evalkit-lane", "contrct"), "*choose contract, live or quality*"),
        (("--evalkit-trials", "many"), "*is no whole number*"),
        (("--evalkit-floor", "90"), "*rate between 0 and 1*"),
        (("--evalkit-trials", "0"), "*must be at least 1*"),
    ],
    ids=["lane", "trials", "floor", "no-trial"],
)
def test_wrong_option_is_never_a_pass(run: Pytest, options: tuple[str, ...], line: str) -> None:
    """It says what is right."""
    result = run("travel.yaml", *options)
    assert result.ret != 0
    assert "PASSED" not in told(result).values()
    result.stdout.fnmatch_lines([line])


def test_agent_that_cannot_be_reached_is_an_error_of_every_scenario(run: Pytest) -> None:
    """Found out once, told of each."""
    result = run("travel.yaml", "--evalkit-agent", "nobody:agent")
    assert result.ret == 1
    assert told(result) == dict.fromkeys([*IDS, "_whole_suite"], "ERROR")
    assert "no module" in result.stdout.str()


STRAY = {
    "settings": "version: 3\nservices: {}\n",
    "not-even-yaml": "{{ helm }}\n  - : [\n",
    "binary": "\x00\x01",
    "key-deeper-down": "jobs:\n  test:\n      suite: x\n",
}


def test_stray_yaml_is_nobodys_business(run: Pytest, pytester: pytest.Pytester) -> None:
    """Not under the folder of suites, not beside tests, not even if named."""
    folder = pytester.mkdir("suites")
    for name, text in STRAY.items():
        folder.joinpath(f"{name}.yaml").write_text(text)
        pytester.path.joinpath(f"{name}.yml").write_text(text)
    pytester.makepyfile(test_own="def test_own(): pass")
    pytester.makeini("[pytest]\nevalkit_suites = suites\n")
    result = run()
    assert result.ret == 0
    assert told(result) == {"test_own": "PASSED"}
    assert run("settings.yml").ret == pytest.ExitCode.USAGE_ERROR


def test_suites_of_the_ini_file_are_collected(run: Pytest, pytester: pytest.Pytester) -> None:
    """Bare `pytest` meets them; options have a place there too."""
    pytester.mkdir("suites")
    pytester.path.joinpath("travel.yaml").rename(pytester.path / "suites" / "travel.yaml")
    assert run().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    pytester.makeini(
        "[pytest]\nevalkit_suites = suites\nevalkit_lane = live\nevalkit_trials = 2\n"
        f"evalkit_agent = {RULES}:agent\nevalkit_out = kept\n"
    )
    result = run()
    assert told(result) == dict.fromkeys([*IDS, "_whole_suite"], "PASSED")
    assert "10 passed, 0 failed, 0 incomplete of 10 trials" in result.stdout.str()
    assert len(runs_in(pytester.path / "kept")) == 1


TRAPS = """\
suite: traps
agent: books_some:agent
scenarios:
  - {id: a, tags: [skip, xfail, "a: b (c)", _x, slow], input: never, expect: {tools: [book]}}
"""


def test_tags_are_no_orders_to_pytest(run: Pytest, pytester: pytest.Pytester) -> None:
    """A tag `skip` or `xfail` must not hide a failure."""
    pytester.makepyfile(books_some=BOOKS_SOME)
    pytester.path.joinpath("traps.yaml").write_text(TRAPS)
    live = ("traps.yaml", "--evalkit-lane", "live", "--strict-markers")
    assert told(run(*live)) == {"a": "FAILED", "_whole_suite": "FAILED"}
    assert told(run(*live, "-m", "slow")) == {"a": "FAILED"}


EVERY_CONTROL = """\
def agent(text):
    controls = "".join(map(chr, range(0x300))) + "\\ud800\\ufffe ]]>"
    raise ValueError(controls + "\\n::add-mask::x\\n##[set-output]")
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["here", "xdist"])
def test_any_text_is_told(
    run: Pytest,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    workers: tuple[str, ...],
) -> None:
    """Control characters, lone surrogates, orders to a runner: shown, not obeyed."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    pytester.makepyfile(books_some=EVERY_CONTROL)
    pytester.path.joinpath("traps.yaml").write_text(TRAPS)
    result = run("traps.yaml", "--evalkit-lane", "live", "--junit-xml", "j.xml", *workers)
    assert told(result) == {"a": "FAILED", "_whole_suite": "FAILED"}
    assert not re.search(r"[\x00-\x08\x1b]", result.stdout.str())
    assert not re.search(r"(?m)^\s*::|##\[", result.stdout.str())
    text = "".join(ET.parse(pytester.path / "j.xml").getroot().itertext())
    assert "␀␁␂" in text


OWN_TESTS = """\
import pytest
from evalkit.testing import assert_passed

def test_good(evalkit_run, tmp_path):
    run = evalkit_run("travel.yaml", agent="{rules}:agent", lane="live")
    assert_passed(run)
    assert run.folder.is_relative_to(tmp_path)

def test_bad(evalkit_run):
    run = evalkit_run("travel.yaml", agent="{rules}:wrong_id", lane="live",
                      scenarios=["weather-gate-book"])
    assert_passed(run)

def test_trace(evalkit_run):
    run = evalkit_run("travel.yaml", agent="{rules}:agent", lane="live",
                      scenarios=["weather-only"])
    assert [call.name for call in run.trace("weather-only").tool_calls] == ["get_weather"]
"""


def test_fixture_runs_suites_in_tests_of_ones_own(run: Pytest, pytester: pytest.Pytester) -> None:
    """What failed is named with its reason."""
    pytester.makepyfile(test_mine=OWN_TESTS.format(rules=RULES))
    result = run("test_mine.py")
    assert told(result) == {"test_good": "PASSED", "test_bad": "FAILED", "test_trace": "PASSED"}
    result.stdout.fnmatch_lines(["*weather-gate-book failed: truth: missing/incorrect: book*"])
    assert "testing.py" not in result.stdout.str()


def _marked_processes(mark: str) -> Iterator[str]:
    """Find processes that have a variable in their environment."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and mark.encode() in (entry / "environ").read_bytes():
                yield entry.name
        except OSError:
            continue


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
def test_nothing_is_left_behind(
    run: Pytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process, and no file but pytest's own: runs lie in its temporary folder."""
    monkeypatch.setenv("EVALKIT_LEFT_BEHIND", pytester.path.name)
    before = {path.name for path in pytester.path.iterdir()}
    assert run("travel.yaml", "-n", "2", "-p", "no:cacheprovider").ret == 0
    assert list(_marked_processes(f"EVALKIT_LEFT_BEHIND={pytester.path.name}")) == []
    after = {path.name for path in pytester.path.iterdir()}
    assert after - before <= {"__pycache__", "stdout", "stderr"}


def test_plugin_costs_nothing_where_there_is_no_suite(pytester: pytest.Pytester) -> None:
    """It is loaded into every pytest: no other part of evalkit may come with it."""
    script = (
        "import sys, time, pytest; a = time.process_time(); import evalkit.pytest_plugin; "
        "b = time.process_time(); print(b - a); print(*sorted(m for m in sys.modules "
        "if m.split('.')[0] in {'evalkit', 'pandas', 'numpy', 'pydantic', 'yaml'}))"
    )
    cost, modules = pytester.run(sys.executable, "-c", script).outlines
    assert modules.split() == ["evalkit", "evalkit.pytest_plugin"]
    assert float(cost) < 0.03


def test_options_are_in_the_help(run: Pytest) -> None:
    """With what they default to."""
    text: Any = run("--help").stdout.str()
    for name in ("lane", "trials", "seed", "agent", "floor", "out", "network-barrier"):
        assert f"--evalkit-{name}" in text
    assert "evalkit_suites" in text
