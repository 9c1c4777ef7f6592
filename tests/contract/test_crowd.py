"""Hundreds of trials at a time leave nothing behind; a runner that is killed loses nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

N_AT_ONCE = 200
N_KILLS = 10

CROWD = """\
import json, os, sys, threading
from pathlib import Path
import evalkit as ek
from evalkit.suite import Suite

def held():
    return {
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
        "mounts": Path("/proc/self/mountinfo").read_text(),
    }

suite = ek.load_suite(sys.argv[1])
ek.run_suite(suite, out=sys.argv[2] + "/warm", scenarios=[next(iter(suite)).id])
before = held()
ek.run_suite(suite, out=sys.argv[2] + "/runs", n_parallel=int(sys.argv[3]))
print(json.dumps([before, held()]))
"""

RUNNER = """\
import sys
import evalkit as ek
if sys.argv[2:]:
    ek.resume_run(sys.argv[2], n_parallel=2)
else:
    ek.run_suite(sys.argv[1], out="runs", n_parallel=2)
"""


def scenarios(n: int, *, pause_s: float) -> list[dict[str, Any]]:
    """Write scenarios that the quick agent passes."""
    return [
        {
            "id": f"s{number}",
            "input": f"Hello {number}",
            "env": {"PAUSE_S": str(pause_s)},
            "model": [{"text": f"Good day {number}."}],
            "expect": {"reply": {"contains": f"good day {number}."}},
        }
        for number in range(n)
    ]


def listening() -> set[str]:
    """Return the machine's own sockets that somebody listens at."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6", "udp", "udp6")
        for line in Path("/proc/net", table).read_text().splitlines()[1:]
    ]
    return {fields[1] for fields in lines if fields[3] in {"0A", "07"}}


def test_crowd_of_trials_leaves_nothing_behind(
    tmp_path: Path, write_suite: Callable[..., Path], make_mark: Callable[[Path], Any]
) -> None:
    """200 trials in flight: all pass, and no process, port, file, mount or descriptor is left."""
    mark = make_mark(tmp_path)
    suite = write_suite(tmp_path / "suite", "quick:agent", scenarios(N_AT_ONCE, pause_s=1.0))
    ports = listening()
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", CROWD, str(suite), str(tmp_path), str(N_AT_ONCE)],
        env=mark.env,
        check=True,
        capture_output=True,
        timeout=120,
    )
    duration_s = time.monotonic() - started
    run = ek.load_run(next((tmp_path / "runs").iterdir()))
    assert len(run.records) == N_AT_ONCE
    assert {record.reason for record in run.records} == {""}
    before, after = json.loads(done.stdout)
    assert after == before
    assert mark.living() == []
    assert list(mark.tmp.iterdir()) == []
    assert {port for port in listening() - ports if port.endswith(f":{8377:04X}")} == set()
    assert list((next((tmp_path / "runs").iterdir()) / "ledgers").glob("*.partial")) == []
    assert duration_s < N_AT_ONCE * 1.0 / 4  # one after the other, the pauses alone would take more


def finished(folder: Path) -> dict[str, str | None]:
    """Return the trials that a run has finished, with what they did."""
    records = ek.load_run(folder).records
    return {record.scenario: record.digest for record in records if record.status == "passed"}


def start(suite: Path, folder: Path | None, mark: Any) -> subprocess.Popen[bytes]:
    """Start a runner that begins a run, or goes on with it."""
    arguments = [str(suite), *([str(folder)] if folder else [])]
    command = [sys.executable, "-c", RUNNER, *arguments]
    return subprocess.Popen(command, env=mark.env, cwd=suite.parent.parent)


def wait_for_progress(folder: Path, n_before: int, runner: subprocess.Popen[bytes]) -> None:
    """Wait until a runner has finished one more trial."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and runner.poll() is None:
        for trials in folder.glob("runs/*/trials.jsonl"):
            if trials.read_bytes().count(b"\n") > n_before:
                return
        time.sleep(0.002)
    raise AssertionError("the runner ended, or did nothing for a minute")


def test_runner_killed_at_random_moments_loses_no_finished_trial(
    tmp_path: Path, write_suite: Callable[..., Path], make_mark: Callable[[Path], Any]
) -> None:
    """Ten times kill -9: nothing lives on, no finished trial is lost, the digest stays the same."""
    mark, chance = make_mark(tmp_path), random.Random(7)
    suite = write_suite(tmp_path / "suite", "quick:agent", scenarios(180, pause_s=0.05))
    known: dict[str, str | None] = {}
    folder: Path | None = None
    for number in range(N_KILLS):
        runner = start(suite, folder, mark)
        if number % 2:  # some time after it began, perhaps before its first trial
            time.sleep(chance.uniform(0.2, 1.5))
        else:
            wait_for_progress(tmp_path, len(known), runner)
            time.sleep(chance.uniform(0.0, 0.3))
        os.kill(runner.pid, signal.SIGKILL)
        assert runner.wait() == -signal.SIGKILL
        assert mark.living() == []
        (folder,) = (tmp_path / "runs").iterdir()
        now = finished(folder)
        assert now | known == now
        known = now
    assert folder is not None
    assert N_KILLS / 2 <= len(known) < 180
    resumed = ek.resume_run(folder)
    assert resumed.status == "passed"
    assert {**finished(folder), **known} == finished(folder)
    assert list((folder / "ledgers").glob("*.partial")) == []
    whole = ek.run_suite(suite, out=tmp_path / "whole")
    assert resumed.digest == whole.digest
    assert list(mark.tmp.iterdir()) == []
