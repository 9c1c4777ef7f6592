"""The figures that evalkit promises, at CI size: its own limits, and beside Inspect AI.

Limits are kept with a slack of 1.3 by the best of a few measurements, because a
busy machine only ever adds; those in seconds grow with what the machine needs for a
fixed piece of work. The peer is used where its environment is there; it is made here
only if ``EVALKIT_PEER_ENV`` says where.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import bench_career
import bench_contract
import bench_frames
import bench_import
import bench_trials
import measuring
import peer
import pytest

SLACK = 1.3
_IN_FLIGHT, _CALM = 2, 2.5  # our own two trials are a part of that load
Answers = Mapping[str, Mapping[str, float]]

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def peer_or_reason() -> Path | str:
    """Give the peer's interpreter, or say why there is none."""
    wanted = "EVALKIT_PEER_ENV" in os.environ
    try:
        return peer.python(make=wanted)
    except peer.PeerMissingError as error:
        if wanted and os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
            pytest.fail(f"EVALKIT_REQUIRE_ALL=1, but {error}")
        return str(error)


@pytest.fixture(scope="module")
def present_peer(peer_or_reason: Path | str) -> Path:
    """Give the peer's interpreter; the test is skipped where there is none."""
    if isinstance(peer_or_reason, str):
        pytest.skip(peer_or_reason)
    return peer_or_reason


def _allowed(limit: float) -> float:
    """Give a limit with its slack, on this machine."""
    return limit * SLACK * measuring.slowness()


@pytest.fixture  # measured anew where a test is run again
def trials(peer_or_reason: Path | str) -> Answers:
    """Measure what a trial costs on each side, or on ours alone."""
    peer_python = None if isinstance(peer_or_reason, str) else peer_or_reason
    return bench_trials.measure(bench_trials.CI, peer_python, best=True)


def test_start_of_evalkit_stays_within_its_limits() -> None:
    """``import evalkit`` takes less than 0.2 s of CPU, ``evalkit --help`` less than 0.3 s."""
    figures = bench_import.measure(bench_import.commands(None), rounds=5, best=True)
    assert figures["import"] <= _allowed(bench_import.IMPORT_LIMIT_S)
    assert figures["help"] <= _allowed(bench_import.HELP_LIMIT_S)


def test_import_of_evalkit_costs_a_fifth_of_the_peers(present_peer: Path) -> None:
    """The import takes at most a fifth of the peer's CPU, interpreters included."""
    commands = bench_import.commands(present_peer)
    imports = {name: commands[name] for name in ("import", "peer_import")}
    figures = bench_import.measure(imports, rounds=3)
    assert figures["import"] <= figures["peer_import"] / 5


def test_a_trial_in_process_costs_at_most_a_millisecond(trials: Answers) -> None:
    """Recording, grading and writing a trial of five calls takes at most 1 ms of CPU."""
    ours = trials["in_process"]
    assert (ours["n_model_calls"], ours["n_tool_calls"], ours["n_grades"]) == (3, 2, 3)
    assert ours["cpu_ms"] <= _allowed(bench_trials.LIMIT_MS)


@pytest.mark.usefixtures("present_peer")
def test_a_trial_in_process_costs_a_tenth_of_the_peers(trials: Answers) -> None:
    """A trial takes at most a tenth of the CPU of the peer's sample on the same turns."""
    assert trials["in_process"]["cpu_ms"] <= trials["peer"]["cpu_ms"] / 10


@pytest.mark.usefixtures("present_peer")
def test_a_fresh_process_is_no_dearer_than_the_peers_mock(trials: Answers) -> None:
    """An isolated trial takes no more CPU than the peer's sample that is not isolated."""
    assert trials["fresh_process"]["cpu_ms"] <= trials["peer"]["cpu_ms"]


@pytest.fixture
def contract(peer_or_reason: Path | str) -> Answers:
    """Measure a trial in the contract lane, the start of Python, and the peer if it is there."""
    peer_python = None if isinstance(peer_or_reason, str) else peer_or_reason
    return bench_contract.measure(bench_contract.CI, peer_python, best=True)


def test_a_contract_trial_costs_less_than_a_start_of_python(contract: Answers) -> None:
    """A room, the real SDK, three calls and a ledger: at most 0.6 x of an interpreter's start."""
    ours = contract["contract"]
    assert (ours["n_model_calls"], ours["n_tool_calls"], ours["n_grades"]) == (3, 2, 3)
    limit = contract["start"]["cpu_ms"] * bench_contract.START_LIMIT
    assert ours["more_cpu_ms"] <= limit * SLACK


@pytest.mark.usefixtures("present_peer")
def test_a_contract_trial_is_no_dearer_than_the_peers_mock(contract: Answers) -> None:
    """It takes no more CPU than the peer's sample, which is neither isolated nor over HTTP."""
    limit = contract["peer"]["cpu_ms"] * bench_contract.CPU_LIMIT
    assert contract["contract"]["more_cpu_ms"] <= limit * SLACK


@pytest.mark.usefixtures("present_peer")
def test_a_contract_trial_is_sooner_done_than_the_peers_mock(contract: Answers) -> None:
    """With two in flight a trial takes at most 0.6 x the wall time of the peer's sample."""
    if os.getloadavg()[0] > _CALM or (os.cpu_count() or 1) < _IN_FLIGHT:
        pytest.skip("two processors at rest are needed to time two trials in flight")
    limit = contract["peer"]["wall_ms"] * bench_contract.WALL_LIMIT
    assert contract["contract"]["more_wall_ms"] <= limit * SLACK


def test_a_turn_of_the_career_copilot_costs_little() -> None:
    """With HTTP, SQLite and restarts, a turn takes at most 60 ms of CPU."""
    figures = bench_career.measure(3, best=True)
    assert figures["turn_cpu_ms"] <= _allowed(bench_career.LIMIT_MS)


def test_frames_of_a_thousand_trials_stay_within_their_limits() -> None:
    """1,000 trials are a frame within 0.03 s of CPU, 25,000 events within 0.3 s."""
    answers = bench_frames.measure(bench_frames.N_AT_LIMIT, rounds=3, peer_python=None, best=True)
    ours = answers["evalkit"]
    assert ours["trials_cpu_s"] <= _allowed(bench_frames.TRIALS_LIMIT_S)
    assert ours["events_cpu_s"] <= _allowed(bench_frames.EVENTS_LIMIT_S)


def test_frames_cost_at_most_half_of_the_peers(present_peer: Path) -> None:
    """Both frames of a hundred trials take at most half of the peer's CPU."""
    n = bench_frames.N_COMPARED_IN_CI
    answers = bench_frames.measure(n, rounds=1, peer_python=present_peer)
    ours, theirs = answers["evalkit"], answers["peer"]
    assert ours["trials_cpu_s"] <= theirs["trials_cpu_s"] / 2
    assert ours["events_cpu_s"] <= theirs["events_cpu_s"] / 2
