"""Both sides, computed once: what is gated, what is only compared, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evalkit.errors import UsageError
from evalkit.gating import gate
from evalkit.reporting.comparing import compare_with

Make = Callable[..., Any]

MANY = {f"s{i:02}": "ppp" for i in range(20)}
WORSE = MANY | {f"s{i:02}": "fff" for i in range(8)}


def test_pinned_baseline_is_gated_by_the_gate_itself(pin: Make, make_run: Make) -> None:
    """The verdict, its reasons and its interval are those of the gate."""
    baseline, run = pin(dict.fromkeys(MANY, "p")), make_run(WORSE)
    comparison = compare_with(run, baseline, margin=0.1, confidence=0.9, floor=0.5)
    expected = gate(run, baseline=baseline, margin=0.1, confidence=0.9, floor=0.5)
    assert comparison.verdict == expected
    assert comparison.verdict is not None
    assert comparison.verdict.verdict == "FAIL"
    check = comparison.regression
    assert check is not None
    row = comparison.overall
    shown = (row["difference"], row["difference_low"], row["difference_high"])
    assert (check.estimate, check.low, check.high) == pytest.approx(shown, abs=1e-12)


def test_two_single_runs_are_compared_and_not_gated(make_run: Make) -> None:
    """Another run is no baseline, even one with three trials a scenario."""
    comparison = compare_with(make_run(WORSE), make_run(MANY, name="r0"))
    assert comparison.verdict is None
    assert not comparison.is_pinned
    assert comparison.overall["difference_high"] < 0
    assert "20 scenarios" in comparison.resolution


def test_contract_lane_needs_no_baseline_for_its_verdict(make_run: Make) -> None:
    """Against another run, the contract rule still judges the run alone."""
    before = make_run({"a": "f"}, name="r0", lane="contract")
    for letter, word in (("p", "PASS"), ("f", "FAIL"), ("i", "INVALID")):
        run = make_run({"a": letter}, name=f"r{letter}", lane="contract")
        verdict = compare_with(run, before).verdict
        assert verdict is not None
        assert verdict.verdict == word


def test_run_is_not_compared_with_itself(make_run: Make) -> None:
    """The same run on both sides would always look unchanged."""
    run = make_run({"a": "p"})
    with pytest.raises(UsageError, match="compared with itself"):
        compare_with(run, run.folder)


def test_floor_needs_a_gate(make_run: Make) -> None:
    """A floor that would be ignored is refused."""
    with pytest.raises(UsageError, match="floor is a rule of the gate"):
        compare_with(make_run({"a": "p"}), make_run({"a": "p"}, name="r0"), floor=0.9)


@pytest.mark.parametrize(
    ("now", "before", "counts"),
    [
        ({"a": "pp", "b": "pf"}, {"a": "pp", "b": "pp"}, (2, 0, 0)),
        ({"a": "ii", "b": "pf"}, {"a": "pp", "b": "pp"}, (1, 1, 0)),
        ({"a": "p", "b": "p", "c": "p"}, {"b": "p", "d": "p", "e": "i"}, (1, 0, 4)),
        ({"a": "p"}, {"b": "p"}, (0, 0, 2)),
        ({"a": "i"}, {"a": "i"}, (0, 1, 0)),
        ({"a": "p-"}, {"a": "--"}, (0, 1, 0)),
    ],
)
def test_every_scenario_of_either_side_is_accounted_for(
    make_run: Make, now: dict[str, str], before: dict[str, str], counts: tuple[int, int, int]
) -> None:
    """Compared, without a rate, or on one side only: each scenario is one of these."""
    c = compare_with(make_run(now), make_run(before, name="r0"))
    assert (c.n_compared, c.n_unrated, c.n_not_compared) == counts
    assert sum(counts) == c.n_scenarios == len(c.scenarios)
    counted = c.scenarios[["n_measured", "n_incomplete"]].to_numpy().sum()
    assert counted == c.run.manifest.n_planned


def test_changed_content_is_not_compared(make_run: Make) -> None:
    """Same id, other content: another scenario."""
    before = make_run({"a": "p", "b": "p"}, name="r0", hashes={"a": "old"})
    comparison = compare_with(make_run({"a": "f", "b": "p"}), before)
    assert (comparison.n_compared, comparison.n_not_compared) == (1, 1)
    assert comparison.overall["difference"] == 0


def test_parts_need_to_be_known_on_both_sides(make_run: Make) -> None:
    """Without tags on one side there is nothing to compare by tag; by grader there is."""
    tags = dict.fromkeys(MANY, ("x",))
    comparison = compare_with(make_run(WORSE, tags=tags), make_run(MANY, name="r0"))
    assert comparison.by("tag") is None
    rows = comparison.by("grader")
    assert rows is not None
    assert list(rows["grader"]) == ["truth", "path"]  # the one that lost comes first
