"""The statistics stay fast enough for large runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from evalkit.stats import compare, pass_rates, sign_flip_test


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


@pytest.mark.benchmark
def test_a_thousand_scenarios_are_permuted_in_half_a_second():
    """1,000 scenarios x 10,000 resamples take at most 0.5 s of CPU, with a slack of 1.3."""
    bench = _bench()
    differences = bench.make_differences()
    figures = bench.medians({"flips": lambda: sign_flip_test(differences)}, repeats=5)
    assert figures["flips"] <= 500 * 1.3


@pytest.mark.benchmark
def test_two_large_runs_are_compared_in_200_ms():
    """10,000 scenarios x 10 trials on each side take at most 0.2 s of CPU, slack 1.3."""
    bench = _bench()
    run, baseline = bench.make_trials(), bench.make_trials(seed=2)
    figures = bench.medians({"compare": lambda: compare(run, baseline)}, repeats=5)
    assert figures["compare"] <= 200 * 1.3


@pytest.mark.benchmark
def test_the_peers_of_a_comparison_estimate_the_same():
    """The difference and the p-value are those of the peers that are timed beside them."""
    bench = _bench()
    run, baseline = (bench.make_trials(n_scenarios=300, seed=seed) for seed in (1, 2))
    row = compare(run, baseline).iloc[0]
    difference, low, high = bench.paired_with_statsmodels(run, baseline)
    assert row["difference"] == pytest.approx(difference)
    assert row["difference_high"] - row["difference_low"] == pytest.approx(high - low, rel=0.05)
    differences = bench.make_differences(12)
    theirs = bench.flips_with_scipy(differences)
    assert sign_flip_test(differences).p_value == pytest.approx(theirs)
