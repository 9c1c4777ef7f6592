"""The five frames: their columns and dtypes, whatever the run holds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evalkit.grade import Grade
from evalkit.results import Run, RunWriter, load_run, load_runs
from evalkit.results.frames import COLUMNS, frame
from evalkit.trace import ModelCall, ToolCall, Trace, Turn, Usage

MakeRun = Callable[..., Path]
NAMES = list(COLUMNS)

RICH = Trace(
    turns=(Turn("hi", ("a",)), Turn("more", ("b", "\ud800\x00<b>"))),
    tool_calls=(
        ToolCall("book", {"id": 2**70, "tags": ["x", "y"]}, result=[1, 2], duration_s=0.5),
        ToolCall("book", None, status="error", raw_args="{", turn=1),
        ToolCall("look", {}, status="unknown", turn=1),
    ),
    model_calls=(
        ModelCall("m", Usage(10, 5, None, 0, 0.25), duration_s=1.0, finish_reason="stop"),
        ModelCall("m", None, turn=1, status="unknown"),
    ),
    models_observed=True,
    logs=("printed",),
)
PLAIN = Trace(turns=(Turn("hi", ("a",)),), tools_observed=False)


def check(name: str, data: pd.DataFrame) -> None:
    """Compare columns and dtypes with the one place that lists them."""
    assert list(data.columns) == list(COLUMNS[name])
    for column, dtype in COLUMNS[name].items():
        wanted = pd.Series([], dtype=dtype).dtype
        assert data[column].dtype == wanted, f"{name}.{column} is {data[column].dtype}"
    assert isinstance(data.index, pd.RangeIndex)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_frame_has_every_column_and_dtype(name: str) -> None:
    """A run in which nothing happened can be filtered and joined like any other."""
    check(name, frame(name, []))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "traces",
    [[RICH], [PLAIN], [PLAIN, RICH], [RICH, PLAIN, RICH]],
    ids=["known", "unknown", "mixed", "more"],
)
def test_dtypes_do_not_depend_on_what_is_known(
    make_run: MakeRun, name: str, traces: list[Trace]
) -> None:
    """Known, unknown and mixed values give the same columns and dtypes."""
    check(name, getattr(load_run(make_run({"a": traces})), name))


def test_unknown_is_missing_and_never_zero(make_run: MakeRun) -> None:
    """An agent of text shows no calls and costs nobody knows what."""
    trials = load_run(make_run({"a": [PLAIN, RICH]})).trials
    unknown = trials.iloc[0]
    for column in ("n_tool_calls", "n_model_calls", "input_tokens", "output_tokens"):
        assert unknown[column] is pd.NA
    assert math.isnan(unknown["cost_usd"])
    known = trials.iloc[1]
    assert (known["n_turns"], known["n_tool_calls"], known["n_model_calls"]) == (2, 3, 2)
    assert known["input_tokens"] is pd.NA  # one of two calls did not say


def test_trials_name_the_content_of_their_scenario(make_run: MakeRun) -> None:
    """Each trial carries its scenario's hash, so that runs can be paired by what they ran."""
    trials = load_run(make_run({"a": [PLAIN, PLAIN], "b": [PLAIN]})).trials
    assert trials["scenario_hash"].tolist() == ["of-a", "of-a", "of-b"]


def test_tool_calls_keep_objects_as_they_are(make_run: MakeRun) -> None:
    """Arguments are mappings, results any JSON, huge integers exact; turns count from 1."""
    calls = load_run(make_run({"a": [RICH]})).tool_calls
    assert calls["args"].tolist() == [{"id": 2**70, "tags": ["x", "y"]}, None, {}]
    assert calls["result"].tolist() == [[1, 2], None, None]
    assert calls["raw_args"].tolist() == [None, "{", None]
    assert calls["status"].tolist() == ["ok", "error", "unknown"]
    assert (calls["turn"].tolist(), calls["call"].tolist()) == ([1, 2, 2], [0, 1, 2])
    assert calls["duration_s"].iloc[0] == 0.5
    assert calls["duration_s"].isna().tolist() == [False, True, True]


