"""How often the gate is wrong: simulated runs through the public ``ek.gate``.

Usage: ``python tests/benchmarks/bench_gate.py [--full]``. Scenarios have pass
probabilities from a beta distribution (mean .8, intra-class correlation .5); a baseline
of three trials a scenario is compared with a run of three, by a margin of 5 points and
without a floor. The run is unchanged, or worse: every scenario by the same drop, or a
few scenarios broken for good.

``--full``: 1,000 repeats a row (some minutes), else 250 of the rows that CI asserts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from measuring import is_full
from numpy.typing import NDArray

import evalkit as ek

Floats = NDArray[np.float64]
RATE, ICC, TRIALS, SEED = 0.8, 0.5, 3, 20260105
MAX_FALSE_FAIL: Final = 0.04
"""Of unchanged agents: what the gate may fail."""


class World(NamedTuple):
    """What is simulated: how many scenarios, and what happened to the agent."""

    n_scenarios: int
    change: str = "unchanged"
    """``unchanged``, ``uniform`` or ``few break``."""
    drop: float = 0.0


UNCHANGED: Final = (World(20), World(50))
WORSE: Final = (
    World(100),
    World(200),
    World(50, "uniform", 0.05),
    World(50, "few break", 0.05),
    World(50, "few break", 0.10),
    World(100, "few break", 0.10),
    World(200, "few break", 0.10),
    World(200, "uniform", 0.10),
)


def verdicts(world: World, *, repeats: int, seed: int = SEED) -> Counter[str]:
    """Gate so many simulated pairs of runs, and count the verdicts."""
    rng = np.random.default_rng([seed, world.n_scenarios, round(1000 * world.drop)])
    return Counter(_verdict(world, rng) for _ in range(repeats))


def _verdict(world: World, rng: np.random.Generator) -> str:
    """Draw the scenarios, a baseline and a run, and gate the run."""
    size = 1 / ICC - 1
    before = rng.beta(RATE * size, (1 - RATE) * size, world.n_scenarios)
    after = _changed(before, world, rng)
    baseline, run = (_trials(rates, rng) for rates in (before, after))
    return ek.gate(run, baseline=baseline).verdict


def _changed(before: Floats, world: World, rng: np.random.Generator) -> Floats:
    """Make an agent worse by the drop of the mean rate, all alike or in a few scenarios."""
    if world.change == "uniform":
        # In proportion: the mean falls by the drop, and no rate leaves [0, 1].
        return before * (1 - world.drop / RATE)
    broken = rng.random(len(before)) < (world.drop / RATE if world.change == "few break" else 0)
    return np.where(broken, 0.0, before)


def _trials(rates: Floats, rng: np.random.Generator) -> pd.DataFrame:
    """Let each scenario have its trials."""
    passed = rng.random((len(rates), TRIALS)) < rates[:, None]
    return pd.DataFrame(
        {
            "scenario": np.repeat([f"s{i:03}" for i in range(len(rates))], TRIALS),
            "lane": "live",
            "status": np.where(passed.ravel(), "passed", "failed"),
        }
    )


def table(worlds: Iterable[World], *, repeats: int) -> pd.DataFrame:
    """Give the share of each verdict in each world."""
    rows = []
    for world in worlds:
        counts = verdicts(world, repeats=repeats)
        shares = {word: counts[word] / repeats for word in ("PASS", "FAIL", "INCONCLUSIVE")}
        rows.append({**world._asdict(), **shares})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    full = is_full()
    print(f"{1000 if full else 250} repeats, {TRIALS} trials a scenario, margin 5 points")
    print(table(UNCHANGED + (WORSE if full else ()), repeats=1000 if full else 250).to_string())
