"""What becomes of servers and trials when their caller does not end in good order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CALLER = str(Path(__file__).with_name("caller.py"))


@pytest.mark.parametrize(
    ("mode", "situation", "n_left"),
    [
        ("fork", "plain", 0),
        ("spawn", "plain", 0),
        ("fork", "forked", 1),
        ("fork", "importing", 0),
        ("spawn", "importing", 0),
    ],
)
def test_killed_caller_leaves_no_orphan(mark, mode, situation, n_left, tmp_path):
    """After kill -9 of the caller everything it started is gone; only its own fork may live."""
    announced = tmp_path / "announced"
    caller = subprocess.Popen(
        [sys.executable, CALLER, mode, situation],
        stdout=subprocess.PIPE,
        env=mark.env | {"ANNOUNCE": str(announced), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert caller.stdout is not None
    if situation == "importing":
        _wait_for(announced)
    else:
        assert caller.stdout.read(5) == b"ready"
    assert len(mark.pids()) >= 2
    caller.kill()
    caller.wait()
    left = _wait_for_number(mark, n_left)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    caller.stdout.close()
    assert len(left) == n_left


def _wait_for(path: Path) -> None:
    """Wait until a file exists."""
    deadline = time.monotonic() + 10
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert path.exists()


def _wait_for_number(mark, number: int) -> set[int]:
    """Wait until so many processes are left; return them."""
    deadline = time.monotonic() + 5
    while len(left := mark.pids()) > number and time.monotonic() < deadline:
        time.sleep(0.01)
    return left
