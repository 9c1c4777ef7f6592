"""Suites held against the mutants of real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import SuiteError, UsageError
from evalkit.graders import Trial, grader
from evalkit.mutation import MutationReport, mutate_suite
from evalkit.results import Run
from evalkit.run import run_suite
from evalkit.suite import Suite, suite_from_data
from evalkit.trace import ToolCall, Trace

GOOD = "evalkit.examples.travel_rules:agent"
LOOPING = "evalkit.examples.travel_rules:looping"
N = [0]


@grader
def says_yes_every_other_time(_: Trial) -> bool:
    """Change its mind with every call."""
    N[0] += 1
    return bool(N[0] % 2)


def suite_of(*scenarios: Any, **more: Any) -> Suite:
    """Make a suite."""
    return suite_from_data({"suite": "s", **more, "scenarios": list(scenarios)})


BOOK: Any = {
    "id": "book",
    "input": "Book flight AA123 for Friday.",
    "expect": {"tools": [{"book": {"flight_id": "AA123"}}]},
}
WEATHER: Any = {
    "id": "weather",
    "input": "What's the weather in Denver?",
    "expect": {"tools": ["get_weather"], "reply": {"contains": "clear"}},
}


def run(suite: Suite, out: Path, agent: Any = GOOD, **more: Any) -> Run:
    """Run a suite here."""
    return run_suite(suite, agent=agent, lane="live", isolation="none", out=out, **more)


def test_report_counts_and_names_what_survived(tmp_path: Path) -> None:
    """The score is killed over killed and survived, and the frame has a row a mutant."""
    suite = suite_of(BOOK, WEATHER)
    report = mutate_suite(suite, run(suite, tmp_path))
    frame = report.to_frame()
    assert (report.suite, report.lane, report.left_out) == ("s", "live", ())
    assert report.n_survived > 5 < report.n_killed
    assert report.score == report.n_killed / (report.n_killed + report.n_survived)
    assert dict(frame.status.value_counts()) == {
        "killed": report.n_killed, "survived": report.n_survived,
    }  # fmt: skip
    holes = frame[frame.status == "survived"]
    assert {"change-date", "unexpected-tool"} <= set(holes.operator)
    assert holes.suggestion.str.len().min() > 0
    assert set(holes["where"].str.split(",").str[0]) <= {"under `expect`", "under `forbid`"}
    assert frame[frame.status == "killed"].reason.str.contains(":").all()


def test_the_agent_does_not_run_again(tmp_path: Path) -> None:
    """Mutants are graded from the ledger alone."""
    told: list[str] = []

    def agent(text: str) -> Trace:
        told.append(text)
        return Trace.from_calls([ToolCall("book", {"flight_id": "AA123"})], "Booked.")

    suite = suite_of(BOOK)
    done = run(suite, tmp_path, agent)
    mutate_suite(suite, done.folder)
    assert told == ["Book flight AA123 for Friday."]


def test_same_seed_same_report(tmp_path: Path) -> None:
    """Nothing is left to chance but what the seed chooses."""
    suite = suite_of(BOOK, WEATHER)
    done = run(suite, tmp_path)
    one, other, third = (
        mutate_suite(suite, done, max_mutants=6, seed=seed).results for seed in (1, 1, 2)
    )
    assert one == other
    assert one != third
    assert mutate_suite(suite, done) == mutate_suite(suite, done)


def test_mutants_are_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    """Each operator keeps some, and what is left out is said."""
    suite = suite_of(BOOK, WEATHER)
    done = run(suite, tmp_path)
    everything = mutate_suite(suite, done)
    some = mutate_suite(suite, done, max_mutants=8)
    assert len(some.results) == 16
    assert sum(some.untried.values()) == len(everything.results) - 16
    assert "not tried" in str(some)
    of_book = [result.operator for result in some.results if result.scenario == "book"]
    assert len(set(of_book)) == 8
    assert set(some.results) <= set(everything.results) or some.n_survived


def test_trials_that_do_not_pass_are_left_out_and_named(tmp_path: Path) -> None:
    """Nothing can be said of a scenario whose trial failed, or that did not run."""
    done = run(suite_of(BOOK, WEATHER), tmp_path)
    wrong = BOOK | {"expect": {"tools": ["get_weather"]}}
    report = mutate_suite(suite_of(wrong, WEATHER, BOOK | {"id": "new"}), done)
    left = dict(report.left_out)
    assert left["book"].startswith("trial 0 failed: truth: missing/incorrect: get_weather")
    assert left["new"] == "the run has no trial of it"
    assert {result.scenario for result in report.results} == {"weather"}
    assert "left out, no trial passes: 2" in str(report)


def test_the_suite_as_it_is_now_decides_what_passes(tmp_path: Path) -> None:
    """A trial that failed when it ran may pass by expectations that were put right since."""
    done = run(suite_of(BOOK | {"expect": {"tools": ["get_weather"]}}), tmp_path)
    assert done.status == "failed"
    assert mutate_suite(suite_of(BOOK), done).left_out == ()


def test_graders_that_change_their_mind_are_no_measure(tmp_path: Path) -> None:
    """A trial that passes only now and then is left out."""
    N[0] = 0
    done = run(suite_of(WEATHER), tmp_path)
    moody = WEATHER | {"graders": ["says_yes_every_other_time"]}
    report = mutate_suite(suite_of(moody), done)
    assert "now and another then" in report.left_out[0].reason
    assert report.score != report.score


def test_a_lost_ledger_is_left_out(tmp_path: Path) -> None:
    """What cannot be read was not measured."""
    suite = suite_of(BOOK, WEATHER)
    done = run(suite, tmp_path)
    done.ledger_path("book").unlink()
    (left,) = mutate_suite(suite, done).left_out
    assert left.scenario == "book"
    assert "cannot read the ledger" in left.reason


def test_several_trials_of_a_scenario_are_broken_if_asked_for(tmp_path: Path) -> None:
    """By default the first trial that passes stands for its scenario."""
    suite = suite_of(WEATHER)
    done = run(suite, tmp_path, n_trials=3)
    first = mutate_suite(suite, done)
    both = mutate_suite(suite, done, n_trials=2)
    assert {result.trial for result in first.results} == {0}
    assert {result.trial for result in both.results} == {0, 1}
    assert len(both.results) == 2 * len(first.results)


def test_operators_can_be_chosen(tmp_path: Path) -> None:
    """Only the named ones are used; an unknown one is refused with the nearest name."""
    suite = suite_of(WEATHER)
    done = run(suite, tmp_path)
    report = mutate_suite(suite, done, operators=["cut-reply", "drop-call"])
    assert {result.operator for result in report.results} == {"cut-reply", "drop-call"}
    with pytest.raises(UsageError, match="did you mean 'drop-call'"):
        mutate_suite(suite, done, operators=["drop-cal"])
    with pytest.raises(UsageError, match="at least 1"):
        mutate_suite(suite, done, max_mutants=0)


def test_further_graders_of_the_run_take_part(tmp_path: Path) -> None:
    """A grader that the run was given notices mutants, too."""

    @grader(name="no_long_word")
    def no_long_word(trial: Trial) -> bool:
        return "other" not in str(trial.trace.tool_calls[:1])

    suite = suite_of(WEATHER)
    done = run(suite, tmp_path, graders=["no_long_word"])
    (result,) = mutate_suite(suite, done, operators=["change-text"]).results
    assert result.status == "killed"
    assert result.reason.startswith("no_long_word")


def test_a_wrong_suite_is_refused(tmp_path: Path) -> None:
    """All problems of the file are said before anything runs."""
    path = tmp_path / "bad.yaml"
    path.write_text("suite: s\nscenarios: []\n")
    with pytest.raises(SuiteError):
        mutate_suite(path, tmp_path)


# --- the report ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> MutationReport:
    """Give a report with holes, and with a scenario left out."""
    suite = suite_of(BOOK, WEATHER, BOOK | {"id": "never", "expect": {"tools": []}})
    return mutate_suite(suite, run(suite, tmp_path_factory.mktemp("runs")))


def test_text_has_the_score_a_table_and_each_survivor(report: MutationReport) -> None:
    """What closes several holes of a scenario stands below them once."""
    text = str(report)
    assert text.startswith(f"mutation score of s: {100 * report.score:.1f}%, {report.n_killed} of")
    assert "noticed  calls  arguments  tools  claims  reply    all" in text
    assert text.count("survived  ") == report.n_survived
    assert "would be noticed with, under `expect`, in place of its `tools`:\n    tools:" in text
    assert text.count("would be noticed with") < report.n_survived
    assert "  never: trial 0 failed: " in text


def test_json_and_frame_agree(report: MutationReport) -> None:
    """Both have every mutant; a score that nobody knows is null."""
    told = report.to_json()
    assert len(told["mutants"]) == len(report.to_frame()) == len(report.results)
    assert told["score"] == report.score
    empty = MutationReport("s", "r", "live", 0, (), ())
    assert empty.to_json()["score"] is None
    assert empty.score != empty.score
    assert not empty.reaches(0.0)
    assert list(empty.to_frame().columns) == list(report.to_frame().columns)
    assert "nothing could be measured" in str(empty)


def test_html_escapes_what_agents_wrote(tmp_path: Path) -> None:
    """Replies and arguments are untrusted."""
    evil = "<img src=x onerror=alert(1)> is fine"

    def agent(_: str) -> Trace:
        return Trace.from_calls([ToolCall("book", {"flight_id": "AA123", "note": evil})], evil)

    suite = suite_of(BOOK)
    html = mutate_suite(suite, run(suite, tmp_path, agent))._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html
    assert "survivors" in html


def test_incomplete_mutants_count_against_a_threshold(report: MutationReport) -> None:
    """Neither killed nor survived, they lower what a threshold is held to."""
    from dataclasses import replace

    unsure = tuple(
        replace(result, status="incomplete") if result.operator == "drop-call" else result
        for result in report.results
        if result.status == "killed"
    )
    changed = replace(report, results=unsure)
    assert changed.score == 1.0
    assert changed.score_low == changed.n_killed / (changed.n_killed + changed.n_incomplete) < 1
    assert not changed.reaches(1.0)
    assert changed.reaches(changed.score_low)
    assert "could not be graded" in str(changed)
