"""tau-bench: rewards, the traps of its files, and gold actions against calls."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import TraceError
from evalkit.graders import Trial, grade_truth
from evalkit.importers import SUITE_FILE, ImportedTrial, import_run, read
from evalkit.suite import Scenario, Suite
from evalkit.suite.loading import parse_suite, suite_from_data

TWIN = Path(__file__).parents[2] / "data" / "traces" / "tau_bench_twin.json"
WRITES = ("rent_bike", "return_bike")


def _twin(**options: Any) -> dict[tuple[str, int], ImportedTrial]:
    trials = read("tau-bench", TWIN, **options).trials
    return {(trial.scenario, trial.trial): trial for trial in trials}


def _changed(folder: Path, number: int, **fields: Any) -> list[ImportedTrial]:
    """Read the twin with fields of one row replaced."""
    rows = json.loads(TWIN.read_text())
    rows[number] = {**copy.deepcopy(rows[number]), **fields}
    path = folder / "changed.json"
    path.write_text(json.dumps(rows))
    return list(read("tau-bench", path).trials)


def test_tau_bench_trials_and_rewards() -> None:
    """Every row is a trial of its task, and the reward is its grade."""
    trials = _twin()
    assert len(trials) == 12
    assert {scenario for scenario, _ in trials} == {"task-0", "task-1", "task-2", "task-3"}
    assert sum(trial.grades[0].value or 0 for trial in trials.values()) == 8
    assert {trial.grades[0].grader for trial in trials.values()} == {"reward"}


def test_tau_bench_null_reward_info_is_a_failure_that_says_so() -> None:
    """A reward that was never computed keeps its 0, with the reason that steps ran out."""
    grade = _twin()["task-3", 2].grades[0]
    assert (grade.value, grade.status) == (0.0, "failed")
    assert "never computed" in grade.reason
    assert "ran out of steps" in grade.reason


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (("task-0", 0), "the database ended as the gold actions leave it"),
        (("task-0", 2), "the database did not end as the gold actions leave it"),
        (("task-1", 0), "the agent said everything that it had to say"),
        (("task-1", 1), "the agent never said: 42"),
    ],
)
def test_tau_bench_both_shapes_of_reward_info_give_a_reason(
    key: tuple[str, int], reason: str
) -> None:
    """``r_actions`` and ``r_outputs`` are two shapes; each is put into a sentence."""
    assert _twin()[key].grades[0].reason == reason


def test_tau_bench_pairs_repeated_call_ids_by_position() -> None:
    """Two calls with one id keep their own results."""
    calls = _twin()["task-3", 0].trace.tool_calls
    assert {call.id for call in calls} == {"call_same"}
    assert [json.loads(call.result)["bike_id"] for call in calls] == ["B1", "B2"]


def test_tau_bench_failed_calls_are_errors() -> None:
    """An answer that begins with ``Error:`` or ``Unknown action`` is a failed call."""
    assert [c.status for c in _twin()["task-0", 1].trace.tool_calls] == ["ok", "error", "ok"]
    assert [c.status for c in _twin()["task-2", 1].trace.tool_calls] == ["error"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"reward": None}, "reward: None is no number"),
        ({"reward": True}, "reward: True is no number"),
        ({"reward": 7}, "reward: 7 is no number"),
        ({"reward": 0.5}, "reward_info says otherwise"),
        ({"traj": []}, "traj: no messages"),
        ({"traj": None}, "traj: no messages"),
        ({"traj": [{"role": "robot"}]}, "role 'robot'"),
    ],
)
def test_tau_bench_unreadable_row_stays_a_trial(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    """A row that cannot be read keeps its scenario and number, has no grade, and says why."""
    trials = _changed(tmp_path, 4, **fields)
    assert len(trials) == 12
    broken = [trial for trial in trials if trial.problem]
    assert [(trial.scenario, trial.trial) for trial in broken] == [("task-1", 1)]
    assert problem in broken[0].problem
    assert broken[0].problem.startswith("changed.json[4]: ")
    assert not broken[0].grades


def test_tau_bench_row_without_task_is_a_trial_of_its_own(tmp_path: Path) -> None:
    """Even a row that does not say whose it is is not lost."""
    trials = _changed(tmp_path, 4, task_id=None)
    assert ("row-4", 0) in {(trial.scenario, trial.trial) for trial in trials}


def test_tau_bench_reward_that_contradicts_a_null_info_is_incomplete(tmp_path: Path) -> None:
    """A reward of 1 that nobody computed is no pass."""
    rows = json.loads(TWIN.read_text())
    info = {**rows[1]["info"], "reward_info": None}
    trial = _changed(tmp_path, 1, info=info)[1]
    assert trial.grades[0].status == "incomplete"


def test_tau_bench_unknown_domain_has_no_suite_without_write_tools() -> None:
    """Which tools write is not guessed for a domain that evalkit does not know."""
    imported = read("tau-bench", TWIN)
    assert imported.suite is None
    assert "write_tools" in str(imported.source["no_suite"])


def _twin_suite() -> Suite:
    return suite_from_data(read("tau-bench", TWIN, write_tools=WRITES).suite)


def test_tau_bench_gold_actions_become_expectations() -> None:
    """Gold actions that write are expected exactly; other tools may be called besides."""
    suite = _twin_suite()
    tools = [scenario.expect.tools for scenario in suite if scenario.expect]
    assert [[call.tool for call in part.calls] for part in tools if part] == [
        ["rent_bike"],
        ["return_bike"],
        [],
        ["rent_bike", "rent_bike"],
    ]
    assert {part.extra_calls for part in tools if part} == {("find_bike", "refund")}
    assert suite.scenario("task-1").tags == ("writes", "outputs")
    assert suite.scenario("task-2").tags == ("no-writes",)


def test_tau_bench_truth_on_the_twin() -> None:
    """Calls and rewards disagree where a failed attempt was repeated, and where words count."""
    suite = _twin_suite()
    differing = {
        key
        for key, trial in _twin().items()
        if grade_truth(Trial(suite.scenario(key[0]), trial.trace)).status != trial.grades[0].status
    }
    assert differing == {("task-0", 1), ("task-1", 1)}


def test_tau_bench_arguments_with_a_dollar_are_literal(tmp_path: Path) -> None:
    """A gold argument that looks like a matcher is a value, not a matcher."""
    row = json.loads(TWIN.read_text())[0]
    row["info"]["task"]["actions"] = [{"name": "rent_bike", "kwargs": {"q": {"$any": 1}}}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([row]))
    suite = read("tau-bench", path, write_tools=WRITES).suite
    assert suite is not None
    call = suite["scenarios"][0]["expect"]["tools"]["calls"][0]
    assert call["args"] == {"q": {"$$any": 1}}


def test_tau_bench_suite_is_written_beside_the_run_and_loads(tmp_path: Path) -> None:
    """The suite in the run directory is the one that was imported, as a file."""
    run = import_run("tau-bench", TWIN, out=tmp_path, write_tools=WRITES)
    suite = parse_suite(run.folder / SUITE_FILE)
    assert [scenario.id for scenario in suite] == ["task-0", "task-1", "task-2", "task-3"]
    assert [s.expect for s in suite] == [s.expect for s in _twin_suite()]


def test_tau_bench_refuses_other_files(tmp_path: Path) -> None:
    """A file of another format is refused before anything is imported."""
    path = tmp_path / "a.json"
    path.write_text('{"simulations": []}')
    with pytest.raises(TraceError, match="tau2-bench"):
        read("tau-bench", path)


_PUBLIC = "tau_bench_airline_gpt4o/gpt-4o-airline.json"

_FAILED_ATTEMPT = "a writing call failed and was made again: the state is right, the call is extra"
_SAID_NOTHING = "the calls are right, and the agent never said what it had to say"
DIFFERING = {
    ("task-5", 1): "the call names origin and destination of each leg, which change nothing",
    ("task-11", 0): _FAILED_ATTEMPT,
    ("task-13", 1): _FAILED_ATTEMPT,
    ("task-13", 2): _FAILED_ATTEMPT,
    ("task-15", 2): _FAILED_ATTEMPT,
    ("task-15", 3): _FAILED_ATTEMPT,
    ("task-20", 1): _FAILED_ATTEMPT,
    ("task-20", 3): _FAILED_ATTEMPT,
    ("task-26", 0): _FAILED_ATTEMPT,
    ("task-26", 2): _FAILED_ATTEMPT,
    ("task-2", 1): "the calls are right, and the steps ran out before a reward was computed",
    ("task-44", 1): _SAID_NOTHING,
    ("task-44", 3): _SAID_NOTHING,
}
"""The 13 of 200 trials in which truth on writing calls and reward differ, each with its cause."""


@pytest.mark.public
def test_tau_bench_airline_figures(public_data: Path) -> None:
    """The published file gives 200 trials of 50 tasks and its published pass rate."""
    trials = list(read("tau-bench", public_data / _PUBLIC).trials)
    assert len(trials) == 200
    assert len({trial.scenario for trial in trials}) == 50
    assert not [trial.problem for trial in trials if trial.problem]
    assert sum(trial.grades[0].value or 0 for trial in trials) / 200 == pytest.approx(0.42)
    never = [trial for trial in trials if "never computed" in trial.grades[0].reason]
    assert len(never) == 5
    assert sum(len(trial.trace.tool_calls) for trial in trials) == 1164
    assert all(call.status != "unknown" for trial in trials for call in trial.trace.tool_calls)


@pytest.mark.public
def test_tau_bench_airline_truth_agrees_with_reward_in_187_of_200(public_data: Path) -> None:
    """Truth on writing calls agrees with the reward but for 13 trials, whose causes are known."""
    imported = read("tau-bench", public_data / _PUBLIC)
    suite = suite_from_data(imported.suite)
    table: Counter[tuple[str, str]] = Counter()
    differing: dict[tuple[str, int], ImportedTrial] = {}
    for trial in imported.trials:
        truth = grade_truth(Trial(suite.scenario(trial.scenario), trial.trace, lane="imported"))
        reward = trial.grades[0]
        table[truth.status, reward.status] += 1
        if truth.status != reward.status:
            differing[trial.scenario, trial.trial] = trial
    assert table == {
        ("passed", "passed"): 74,
        ("failed", "failed"): 113,
        ("failed", "passed"): 10,
        ("passed", "failed"): 3,
    }
    assert differing.keys() == DIFFERING.keys()
    for key, cause in DIFFERING.items():
        assert _shows(differing[key], cause, suite.scenario(key[0])), key


def _shows(trial: ImportedTrial, cause: str, scenario: Scenario) -> bool:
    """Find the cause of a difference in the trial itself."""
    calls = trial.trace.tool_calls
    if cause == _FAILED_ATTEMPT:
        worked = tuple(call for call in calls if call.status == "ok")
        return grade_truth(Trial(scenario, replace(trial.trace, tool_calls=worked))).passed is True
    if cause == _SAID_NOTHING:
        return trial.grades[0].reason.startswith("the agent never said")
    if "steps ran out" in cause:
        return "ran out of steps" in trial.grades[0].reason
    legs = [leg for call in calls for leg in (call.args or {}).get("flights", ())]
    return any("origin" in leg for leg in legs)


@pytest.mark.public
def test_tau_bench_call_ids_of_the_published_file_are_not_unique(public_data: Path) -> None:
    """The file really reuses ids: 134 for 1,164 calls; pairing by id would mix them up."""
    trials = read("tau-bench", public_data / _PUBLIC).trials
    calls = [call for trial in trials for call in trial.trace.tool_calls]
    assert len({call.id for call in calls}) == 134


@pytest.mark.public
def test_tau_bench_run_of_the_published_file(public_data: Path, tmp_path: Path) -> None:
    """The whole way: file, run directory, frame."""
    run = import_run("tau-bench", public_data / _PUBLIC, out=tmp_path)
    assert run.trials.status.value_counts().to_dict() == {"failed": 116, "passed": 84}
    assert run.is_finished
    assert len(run.tool_calls) == 1164
    assert len(parse_suite(run.folder / SUITE_FILE)) == 50
