"""How often the gate is wrong, by simulation through ``ek.gate``."""

from __future__ import annotations

import bench_gate
import pytest
from bench_gate import MAX_FALSE_FAIL, UNCHANGED, World

REPEATS = 250


@pytest.mark.parametrize("world", UNCHANGED, ids=lambda world: f"n={world.n_scenarios}")
def test_gate_fails_few_unchanged_agents(world: World) -> None:
    """At most 4 % of unchanged agents are failed, and the rest is not called invalid."""
    counts = bench_gate.verdicts(world, repeats=REPEATS)
    assert counts["FAIL"] <= MAX_FALSE_FAIL * REPEATS
    assert counts["INVALID"] == 0
    assert counts.total() == REPEATS


def test_gate_fails_an_agent_that_broke() -> None:
    """A 20-point break of a few scenarios out of 100 is failed nearly always, never passed."""
    counts = bench_gate.verdicts(World(100, "few break", 0.2), repeats=40)
    assert counts["FAIL"] >= 38
    assert counts["PASS"] == 0
