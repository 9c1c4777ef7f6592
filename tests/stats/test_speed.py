"""The statistics stay fast enough for large runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from evalkit.stats import pass_rates


def _bench():
    """Load the benchmark script as a module."""
    path = Path(__file__).parents[1] / "benchmarks" / "bench_stats.py"
    spec = importlib.util.spec_from_file_location("bench_stats", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.benchmark
def test_a_hundred_thousand_trials_are_summarised_in_50_ms():
    """10,000 scenarios x 10 trials take at most 50 ms of CPU, with a slack of 1.3."""
    bench = _bench()
    trials = bench.make_trials()
    figures = bench.medians({"rates": lambda: pass_rates(trials)}, repeats=7)
    assert figures["rates"] <= 50 * 1.3


@pytest.mark.benchmark
def test_the_benchmark_compares_the_same_estimate():
    """Our rate and clustered error are those of the peer that is timed beside them."""
    from evalkit.stats import standard_errors

    bench = _bench()
    trials = bench.make_trials(n_scenarios=200)
    rate, error = bench.with_statsmodels(trials)
    row = standard_errors(trials).iloc[0]
    assert row["rate"] == pytest.approx(rate)
    assert row["se_clustered"] == pytest.approx(error, rel=1e-3)
