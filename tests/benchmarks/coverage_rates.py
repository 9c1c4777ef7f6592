"""Coverage of the intervals for pass rates, simulated: how often they hold the true mean rate.

Run it for the whole table: ``python tests/benchmarks/coverage_rates.py`` (some
minutes). Scenario rates are beta distributed; a cell is a number of scenarios,
of trials, a mean rate and an intra-class correlation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evalkit.stats import Interval, beta_binomial_interval, cluster_mean
from evalkit.stats.intervals import cluster_count_interval, clustered_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE = 0.95
SIZES = (5, 20, 100, 1000)
# The smallest coverage over the settings of each size that the reference simulation saw.
PRINTED = {
    "Wilson over scenarios": (0.937, 0.922, 0.938, 0.936),
    "clustered Wilson-t": (0.920, 0.891, 0.936, 0.934),
    "beta-binomial grid": (0.920, 0.922, 0.938, 0.931),
}


class Setting(NamedTuple):
    """What one cell of the table simulates."""

    n_scenarios: int
    n_trials: int
    mean: float
    icc: float


def settings(n_scenarios: int) -> list[Setting]:
    """Return the settings of one column; a single trial does not see the correlation."""
    return [
        Setting(n_scenarios, k, mean, icc)
        for k in (1, 3, 10)
        for mean in (0.5, 0.8, 0.95)
        for icc in (0.2, 0.6)
        if (k, icc) != (1, 0.2)
    ]


def full_repeats(n_scenarios: int) -> int:
    """Return the repeats of the whole table."""
    return 1000 if n_scenarios == 1000 else 2000


def draw(setting: Setting, repeats: int, seed: int) -> NDArray[np.int64]:
    """Return passed trials, one row a repeat and one column a scenario."""
    n, k, mean, icc = setting
    rng = np.random.default_rng([seed, n, k, round(100 * mean), round(10 * icc)])
    strength = (1 - icc) / icc
    rates = rng.beta(mean * strength, (1 - mean) * strength, (repeats, n))
    return rng.binomial(k, rates)


def wilson_over_scenarios(passed: NDArray[np.int64], n_trials: int) -> Interval:
    """Return Wilson's interval with one observation a scenario."""
    spread = cluster_mean((passed / n_trials).ravel(), groups=_rows(passed))
    return cluster_count_interval(spread, confidence=CONFIDENCE)


def clustered_wilson_t(passed: NDArray[np.int64], n_trials: int) -> Interval:
    """Return evalkit's default interval."""
    spread = cluster_mean((passed / n_trials).ravel(), groups=_rows(passed))
    total = np.full(len(passed), float(n_trials * passed.shape[1]))
    return clustered_interval(spread, total, confidence=CONFIDENCE)


def beta_binomial_grid(passed: NDArray[np.int64], n_trials: int) -> Interval:
    """Return the beta-binomial interval."""
    return beta_binomial_interval(
        passed.ravel(),
        n_trials,
        groups=_rows(passed),
        n_groups=len(passed),
        confidence=CONFIDENCE,
    )


METHODS: dict[str, Callable[[NDArray[np.int64], int], Interval]] = {
    "Wilson over scenarios": wilson_over_scenarios,
    "clustered Wilson-t": clustered_wilson_t,
    "beta-binomial grid": beta_binomial_grid,
}


def coverage(setting: Setting, method: str, *, repeats: int, seed: int = 1) -> float:
    """Return how often the intervals of a method hold the true mean."""
    bounds = METHODS[method](draw(setting, repeats, seed), setting.n_trials)
    held = (bounds.low - 1e-9 <= setting.mean) & (setting.mean <= bounds.high + 1e-9)
    return float(held.mean())


def minimum(n_scenarios: int, method: str, *, repeats: int, seed: int = 1) -> float:
    """Return the smallest coverage over the settings of a column."""
    return min(coverage(s, method, repeats=repeats, seed=seed) for s in settings(n_scenarios))


def printed_minimum(n_scenarios: int, method: str) -> float:
    """Return the minimum of the reference simulation."""
    return PRINTED[method][SIZES.index(n_scenarios)]


def four_errors(share: float, repeats: int) -> float:
    """Return four Monte Carlo errors of a share."""
    return float(4 * np.sqrt(share * (1 - share) / repeats))


def main() -> int:
    """Print the table beside the reference; return 1 if a minimum is too far off."""
    wrong = 0
    for n in SIZES:
        for method in METHODS:
            repeats, printed = full_repeats(n), printed_minimum(n, method)
            shares = [coverage(s, method, repeats=repeats) for s in settings(n)]
            off = abs(min(shares) - printed) > four_errors(printed, repeats)
            wrong += off
            found = f"min {min(shares):.3f} mean {np.mean(shares):.3f}"
            print(f"n={n:<5} {method:22} {found}  (reference {printed:.3f}){' OFF' * off}")
    return int(wrong > 0)


def _rows(passed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the repeat that each scenario belongs to."""
    return np.repeat(np.arange(len(passed)), passed.shape[1])


if __name__ == "__main__":
    sys.exit(main())
