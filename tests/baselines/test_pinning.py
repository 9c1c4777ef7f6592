"""Pinning a baseline: what is pooled, and everything that is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evalkit as ek
from evalkit import stats
from evalkit.baselines import load_baseline, pin_baseline
from evalkit.errors import BaselineError
from evalkit.results import Run
from evalkit.trace import ModelCall, Trace, Usage

MakeRun = Callable[..., Run]
TRAVEL = Path(__file__).parents[2] / "data" / "suites" / "travel.yaml"


def refusal(folder: Path, runs: Any, name: str = "main") -> BaselineError:
    """Pin, and give the error; nothing may have been written."""
    before = sorted(folder.glob("**/*"))
    with pytest.raises(BaselineError) as caught:
        pin_baseline(name, runs, folder=folder)
    assert sorted(folder.glob("**/*")) == before
    return caught.value


def test_counts_and_rates_follow_from_the_runs(runs: list[Run], folder: Path) -> None:
    """A scenario's rate pools its trials; the median is that of the runs."""
    pinned = pin_baseline("main", runs, folder=folder)
    a, b = pinned.scenarios
    assert (a.id, a.passed, a.failed, a.rate) == ("a", (2, 1, 3), (1, 2, 0), 0.666667)
    assert (b.id, b.passed, b.failed, b.median_rate) == ("b", (3, 3, 2), (0, 0, 1), 1.0)
    assert [(run.n_passed, run.n_failed, run.rate) for run in pinned.runs] == [
        (5, 1, 0.833333),
        (4, 2, 0.666667),
        (5, 1, 0.833333),
    ]
    assert (pinned.rate, pinned.median_rate, pinned.n_trials) == (0.777778, 0.833333, 18)
    assert pinned.graders == {"path": "1", "truth": "1"}
    assert (pinned.cost, pinned.cost_usd, pinned.judge) == ("none", None, "uncalibrated")


def test_file_is_deterministic_and_holds_no_free_text(runs: list[Run], folder: Path) -> None:
    """The order of the runs does not matter, and neither replies nor reasons are kept."""
    texts = set()
    for number, order in enumerate(permutations(runs)):
        pin_baseline("main", order, folder=folder / str(number))
        texts.add((folder / str(number) / "main.json").read_text())
    assert len(texts) == 1
    (text,) = texts
    assert "SECRET" not in text
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert sum('"scenario": "a"' in line for line in text.splitlines()) == 2  # one a grader


def test_a_baseline_stands_in_for_a_run(runs: list[Run], folder: Path) -> None:
    """Its frames give the rates that the pooled runs give, over all and by grader."""
    pinned = pin_baseline("main", runs, folder=folder)
    pooled = ek.load_runs([run.folder for run in runs])
    counted = ["rate", "n_passed", "n_failed", "n_incomplete"]
    for by in (None, "scenario", "tag", "run_id", "grader"):
        mine, theirs = stats.pass_rates(pinned, by=by), stats.pass_rates(pooled, by=by)
        pd.testing.assert_frame_equal(mine[counted], theirs[counted])
    assert not pinned.trials.duplicated(["run_id", "scenario", "trial"]).any()
    assert list(pinned.grades.columns) == list(runs[0].grades.columns)
    assert pinned.grades.dtypes.equals(runs[0].grades.dtypes)
    assert set(pinned.trials["scenario_hash"]) == {"hash-a", "hash-b"}


def test_a_run_is_compared_with_a_baseline(
    runs: list[Run], make_run: MakeRun, folder: Path
) -> None:
    """Statistics pair a run with the pooled trials, scenario by scenario, whatever their order."""
    pinned = pin_baseline("main", runs, folder=folder)
    now = make_run({"b": "fff", "a": "ppp", "c": "p"}, name="now")
    compared = stats.compare_scenarios(now, pinned).set_index("scenario")
    assert compared["change"].to_dict() == {"a": "same", "b": "same", "c": "added"}
    assert compared.loc["b", "rate_baseline"] == pytest.approx(8 / 9)
    assert (compared.loc["b", "n_measured"], compared.loc["b", "n_measured_baseline"]) == (3, 9)


def test_means_of_graders_are_kept_and_single_values_are_not_made_up(
    runs: list[Run], folder: Path
) -> None:
    """A mean of .833 may be many values: they are NaN; a mean of 1 can only be ones."""
    pinned = pin_baseline("main", runs, folder=folder)
    means = pinned.grader_means.set_index(["run_id", "scenario", "grader"])
    assert means.loc[("r0", "a", "truth"), "mean"] == pytest.approx(2.5 / 3, abs=1e-6)
    assert means.loc[("r2", "b", "path"), "n_incomplete"] == 1
    values = pinned.grades.set_index(["run_id", "scenario", "grader"])["value"]
    assert values.loc[("r0", "a", "truth")].isna().all()
    assert (values.loc[("r0", "b", "truth")] == 1).all()


