"""Seeded simulations: the intervals cover as often as they say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

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


def _simulation():
    """Load the simulation of the benchmarks as a module."""
    path = Path(__file__).parents[1] / "benchmarks" / "coverage_rates.py"
    spec = importlib.util.spec_from_file_location("coverage_rates", path)
    module = importlib.util.module_from_spec(spec)
    # A NamedTuple looks its own module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SIMULATION = _simulation()


@pytest.mark.parametrize("n", [5, 20, 100])
@pytest.mark.parametrize("method", ["Wilson over scenarios", "clustered Wilson-t"])
def test_wilson_covers_as_often_as_documented(n, method):
    """Over all settings the least coverage is the documented one, within its noise."""
    found = SIMULATION.minimum(n, method, repeats=REPEATS)
    printed = SIMULATION.printed_minimum(n, method)
    assert found == pytest.approx(printed, abs=SIMULATION.four_errors(printed, REPEATS))


@pytest.mark.parametrize("method", ["Wilson over scenarios", "clustered Wilson-t"])
def test_wilson_covers_at_a_thousand_scenarios(method):
    """A large suite, at the settings that cover least: not below the documented minimum."""
    printed = SIMULATION.printed_minimum(1000, method)
    for setting in SIMULATION.settings(1000)[-2:]:
        found = SIMULATION.coverage(setting, method, repeats=1000)
        assert found >= printed - SIMULATION.four_errors(printed, 1000)


def test_beta_binomial_grid_covers_at_twenty_scenarios():
    """One setting in full: not below the documented minimum of .922."""
    setting = SIMULATION.Setting(20, 3, 0.8, 0.6)
    found = SIMULATION.coverage(setting, "beta-binomial grid", repeats=REPEATS)
    assert found >= 0.922 - SIMULATION.four_errors(0.922, REPEATS)
    assert found < 0.98  # it is not just wide


@pytest.mark.parametrize("n", [5, 20, 100])
def test_beta_binomial_grid_covers_everywhere(n):
    """Each setting of the table, briefly: not below the documented minimum."""
    printed = SIMULATION.printed_minimum(n, "beta-binomial grid")
    for setting in SIMULATION.settings(n):
        found = SIMULATION.coverage(setting, "beta-binomial grid", repeats=150)
        assert found >= printed - SIMULATION.four_errors(printed, 150)


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
