"""Agents that are other programs see the scenario's clock, where libfaketime is installed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek
from evalkit.errors import UsageError
from evalkit.sandbox import faketime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

AGENTS: Mapping[str, Any] = {
    "command": {"command": [sys.executable, "tells_time.py"]},
    "http": {"http": {"command": ["node", "tells_time.mjs"], "port": 8123, "path": "/"}},
}


def ask(*seen: str) -> dict[str, Any]:
    """Write a turn with a model call; what is seen before it, after it and by ``date``."""
    before, after = seen
    reply = {"equals": f"{before} {after} {after} True"}
    return {"user": "ask", "model": [{"text": "Hello."}], "expect": {"reply": reply}}


MOVING = {
    "id": "moving",
    "clock": "2026-03-01T10:30:00Z",
    "turns": [
        ask("2026-03-01T10:30:00", "2026-03-01T10:30:01"),
        {"advance": "2d"},
        ask("2026-03-03T10:30:01", "2026-03-03T10:30:02"),
    ],
}
FROZEN = {
    "id": "frozen",
    "clock": {"at": "2026-03-01T10:30:00Z", "frozen": True},
    "turns": [
        ask("2026-03-01T10:30:00", "2026-03-01T10:30:00"),
        {"advance": "1h"},
        ask("2026-03-01T11:30:00", "2026-03-01T11:30:00"),
    ],
}
USUAL = {"id": "usual", "turns": [ask("2026-01-05T09:00:00", "2026-01-05T09:00:01")]}
ELSEWHERE = {
    "id": "elsewhere",
    "env": {"TZ": "JST-9"},
    "turns": [ask("2026-01-05T18:00:00", "2026-01-05T18:00:01")],
}


@pytest.fixture
def library() -> str:
    """Find libfaketime; without it these tests say nothing."""
    found, problem, advice = faketime.plan_faking()
    if not found and os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
        pytest.fail(f"EVALKIT_REQUIRE_ALL=1, but {problem}: {advice}")
    if not found:
        pytest.skip(problem)
    return found


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kind", AGENTS)
def test_program_sees_the_scenarios_clock(
    kind: str, tmp_path: Path, write_suite: Callable[..., Path]
) -> None:
    """It starts at ``clock``, moves a second a reply and by ``advance``; sleeping works."""
    if kind == "http" and shutil.which("node") is None:
        if os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
            pytest.fail("EVALKIT_REQUIRE_ALL=1, but node is not installed")
        pytest.skip("node is not installed")
    scenarios = [MOVING, FROZEN, USUAL, *([ELSEWHERE] if kind == "command" else [])]
    suite = write_suite(tmp_path / "suite", AGENTS[kind], scenarios)
    runs = [ek.run_suite(suite, out=tmp_path / f"runs-{n}") for n in (1, 2)]
    assert {record.reason for record in runs[0].records} == {""}
    assert runs[0].status == "passed"
    assert runs[0].manifest.clock == "libfaketime"
    assert runs[0].digest == runs[1].digest


def test_without_libfaketime_a_scenarios_clock_is_not_measured(
    tmp_path: Path, write_suite: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenarios that set or move the clock are incomplete and say what to install."""
    monkeypatch.setattr(faketime, "find_faketime", lambda: "")
    plain = {"id": "plain", "input": "x", "model": [], "expect": {"replies": 1}}
    suite = write_suite(tmp_path / "suite", AGENTS["command"], [MOVING, plain])
    run = ek.run_suite(suite, out=tmp_path / "runs")
    assert (run.status, run.manifest.clock) == ("incomplete", "real")
    moving, other = run.records
    assert (moving.status, moving.reason_code) == ("incomplete", "real_clock")
    assert "`clock` and an `advance` turn" in moving.reason
    assert "apt install libfaketime" in moving.reason
    assert other.status == "passed"
    assert other.grades


def test_run_is_not_gone_on_with_under_another_clock(
    tmp_path: Path, write_suite: Callable[..., Path], library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials that saw the real time stand in no run beside trials that did not."""
    assert library
    suite = write_suite(tmp_path / "suite", AGENTS["command"], [USUAL])
    run = ek.run_suite(suite, out=tmp_path / "runs")
    monkeypatch.setattr(faketime, "find_faketime", lambda: "")
    with pytest.raises(
        UsageError, match="clock 'libfaketime', and its agent would have 'real' now"
    ):
        ek.resume_run(tmp_path / "runs" / run.manifest.run_id)


def test_agent_in_this_language_needs_no_library(
    tmp_path: Path, write_suite: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python callable's clock is set in its own process, with or without libfaketime."""
    monkeypatch.setattr(faketime, "find_faketime", lambda: pytest.fail("it was looked for"))
    told = {
        "id": "a",
        "input": "x",
        "clock": "2026-03-01T10:30:00Z",
        "env": {"PAUSE_S": "0"},
        "model": [{"text": "Hello."}],
        "expect": {"replies": 1},
    }
    suite = write_suite(tmp_path / "suite", "quick:agent", [told])
    run = ek.run_suite(suite, out=tmp_path / "runs")
    assert (run.status, run.manifest.clock) == ("passed", "scenario")