def test_model_calls_tell_what_was_reported(make_run: MakeRun) -> None:
    """Each call has its usage; what the provider did not say is missing."""
    calls = load_run(make_run({"a": [RICH]})).model_calls
    assert calls["input_tokens"].tolist() == [10, pd.NA]
    assert calls["cache_read_tokens"].isna().all()
    assert calls["cost_usd"].iloc[0] == 0.25
    assert calls["finish_reason"].tolist() == ["stop", ""]


def test_events_are_in_order_with_their_data(make_run: MakeRun) -> None:
    """One row an event, numbered from 1, with data and real times apart."""
    events = load_run(make_run({"a": [RICH]})).events
    assert events["seq"].tolist() == list(range(1, len(events) + 1))
    assert events["kind"].iloc[0] == "trial_start"
    assert events["kind"].iloc[-1] == "trial_end"
    assert events["data"].iloc[0]["scenario"] == "a"
    assert events["real"].iloc[-1] == {"duration_s": 0.5}


def test_grades_are_one_row_each(
    tmp_path: Path, manifest_of: Callable[..., Any], add_trial: Callable[..., Any]
) -> None:
    """An incomplete grade has neither value nor verdict; a graded turn counts from 1."""
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 1}))
    grades = (
        Grade("truth", 0.5, passed=True, reason="r", evidence={"k": [1]}, turn=0),
        Grade("style", 0.75, rubric="tone", score=4.0),
        Grade.incomplete("answer", "unseen"),
    )
    add_trial(writer, "a", 0, grades=grades)
    writer.finish()
    table = Run(writer.folder).grades
    check("grades", table)
    assert table["passed"].tolist() == [True, False, pd.NA]
    assert table["value"].iloc[:2].tolist() == [0.5, 0.75]
    assert math.isnan(table["value"].iloc[2])
    assert table["turn"].tolist() == [1, pd.NA, pd.NA]
    assert table["evidence"].tolist() == [{"k": [1]}, {}, {}]


def test_a_count_beyond_64_bits_costs_no_frame(make_run: MakeRun) -> None:
    """A provider that reports nonsense is one unknown, not a run that nobody can look at."""
    absurd = Trace(
        turns=(Turn("hi", ("a",)),),
        model_calls=(ModelCall("m", Usage(10**30, 5, cost_usd=10**400)),),
        models_observed=True,
    )
    run = load_run(make_run({"a": [absurd, RICH]}))
    check("model_calls", run.model_calls)
    assert run.model_calls["input_tokens"].tolist()[:2] == [pd.NA, 10]
    assert run.trials["input_tokens"].isna().all()
    assert math.isnan(run.trials["cost_usd"].iloc[0])


@pytest.mark.parametrize("name", NAMES)
def test_load_runs_stacks_frames_without_changing_them(make_run: MakeRun, name: str) -> None:
    """Runs with and without rows stack to the same columns and dtypes."""
    folders = [
        make_run({"a": [RICH]}, name="r1"),
        make_run({"a": [PLAIN]}, name="r2"),
        make_run({}, name="r3"),
    ]
    stacked = getattr(load_runs(folders), name)
    check(name, stacked)
    assert set(stacked["run_id"]) <= {"r1", "r2"}
    assert len(stacked) == sum(len(getattr(load_run(folder), name)) for folder in folders)


def seconds_to_make(n: int) -> float:
    """Make a frame of so many rows; give the best of three CPU times."""
    same = ("live", "passed", *[""] * 3, *[1] * 5, 0.1, 0.1, ("t",), "c", "h")
    rows = [("r", "s", f"a{i}", 0, *same, i) for i in range(n)]
    best = math.inf
    for _ in range(3):
        began = time.process_time()
        frame("trials", rows)
        best = min(best, time.process_time() - began)
    return best


def test_a_frame_costs_no_more_than_its_rows() -> None:
    """Twenty times the rows take at most about twenty times as long."""
    small, large = seconds_to_make(2_000), seconds_to_make(40_000)
    assert large < 40 * small + 0.05
    assert np.isfinite(large)
