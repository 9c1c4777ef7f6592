"""Comparisons of public results: the paired counts of MINT and of BFCL."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from evalkit.stats import compare, compare_scenarios, mcnemar

pytestmark = pytest.mark.public

# Only the first passed, only the second passed, exact McNemar p-value to its printed digits.
MINT = {
    "two models": (
        ("gpt-3.5-turbo-0613", "none", 5), ("claude-instant-1", "none", 5), (67, 124), 4.5e-5,
    ),
    "gpt-3.5 with feedback": (
        ("gpt-3.5-turbo-0613", "none", 5), ("gpt-3.5-turbo-0613", "gpt4", 5), (45, 134), 1.8e-11,
    ),
    "gpt-4 with feedback": (("gpt-4-0613", "none", 5), ("gpt-4-0613", "gpt4", 5), (37, 33), 0.72),
}  # fmt: skip
# Only function calling passed, only prompting passed.
BFCL = {
    "simple": (9, 26, 400, 0.006),
    "parallel_multiple_function": (6, 21, 200, 0.006),
    "relevance": (35, 5, 240, 1.4e-6),
}


@pytest.fixture(scope="module")
def outcomes(public_data):
    """All outcomes of MINT, as trials."""
    frame = pd.read_csv(public_data / "mint_multiturn" / "outcomes.csv", dtype={"task_id": str})
    return frame.assign(
        run_id=frame["model"] + " " + frame["feedback"] + " " + frame["k"].astype(str),
        suite="mint",
        scenario=frame["task_set"] + "/" + frame["task_id"],
        trial=0,
        status=frame["success"].map({1: "passed", 0: "failed"}),
    )


@pytest.mark.parametrize(("first", "second", "counts", "p_value"), MINT.values(), ids=MINT)
def test_mint_is_paired_by_id(outcomes, first, second, counts, p_value):
    """The published runs differ where they should, with their rows in any order."""
    run, baseline = (
        outcomes[(outcomes[["model", "feedback", "k"]] == list(key)).all(axis=1)].sample(
            frac=1, random_state=seed
        )
        for seed, key in enumerate((first, second))
    )
    row = compare(run, baseline).iloc[0]
    assert row["n_scenarios"] == len(run) == 586
    assert (row["n_newly_passing"], row["n_newly_failing"]) == counts
    assert (row["test"], row["interval"]) == ("McNemar mid-p", "Newcombe paired")
    assert row["difference"] == pytest.approx((counts[0] - counts[1]) / 586)
    assert float(mcnemar(*counts, method="exact")) == pytest.approx(p_value, rel=0.02)
    newly = compare_scenarios(run, baseline)["newly"]
    assert ((newly == "passing").sum(), (newly == "failing").sum()) == counts


def _verdicts(folder, category, n):
    """Return the official verdicts of one system as trials; the file lists failures, from 1."""
    lines = (folder / f"{category}.jsonl").read_text(encoding="utf-8").splitlines()
    failed = {json.loads(line)["id"] for line in lines[1:]}
    ids = range(1, n + 1)
    return pd.DataFrame(
        {
            "scenario": [f"{category}_{i}" for i in ids],
            "status": ["failed" if i in failed else "passed" for i in ids],
        }
    )


@pytest.mark.parametrize("category", BFCL)
def test_bfcl_modes_of_one_model_are_paired(public_data, category):
    """Function calling against prompting: worse at calls, far better at refusing them."""
    gained, lost, n, p_value = BFCL[category]
    scores = public_data / "bfcl_2024_07" / "score"
    run, baseline = (
        _verdicts(scores / name, category, n)
        for name in ("gpt-4-0125-preview-FC", "gpt-4-0125-preview")
    )
    row = compare(run.sample(frac=1, random_state=3), baseline).iloc[0]
    assert (row["n_newly_passing"], row["n_newly_failing"], row["n_scenarios"]) == (gained, lost, n)
    assert float(mcnemar(gained, lost, method="exact")) == pytest.approx(p_value, rel=0.07)
    newly = compare_scenarios(run, baseline)["newly"]
    assert ((newly == "passing").sum(), (newly == "failing").sum()) == (gained, lost)