@pytest.mark.parametrize(
    ("letters", "rate"),
    [("p", 1.0), ("ppp", 1.0), ("f", 0.0), ("fff", 0.0), ("n", 0.0)],
    ids=["one passed", "all passed", "one failed", "all failed", "NaN grade"],
)
def test_degenerate_results_are_pinned_as_they_are(
    make_run: MakeRun, folder: Path, letters: str, rate: float
) -> None:
    """One scenario, k = 1, all passed, all failed: three complete runs are a baseline."""
    runs = [make_run({"a": letters}, name=f"r{n}") for n in range(3)]
    pinned = pin_baseline("main", runs, folder=folder)
    assert (pinned.rate, pinned.median_rate) == (rate, rate)
    assert load_baseline("main", folder=folder) == pinned


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(*[st.text("pfn", min_size=1, max_size=4)] * 3), min_size=1, max_size=4))
def test_pinned_and_loaded_are_equal(
    tmp_path_factory: pytest.TempPathFactory,
    write_run: Callable[..., Run],
    outcomes: list[tuple[str, str, str]],
) -> None:
    """Whatever the runs hold, what is read back is what was pinned."""
    folder = tmp_path_factory.mktemp("round")
    runs = [
        write_run(folder, {f"s{i}": each[n] for i, each in enumerate(outcomes)}, name=f"r{n}")
        for n in range(3)
    ]
    pinned = pin_baseline("main", runs, folder=folder / "baselines")
    loaded = load_baseline("main", folder=folder / "baselines")
    assert loaded == pinned
    assert loaded.to_json() == pinned.to_json()


@pytest.mark.parametrize("n_runs", [0, 1, 2])
def test_fewer_than_three_runs_are_refused(runs: list[Run], folder: Path, n_runs: int) -> None:
    """One or two runs cannot show how much runs differ."""
    assert f"at least 3 runs, and here are {n_runs}" in str(refusal(folder, runs[:n_runs]))


def test_copies_of_a_run_are_refused(runs: list[Run], make_run: MakeRun, folder: Path) -> None:
    """Neither the same id twice, nor the same digest with the same seed, is a third run."""
    assert "r1: is given twice" in str(refusal(folder, [*runs, runs[1]]))
    twin = make_run({"a": "ppf", "b": "ppp"}, name="r9", seed=runs[0].manifest.seed)
    assert twin.digest == runs[0].digest
    assert "r0 and r9: have the same seed" in str(refusal(folder, [*runs, twin]))
    other_seed = make_run({"a": "ppf", "b": "ppp"}, name="r10", seed=1)
    assert len(pin_baseline("main", [*runs, other_seed], folder=folder).runs) == 4


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ({"a": "pip", "b": "ppp"}, "bad: 1 of 6 trials are incomplete (a.1); look at them with"),
        ({"a": "pp-", "b": "ppp"}, "bad: 1 of 6 trials are incomplete (a.2); evalkit run --resume"),
        ({"a": "---", "b": "---"}, "6 of 6 trials are incomplete (a.0, a.1, a.2, b.0, b.1 and 1"),
        ({"a": "ppp", "b": ""}, "bad: plans no trial of b"),
        ({"a": "ppp"}, "bad: lacks 1 scenarios of the other runs (b)"),
        ({"a": "ppp", "b": "ppp", "c": "p"}, "r0: lacks 1 scenarios of the other runs (c)"),
    ],
    ids=["incomplete", "unfinished", "zero trials ran", "zero planned", "part", "more"],
)
def test_incomplete_runs_are_refused(
    runs: list[Run], make_run: MakeRun, folder: Path, outcomes: dict[str, str], message: str
) -> None:
    """What was not measured cannot be pinned; the trials are counted and named."""
    assert message in str(refusal(folder, [*runs, make_run(outcomes, name="bad")]))


