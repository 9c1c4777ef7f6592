"""What a room costs a trial."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "bench_sandbox.py"
MAX_FORKS, SLACK = 2.3, 1.3


@pytest.mark.benchmark
def test_room_is_cheap(visit):
    """Barrier, mounts, clock and ids together take at most 2.3 x the CPU of one more fork.

    That is about 4 ms; in forks, because what the kernel does takes twice as long on
    one machine as on another.
    """
    env = dict(os.environ, PYTHONPATH=str(SCRIPT.parents[2]))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--room"], capture_output=True, text=True, check=True, env=env
    )
    cpu_ms = {line.split()[0]: float(line.split()[-1]) for line in done.stdout.splitlines()[2:]}
    fork_ms = cpu_ms["second_fork"] - cpu_ms["nothing"]
    assert cpu_ms["room"] - cpu_ms["nothing"] <= MAX_FORKS * fork_ms * SLACK, done.stdout
