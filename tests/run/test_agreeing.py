"""Trials of the contract lane are copies: two that differ are no pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.ledger import Event
from evalkit.results import Manifest, PlannedScenario, TrialRecord
from evalkit.run.agreeing import Copies

MANIFEST = Manifest("r", "s", "contract", (PlannedScenario("a", 3),), clock="scenario")
WORDS = (
    Event(2, "turn", {"text": "hi", "turn": 0}),
    Event(3, "reply", {"text": "hello", "turn": 0}),
    Event(4, "trial_end", {"status": "passed", "reason_code": "", "reason": ""}),
)


def record(trial: int, **more: Any) -> TrialRecord:
    """Make the record of a trial that passed, unless said otherwise."""
    return TrialRecord(**{"scenario": "a", "trial": trial, "status": "passed", **more})


def ledger(trial: int, *events: Event) -> tuple[Event, ...]:
    """Begin a ledger as each trial does, with its number and seed."""
    told = {"scenario": "a", "trial": trial, "lane": "contract", "seed": 100 + trial}
    return Event(1, "trial_start", told, real={"at_s": trial / 7}), *events


def said(text: str) -> tuple[Event, ...]:
    """Give what happens where another reply is given."""
    return WORDS[0], WORDS[1]._replace(data={"text": text, "turn": 0}), WORDS[2]


def test_trials_that_did_the_same_agree() -> None:
    """Number, seed and real times of a trial are no difference."""
    copies = Copies(MANIFEST)
    for trial in range(3):
        assert copies.fault_of(record(trial), ledger(trial, *WORDS)) is None


def test_difference_fails_the_later_trial_and_is_named() -> None:
    """The first event that differs is named, with both values."""
    copies = Copies(MANIFEST)
    assert copies.fault_of(record(0), ledger(0, *WORDS)) is None
    fault = copies.fault_of(record(1, duration_s=0.5), ledger(1, *said("bye")))
    assert fault is not None
    assert (fault.status, fault.reason_code, fault.duration_s) == (
        "failed",
        "not_deterministic",
        0.5,
    )
    assert fault.reason == (
        "the agent is not deterministic: under the same conditions trial 1 differs from trial 0: "
        'event 3 (reply), data.text: "bye" and not "hello"'
    )


@pytest.mark.parametrize(
    ("events", "what"),
    [
        (WORDS[:2], "event 4 (trial_end) is missing"),
        ((*WORDS, Event(5, "log", {"text": "late"})), "event 5 (log) is one more"),
        ((WORDS[0], Event(3, "log", {"text": "x"})), "event 3 is a log, not a reply"),
        (said("x" * 500), '"' + "x" * 79 + "... and not"),
    ],
    ids=["missing", "more", "kind", "long"],
)
def test_what_differs_is_said_in_a_few_words(events: tuple[Event, ...], what: str) -> None:
    """A missing event, one more, another kind, or values that are too long to show."""
    copies = Copies(MANIFEST)
    copies.fault_of(record(0), ledger(0, *WORDS))
    fault = copies.fault_of(record(1), ledger(1, *events))
    assert fault is not None
    assert what in fault.reason


@pytest.mark.parametrize("clock", ["libfaketime", "real"])
def test_another_program_is_not_blamed(clock: str) -> None:
    """Nobody seeds its randomness, so whether the agent is unsteady was not measured."""
    copies = Copies(replace(MANIFEST, clock=clock))
    copies.fault_of(record(0), ledger(0, *WORDS))
    fault = copies.fault_of(record(1), ledger(1, *said("bye")))
    assert fault is not None
    assert (fault.status, fault.reason_code) == ("incomplete", "not_repeatable")


@pytest.mark.parametrize(
    "manifest",
    [
        replace(MANIFEST, lane="live"),
        replace(MANIFEST, plan=(PlannedScenario("a", 1),)),
    ],
    ids=["live", "one trial"],
)
def test_only_copies_are_compared(manifest: Manifest) -> None:
    """Elsewhere trials may differ, which is what rates are for."""
    copies = Copies(manifest)
    assert copies.fault_of(record(0), ledger(0, *WORDS)) is None
    assert copies.fault_of(record(1), ledger(1, *said("bye"))) is None


def test_trial_that_is_no_pass_anyway_keeps_its_reason() -> None:
    """A trial that failed neither is compared, nor is one compared with it."""
    copies = Copies(MANIFEST)
    assert copies.fault_of(record(0, status="failed"), ledger(0, *said("bye"))) is None
    assert copies.fault_of(record(1), ledger(1, *WORDS)) is None
    assert copies.fault_of(record(2), ledger(2, *WORDS)) is None


def test_run_that_was_interrupted_is_taken_up_without_a_folder_that_is_not_needed(
    tmp_path: Path,
) -> None:
    """Where nothing is compared, nothing is read."""
    Copies(replace(MANIFEST, lane="live")).take_up(tmp_path / "gone")