def test_runs_without_any_scenario_are_refused(make_run: MakeRun, folder: Path) -> None:
    """Zero trials pooled three times are no baseline."""
    empty = [make_run({"a": ""}, name=f"r{n}") for n in range(3)]
    assert "r0: plans no trial of a" in str(refusal(folder, empty))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"suite": "t"}, "suites differ: s 555555555555 in r0, r1, r2; t 555555555555 in bad"),
        ({"suite_hash": "6" * 64}, "suites differ: s 555555555555 in r0, r1, r2; s 666666666666"),
        ({"suite_hash": ""}, "bad: does not say which suite it ran"),
        ({"lane": "imported"}, "lanes differ: live in r0, r1, r2; imported in bad"),
        ({"agent": "other:agent"}, "agents differ: mine:agent aaaaaaaaaaaa in r0, r1, r2; other"),
        ({"agent_hash": "b" * 64}, "mine:agent bbbbbbbbbbbb in bad"),
        ({"graders": {"truth": "2", "path": "1"}}, "versions of grader 'truth' differ: 1 in r0; 2"),
        ({"more_graders": ("extra",)}, "further graders differ: none in r0, r1, r2; extra in bad"),
        ({"models": ("m-2",)}, "models differ: none in r0; m-2 in bad"),
        ({"hashes": {"a": "else"}}, "have other content (a)"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_mixed_runs_are_refused(
    runs: list[Run], make_run: MakeRun, folder: Path, more: Mapping[str, Any], message: str
) -> None:
    """One suite, lane, agent, set of models and version of each grader; else what differs."""
    assert message in str(refusal(folder, [*runs, make_run(name="bad", **more)]))


@pytest.mark.parametrize(
    ("usage", "lane", "lacks"),
    [
        (None, "live", "price and usage"),
        (None, "imported", "price and usage"),
        (None, "contract", "usage"),
        (Usage(10, None, cost_usd=0.1), "live", "usage"),
        (Usage(10, 5), "live", "price"),
        (Usage(10, 5), "contract", ""),
        (Usage(10, 5, cost_usd=0.25), "live", ""),
    ],
)
def test_unmetered_runs_are_refused(
    make_run: MakeRun, folder: Path, usage: Usage | None, lane: str, lacks: str
) -> None:
    """An observed call needs usage and, unless it was scripted, a price."""
    trace = Trace(model_calls=(ModelCall("m-20260101", usage=usage),), models_observed=True)
    runs = [make_run({"a": "pp"}, name=f"r{n}", lane=lane, trace=trace) for n in range(3)]
    if lacks:
        error = refusal(folder, runs)
        assert len(error.reasons) == 3
        assert (
            f"2 trials have model calls without usage or price (a.0, a.1; a.0 lacks {lacks})"
            in (error.reasons[0])
        )
        return
    pinned = pin_baseline("main", runs, folder=folder)
    told = (pinned.cost, pinned.cost_usd, pinned.models)
    cost = ("none", None) if lane == "contract" else ("metered", 1.5)
    assert told == (*cost, ("m-20260101",))


def test_scripted_faults_need_no_usage(make_run: MakeRun, folder: Path) -> None:
    """A 529 that the script injected used nothing, and costs nothing."""
    calls = (ModelCall("m", status="error"), ModelCall("m", usage=Usage(10, 5)))
    trace = Trace(model_calls=calls, models_observed=True)
    runs = [make_run({"a": "p"}, name=f"r{n}", lane="contract", trace=trace) for n in range(3)]
    assert pin_baseline("main", runs, folder=folder).cost == "none"


def test_calls_that_nobody_saw_cost_an_unknown_sum(make_run: MakeRun, folder: Path) -> None:
    """Unknown stands there in plain sight, and is no 0."""
    blind = Trace(models_observed=False)
    runs = [make_run(name=f"r{n}", trace=blind if n == 1 else None) for n in range(3)]
    pinned = pin_baseline("main", runs, folder=folder)
    assert (pinned.cost, pinned.cost_usd) == ("unknown", None)


def test_calls_that_were_seen_among_others_are_checked(make_run: MakeRun, folder: Path) -> None:
    """A trace that may have missed calls still shows one without a price."""
    partly = Trace(model_calls=(ModelCall("m", usage=Usage(10, 5)),), models_observed=False)
    runs = [make_run(name=f"r{n}", trace=partly if n == 1 else None) for n in range(3)]
    assert "r1: unmetered: 6 trials" in str(refusal(folder, runs))


def test_ledgers_that_cannot_be_read_are_refused(make_run: MakeRun, folder: Path) -> None:
    """Without its ledger nobody knows what a trial's calls cost."""
    calls = (ModelCall("m", usage=Usage(10, 5, cost_usd=0.1)),)
    trace = Trace(model_calls=calls, models_observed=True)
    runs = [make_run(name=f"r{n}", trace=trace) for n in range(3)]
    runs[0].ledger_path("a", 1).unlink()
    assert "r0: unmetered: 1 trials have model calls" in str(refusal(folder, runs))


@pytest.mark.parametrize(
    ("lane", "model", "is_refused"),
    [
        ("quality", "claude-3-5-sonnet-latest", True),
        ("quality", "gpt-4o", True),
        ("quality", "gpt-4o-2024-08-06", False),
        ("live", "gpt-4o", False),
    ],
)
def test_models_that_can_move_are_refused_in_the_quality_lane(
    make_run: MakeRun, folder: Path, lane: str, model: str, is_refused: bool
) -> None:
    """An id without a version may be another model tomorrow."""
    runs = [make_run(name=f"r{n}", lane=lane, models=(model,)) for n in range(3)]
    if is_refused:
        assert f"model '{model}': names no version" in str(refusal(folder, runs))
    else:
        assert pin_baseline("main", runs, folder=folder).models == (model,)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "con", "NUL", "a.", "a b", "a\n", "x" * 101,
     "ä", "main.json", "-x"],
    ids=repr,
)  # fmt: skip
def test_names_that_are_no_safe_files_are_refused(runs: list[Run], folder: Path, name: str) -> None:
    """A name cannot leave the folder, nor mean something else on another system."""
    assert "is no name of a baseline" in str(refusal(folder, runs, name))


