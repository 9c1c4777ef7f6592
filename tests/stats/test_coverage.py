"""Seeded simulations: the intervals cover as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from evalkit.stats.clusters import cluster_mean
from evalkit.stats.intervals import clustered_interval, fixed_suite_interval

REPEATS = 2000


def _draw(rng, *, n, k, mean, rho):
    """Return true scenario rates and observed ones, one row a repeat."""
    a, b = mean * (1 - rho) / rho, (1 - mean) * (1 - rho) / rho
    truth = rng.beta(a, b, (REPEATS, n))
    return truth, rng.binomial(k, truth) / k


def _share(bounds, target):
    """Return how often the bounds hold the target."""
    return float(((bounds.low - 1e-9 <= target) & (target <= bounds.high + 1e-9)).mean())


def _groups(n):
    """Return the repeat that each scenario belongs to."""
    return np.repeat(np.arange(REPEATS), n)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("mean", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("rho", [0.2, 0.6])
def test_clustered_wilson_covers_at_twenty_scenarios(k, mean, rho):
    """No cell falls below the documented minimum of .891 by more than the noise of 2,000 draws."""
    rng = np.random.default_rng([20, k, round(100 * mean), round(10 * rho)])
    _, rates = _draw(rng, n=20, k=k, mean=mean, rho=rho)
    spread = cluster_mean(rates.ravel(), groups=_groups(20))
    bounds = clustered_interval(spread, np.full(REPEATS, 20.0 * k), confidence=0.95)
    noise = np.sqrt(0.891 * 0.109 / REPEATS)
    assert _share(bounds, mean) >= 0.891 - 4 * noise


def test_clustered_wilson_covers_on_average():
    """Over all cells at twenty scenarios, coverage is the documented .954 on average."""
    shares = []
    for k, mean, rho in [(k, m, r) for k in (3, 10) for m in (0.5, 0.8) for r in (0.2, 0.6)]:
        _, rates = _draw(np.random.default_rng([7, k]), n=20, k=k, mean=mean, rho=rho)
        spread = cluster_mean(rates.ravel(), groups=_groups(20))
        bounds = clustered_interval(spread, np.full(REPEATS, 20.0 * k), confidence=0.95)
        shares.append(_share(bounds, mean))
    assert np.mean(shares) == pytest.approx(0.954, abs=0.012)


def test_counting_trials_as_independent_would_not_cover():
    """The simulation can fail: Wilson over pooled trials covers far too little."""
    from evalkit.stats.intervals import wilson

    _, rates = _draw(np.random.default_rng(3), n=20, k=10, mean=0.8, rho=0.6)
    pooled = wilson(np.rint(rates.sum(1) * 10), 200)
    assert _share(pooled, 0.8) < 0.7


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("k", [2, 10])
@pytest.mark.parametrize("mean", [0.5, 0.95])
def test_fixed_suite_covers_its_own_mean(n, k, mean):
    """The fixed-suite interval holds the mean rate of exactly these scenarios."""
    truth, rates = _draw(np.random.default_rng([n, k]), n=n, k=k, mean=mean, rho=0.6)
    bounds = fixed_suite_interval(
        rates.ravel(),
        np.full(rates.size, float(k)),
        _groups(n),
        n_groups=REPEATS,
        confidence=0.95,
    )
    assert _share(bounds, truth.mean(1)) >= 0.943 - 4 * np.sqrt(0.943 * 0.057 / REPEATS)
