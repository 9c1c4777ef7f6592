"""CPU time of the statistics on 10,000 scenarios x 10 trials, beside the usual tools.

Run it: ``python tests/benchmarks/bench_stats.py``. Both sides work on the same
frame in turn; each figure is the median of nine in CPU milliseconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evalkit.stats import (
    compare,
    compare_scenarios,
    flakiness,
    pass_at_k,
    pass_hat_k,
    pass_rates,
    sign_flip_test,
)

N_SCENARIOS, N_TRIALS, REPEATS = 10_000, 10, 9
N_RESAMPLES = 10_000
FLIPS = ("sign_flip_test, 1,000 scenarios", "scipy permutation_test, 1,000 scenarios")


def make_trials(
    n_scenarios: int = N_SCENARIOS, n_trials: int = N_TRIALS, *, seed: int = 1
) -> pd.DataFrame:
    """Return the trials of one large run, with the columns that a run has."""
    difficulty = np.repeat(np.random.default_rng(0).beta(2, 1, n_scenarios), n_trials)
    rng = np.random.default_rng(seed)
    passed = rng.random(n_scenarios * n_trials) < difficulty
    return pd.DataFrame(
        {
            "run_id": "r1",
            "suite": "large",
            "scenario": np.repeat([f"scenario-{i:05d}" for i in range(n_scenarios)], n_trials),
            "trial": np.tile(np.arange(n_trials), n_scenarios),
            "lane": "live",
            "status": np.where(passed, "passed", "failed"),
            "scenario_hash": np.repeat([f"{i:064x}" for i in range(n_scenarios)], n_trials),
        }
    )


def with_statsmodels(trials: pd.DataFrame) -> tuple[float, float]:
    """Estimate rate and clustered error as a regression on a constant."""
    import statsmodels.api as sm  # type: ignore[import-untyped]

    passed = (trials["status"] == "passed").to_numpy(dtype=float)
    litters = pd.factorize(trials["scenario"])[0]
    model = sm.OLS(passed, np.ones(len(passed)))
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": litters})
    return float(fit.params[0]), float(fit.bse[0])


def with_scipy(trials: pd.DataFrame) -> list[tuple[float, float]]:
    """Call scipy's Wilson interval once a scenario (of the first 1,000)."""
    from scipy.stats import binomtest

    counts = (trials["status"] == "passed").groupby(trials["scenario"]).sum().iloc[:1000]
    bounds = (binomtest(int(c), N_TRIALS).proportion_ci(method="wilson") for c in counts)
    return [(float(low), float(high)) for low, high in bounds]


def make_differences(n_scenarios: int = 1000) -> NDArray[np.float64]:
    """Return the differences of the rates of two runs."""
    return np.random.default_rng(3).integers(-10, 12, n_scenarios) / 10


def paired_with_statsmodels(
    run: pd.DataFrame, baseline: pd.DataFrame
) -> tuple[float, float, float]:
    """Compare scenario means by the paired t interval."""
    from statsmodels.stats.weightstats import DescrStatsW  # type: ignore[import-untyped]

    ours, theirs = (
        (side["status"] == "passed").astype(float).groupby(side["scenario"]).mean()
        for side in (run, baseline)
    )
    described = DescrStatsW((ours - theirs).dropna().to_numpy())
    low, high = described.tconfint_mean()
    return float(described.mean), float(low), float(high)


def flips_with_scipy(differences: NDArray[np.float64]) -> float:
    """Flip signs by the permutation test of scipy, as many times."""
    from scipy.stats import permutation_test

    result = permutation_test(
        (differences,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        n_resamples=N_RESAMPLES,
        vectorized=True,
        batch=1000,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the CPU time of one call in milliseconds."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def medians(works: dict[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, float]:
    """Time each piece of work in turn, after one unmeasured round."""
    for work in works.values():
        work()
    times = [{name: cpu_ms(work) for name, work in works.items()} for _ in range(repeats)]
    return {name: statistics.median(row[name] for row in times) for name in works}


def main() -> None:
    """Print the table."""
    trials, baseline, differences = make_trials(), make_trials(seed=2), make_differences()
    figures = medians(
        {
            "pass_rates(run)": lambda: pass_rates(trials),
            "statsmodels OLS, cov_type='cluster'": lambda: with_statsmodels(trials),
            "pass_rates(run, by='scenario')": lambda: pass_rates(trials, by="scenario"),
            "scipy binomtest, first 1,000 scenarios only": lambda: with_scipy(trials),
            "pass_hat_k(run, k=[1, 3, 5, 10])": lambda: pass_hat_k(trials, k=[1, 3, 5, 10]),
            "pass_at_k(run, k=5)": lambda: pass_at_k(trials, k=5),
            "flakiness(run)": lambda: flakiness(trials),
            "compare(run, baseline)": lambda: compare(trials, baseline),
            "statsmodels paired t of scenario means": lambda: paired_with_statsmodels(
                trials, baseline
            ),
            "compare_scenarios(run, baseline)": lambda: compare_scenarios(trials, baseline),
            FLIPS[0]: lambda: sign_flip_test(differences, n_resamples=N_RESAMPLES),
            FLIPS[1]: lambda: flips_with_scipy(differences),
        }
    )
    print(f"{N_SCENARIOS:,} scenarios x {N_TRIALS} trials, CPU ms, median of {REPEATS}")
    for name, figure in figures.items():
        print(f"{figure:9.1f}  {name}")
    ours, theirs = figures["pass_rates(run)"], figures["statsmodels OLS, cov_type='cluster'"]
    print(f"ratio to statsmodels: {ours / theirs:.2f} (target: 50 ms)")
    flips, peer = (figures[name] for name in FLIPS)
    print(f"sign flips to scipy: {flips / peer:.3f} (target: 500 ms)")


if __name__ == "__main__":
    main()