@pytest.mark.parametrize("name", ["main", "MAIN"])
def test_a_baseline_is_never_overwritten(runs: list[Run], folder: Path, name: str) -> None:
    """Not even by the same runs, nor where only upper case tells the files apart."""
    pin_baseline("main", runs, folder=folder)
    assert "exists, and a baseline is never overwritten" in str(refusal(folder, runs, name))


def test_a_link_is_not_written_through(runs: list[Run], folder: Path, tmp_path: Path) -> None:
    """A dangling link of the name counts as taken."""
    folder.mkdir()
    (folder / "main.json").symlink_to(tmp_path / "elsewhere.json")
    assert "exists" in str(refusal(folder, runs))
    assert not (tmp_path / "elsewhere.json").exists()


def test_every_reason_is_given_at_once(make_run: MakeRun, folder: Path) -> None:
    """Nobody should have to mend one thing to hear of the next."""
    runs = [make_run({"a": "i"}, name="r0"), make_run({"a": "p"}, name="r1", lane="imported")]
    reasons = refusal(folder, [*runs, folder / "none"], "a/b").reasons
    for part in ("no name", "not a run directory", "at least 3", "are incomplete", "lanes differ"):
        assert sum(part in reason for reason in reasons) == 1, part


def test_a_run_directory_that_was_changed_is_refused(runs: list[Run], folder: Path) -> None:
    """The run's digest must be that of its trials."""
    path = runs[1].folder / "trials.jsonl"
    path.write_bytes(path.read_bytes().replace(runs[1].records[0].digest.encode(), b"0" * 64))
    given = [runs[0].folder, runs[1].folder, runs[2].folder]
    assert "r1: its digest is not that of its trials" in str(refusal(folder, given))


def test_one_run_instead_of_a_list_is_refused(runs: list[Run], folder: Path) -> None:
    """A path is no list of its letters."""
    assert "give a list of runs" in str(refusal(folder, str(runs[0].folder)))
    assert "give a list of runs" in str(refusal(folder, runs[0]))


def shaky(text: str) -> str:
    """Answer well in four of five trials."""
    return "Hello!" if random.random() < 0.8 else "Go away."


def test_real_runs_of_a_stochastic_agent(tmp_path: Path) -> None:
    """An agent that is sometimes wrong is pinned with the counts of its runs."""
    records = [{"task_id": f"t{n}", "input": "Hi", "success_contains": ["hello"]} for n in range(6)]
    suite = ek.load_suite(records)
    runs = [
        ek.run_suite(suite, agent=shaky, lane="live", n_trials=4, seed=seed, out=tmp_path)
        for seed in range(3)
    ]
    pinned = pin_baseline("main", runs, folder=tmp_path / "baselines")
    assert [run.n_passed for run in pinned.runs] == [
        int((run.trials["status"] == "passed").sum()) for run in runs
    ]
    assert 0 < pinned.rate < 1
    assert pinned.cost == "unknown"  # plain text shows no model calls
    assert pinned.suite_hash == suite.hash


@pytest.mark.sdk
def test_real_runs_of_the_contract_lane(tmp_path: Path) -> None:
    """Scripted calls cost nothing; the same seed again is a copy of the same run."""
    runs = [ek.run_suite(TRAVEL, seed=seed, out=tmp_path / "runs") for seed in (0, 0, 1, 2)]
    assert "have the same seed (0) and the same digest" in str(refusal(tmp_path / "b", runs[:3]))
    pinned = pin_baseline("main", runs[1:], folder=tmp_path / "b")
    assert (pinned.lane, pinned.cost, pinned.rate) == ("contract", "none", 1.0)
    assert len(pinned.models) == 1
