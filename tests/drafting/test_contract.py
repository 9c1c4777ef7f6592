"""Drafts run: the same agent meets the same answers in the contract lane, fault by fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit import shipped
from evalkit.diffing import leaves_that_differ
from evalkit.drafting import draft_suite, write_drafts
from evalkit.importers import import_run
from evalkit.results import Run
from evalkit.run import run_suite

TRACES = Path(__file__).parents[2] / "data" / "traces"
OWN = {"[0].data.scenario", "[0].data.seed"}
"""What tells one scenario from another, whatever happens in it."""


def _run(suite: Path, out: Path, *, agent: str | None = None) -> Run:
    return run_suite(suite, lane="contract", out=out, agent=agent)


@pytest.mark.parametrize("name", ["travel", "travel_faults"])
def test_drafts_of_contract_trials_replay_leaf_by_leaf(name: str, tmp_path: Path) -> None:
    """An unmodified agent on a real SDK leaves the same ledger in the draft as in its source."""
    run = _run(shipped.suite(name), tmp_path)
    drafted = draft_suite(run, status="any")
    assert (len(drafted.drafts), drafted.same, drafted.undrafted) == (len(run.records), (), ())
    write_drafts(drafted, tmp_path / "drafts.yaml")
    again = _run(tmp_path / "drafts.yaml", tmp_path)
    for draft in drafted.drafts:
        first, second = run.ledger(draft.scenario), again.ledger(draft.id)
        assert set(leaves_that_differ(first, second)) == OWN, draft.id
        assert run.record(draft.scenario).status == again.record(draft.id).status


def test_an_imported_failure_fails_again_until_it_is_caught(tmp_path: Path) -> None:
    """The model books what nobody asked for; the suite's gold calls notice it in the replay."""
    run = import_run("openai", TRACES / "travel_wrong_id.jsonl", out=tmp_path)
    suite = shipped.suite("travel")
    drafted = draft_suite(run, suite=suite, status="any", scenario="weather-gate-book")
    write_drafts(drafted, tmp_path / "drafts.yaml")
    again = _run(tmp_path / "drafts.yaml", tmp_path, agent="evalkit.examples.travel:agent")
    [record] = again.records
    assert (record.status, record.reason_code) == ("failed", "grader_failed")
    assert "expected 'AA123', got 'AA999'" in record.reason
