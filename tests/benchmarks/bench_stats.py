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

from evalkit.stats import flakiness, pass_at_k, pass_hat_k, pass_rates

N_SCENARIOS, N_TRIALS, REPEATS = 10_000, 10, 9


def make_trials(n_scenarios: int = N_SCENARIOS, n_trials: int = N_TRIALS) -> pd.DataFrame:
    """Return the trials of one large run, with the columns that a run has."""
    rng = np.random.default_rng(1)
    difficulty = np.repeat(rng.beta(2, 1, n_scenarios), n_trials)
    passed = rng.random(n_scenarios * n_trials) < difficulty
    return pd.DataFrame(
        {
            "run_id": "r1",
            "suite": "large",
            "scenario": np.repeat([f"scenario-{i:05d}" for i in range(n_scenarios)], n_trials),
            "trial": np.tile(np.arange(n_trials), n_scenarios),
            "lane": "live",
            "status": np.where(passed, "passed", "failed"),
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
    trials = make_trials()
    figures = medians(
        {
            "pass_rates(run)": lambda: pass_rates(trials),
            "statsmodels OLS, cov_type='cluster'": lambda: with_statsmodels(trials),
            "pass_rates(run, by='scenario')": lambda: pass_rates(trials, by="scenario"),
            "scipy binomtest, first 1,000 scenarios only": lambda: with_scipy(trials),
            "pass_hat_k(run, k=[1, 3, 5, 10])": lambda: pass_hat_k(trials, k=[1, 3, 5, 10]),
            "pass_at_k(run, k=5)": lambda: pass_at_k(trials, k=5),
            "flakiness(run)": lambda: flakiness(trials),
        }
    )
    print(f"{N_SCENARIOS:,} scenarios x {N_TRIALS} trials, CPU ms, median of {REPEATS}")
    for name, figure in figures.items():
        print(f"{figure:9.1f}  {name}")
    ours, theirs = figures["pass_rates(run)"], figures["statsmodels OLS, cov_type='cluster'"]
    print(f"ratio to statsmodels: {ours / theirs:.2f} (target: 50 ms)")


if __name__ == "__main__":
    main()
