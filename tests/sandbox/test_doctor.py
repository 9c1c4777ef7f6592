"""The doctor says what is there, and what to do about what is not."""

from __future__ import annotations

import pytest

from evalkit.sandbox import doctor

NAMES = [
    "system", "processes", "process table", "network barrier", "files", "signals",
    "clock of other programs",
]  # fmt: skip


def test_diagnosis_tries_everything(visit):
    """Every finding has a detail, and the one that is wanting an advice."""
    findings = doctor.diagnose()
    assert [finding.name for finding in findings][:7] == NAMES
    assert {"time-machine", "trustme"} <= {finding.name for finding in findings}
    assert all(finding.detail for finding in findings)
    assert all(finding.advice for finding in findings if finding.state == "missing")
    states = {finding.name: finding.state for finding in findings}
    assert states["network barrier"] == "good"  # else the fixture had skipped


def test_missing_barrier_is_a_finding():
    """What the server or the room said is passed on, with how to allow it."""
    tried = {
        "mode": "fork",
        "secluded": False,
        "problem": "unshare: no",
        "is_private": False,
        "notes": [],
    }
    processes, table, network, files = doctor._room_findings(tried)
    assert (processes.state, table.state) == ("good", "limited")
    assert (network.state, network.detail) == ("missing", "unshare: no")
    assert network.advice
    assert files.state == "limited"


def test_server_that_does_not_start_is_a_finding(monkeypatch):
    """A broken installation is diagnosed, not raised."""
    monkeypatch.setattr(doctor, "server_environment", lambda: {"PATH": "/nowhere"})
    monkeypatch.setattr(doctor.ForkServer, "__enter__", _refuse)
    tried = doctor._try_room()
    assert tried["problem"] == "no server"
    assert doctor._processes(tried["mode"]).state == "missing"


def _refuse(_: object) -> None:
    raise doctor.SandboxError("no server")


@pytest.mark.parametrize("problem", ["", "libfaketime is not installed"])
def test_clock_of_other_programs_needs_a_library(monkeypatch, problem):
    """It is used where it is installed, and its absence is limited, not fatal."""
    library = "" if problem else "/lib/x.so"
    monkeypatch.setattr(doctor, "plan_faking", lambda: (library, problem, "install it"))
    finding = doctor._faketime()
    assert finding.state == ("limited" if problem else "good")
    assert (problem or library) in finding.detail
    assert finding.advice == "install it" * bool(problem)


def test_slow_processes_are_limited():
    """Spawning works, and costs."""
    assert doctor._processes("spawn").state == "limited"
