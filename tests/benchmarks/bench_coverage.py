"""How often the intervals hold the truth, over tables of simulated settings.

Run it: ``python tests/benchmarks/bench_coverage.py --full`` (a minute or two), or
without ``--full`` for a smoke run of a few hundred repeats a cell. Every cell is
seeded by its own settings, so a figure does not depend on what ran before it.

To add a table, write a function that returns its rows and name it in ``TABLES``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import coverage_rates
import numpy as np
from measuring import is_full
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, gammaln, logit, xlogy
from scipy.stats import beta

from evalkit.stats import Interval, mover_difference, newcombe_paired

Floats = NDArray[np.float64]

SMOKE = 200
DROP = 0.05


class Cell(NamedTuple):
    """One setting of a row, and how to measure the coverage in it."""

    label: str
    share: Callable[[int], float]
    """Number of repeats -> share of intervals that hold the truth."""


class Row(NamedTuple):
    """The cells of one table and size, and the lowest coverage that is promised."""

    table: str
    n: int
    minimum: float
    repeats: int
    """Repeats of a full-size cell; 0 where the coverage is exact."""
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """Table and size."""
        return f"{self.table}, n={self.n}"


class Lowest(NamedTuple):
    """The cell of a row that covered least, and what it may fall to by chance."""

    share: float
    label: str
    allowed: float


def lowest(row: Row, *, repeats: int | None = None, only: str = "") -> Lowest:
    """Measure the cells of a row whose label holds ``only``, and return the lowest."""
    size = row.repeats if repeats is None or row.repeats == 0 else repeats
    noise = np.sqrt(row.minimum * (1 - row.minimum) / size) if size else 0.0005 / 4
    shares = [(cell.share(size), cell.label) for cell in row.cells if only in cell.label]
    return Lowest(*min(shares), allowed=row.minimum - 4 * float(noise))


def share_that_holds(bounds: Interval, truth: float | Floats) -> float:
    """Return how often the bounds hold the truth, rounding forgiven."""
    inside = (bounds.low - 1e-9 <= truth) & (truth <= bounds.high + 1e-9)
    return float(inside.mean())


# ---- pass rate: the settings and methods of coverage_rates


def pass_rate_rows() -> Iterator[Row]:
    """T1: the intervals for a pass rate."""
    for method, n in product(coverage_rates.METHODS, coverage_rates.SIZES):
        cells = tuple(pass_rate_cell(each, method) for each in coverage_rates.settings(n))
        promised = coverage_rates.printed_minimum(n, method)
        yield Row(f"T1 {method}", n, promised, coverage_rates.full_repeats(n), cells)


def pass_rate_cell(setting: coverage_rates.Setting, method: str) -> Cell:
    """Cover the mean rate of all users' scenarios by one method."""
    _, k, mean, icc = setting

    def share(repeats: int) -> float:
        return coverage_rates.coverage(setting, method, repeats=repeats)

    return Cell(f"k={k} mean={mean} icc={icc}", share)


# ---- paired difference with one trial a side: every table is counted, none is drawn


def paired_single_cell(n: int, *, rate: float, drop: float, discordant: float) -> Cell:
    """Cover the difference by Newcombe's paired interval, exactly."""

    def share(repeats: int) -> float:
        lost, gained, both = (axis.ravel() for axis in np.indices((n + 1,) * 3))
        keep = lost + gained + both <= n
        counts = np.stack([lost, gained, both, n - lost - gained - both])[:, keep]
        p_lost, p_gained = (discordant + drop) / 2, (discordant - drop) / 2
        p_both = rate - p_lost
        shares = np.maximum([p_lost, p_gained, p_both, 1 - p_lost - p_gained - p_both], 0)
        logs = gammaln(n + 1) - gammaln(counts + 1).sum(0) + xlogy(counts, shares[:, None]).sum(0)
        lost, gained, both, neither = counts
        bounds = newcombe_paired(gained, lost, both_passed=both, both_failed=neither)
        inside = (bounds.low - 1e-9 <= -drop) & (-drop <= bounds.high + 1e-9)
        return float(np.exp(logs)[inside].sum())

    return Cell(f"rate={rate} drop={drop} discordant={discordant}", share)


def paired_single_rows() -> Iterator[Row]:
    """T2: Newcombe's paired interval, one trial on each side."""
    grid = [*product((0.8, 0.9), (0.0, 0.1), (0.1, 0.2)), (0.8, 0.0, 0.3)]
    for n, minimum in ((5, 0.968), (10, 0.974), (20, 0.967), (50, 0.953), (100, 0.953)):
        cells = tuple(paired_single_cell(n, rate=r, drop=d, discordant=c) for r, d, c in grid)
        yield Row("T2 paired, k=1", n, minimum, 0, cells)


# ---- paired difference with k trials a side

CHANGES = ("none", "all slightly worse", "few break", "all redrawn")


def draw_truth(
    rng: np.random.Generator, shape: tuple[int, int], *, mean: float, rho: float
) -> Floats:
    """Draw true scenario rates with this mean and intra-class correlation."""
    a, b = _beta_shape(mean, rho)
    return np.clip(rng.beta(a, b, shape), 1e-9, 1 - 1e-9)


def _beta_shape(mean: float, rho: float) -> tuple[float, float]:
    return mean * (1 - rho) / rho, (1 - mean) * (1 - rho) / rho


def changed(
    rng: np.random.Generator, before: Floats, *, mean: float, rho: float, kind: str
) -> Floats:
    """Return the true rates of the run after a change of this kind."""
    if kind == "all slightly worse":
        return np.asarray(expit(logit(before) - _shift(mean, rho)), dtype=np.float64)
    if kind == "few break":
        return np.where(rng.random(before.shape) < DROP / mean, 0.0, before)
    if kind == "all redrawn":
        return draw_truth(rng, (before.shape[0], before.shape[1]), mean=mean, rho=rho)
    return before


def _shift(mean: float, rho: float) -> float:
    """Return the shift in log odds that lowers the mean rate by ``DROP``."""
    rates = beta.ppf((np.arange(20_000) + 0.5) / 20_000, *_beta_shape(mean, rho))
    odds = logit(np.clip(rates, 1e-9, 1 - 1e-9))
    return float(brentq(lambda shift: (rates - expit(odds - shift)).mean() - DROP, 0, 20))


def paired_cell(n: int, *, k: int, mean: float, kind: str, rho: float = 0.5) -> Cell:
    """Cover the mean difference of all users' scenarios by MOVER."""

    def share(repeats: int) -> float:
        rng = np.random.default_rng([3, n, k, round(100 * mean), CHANGES.index(kind)])
        before = draw_truth(rng, (repeats, n), mean=mean, rho=rho)
        after = changed(rng, before, mean=mean, rho=rho, kind=kind)
        baseline, run = (rng.binomial(k, rates).ravel() / k for rates in (before, after))
        bounds = mover_difference(
            run,
            baseline,
            n_trials=k,
            n_trials_baseline=k,
            groups=np.repeat(np.arange(repeats), n),
        )
        return share_that_holds(bounds, -DROP if kind in CHANGES[1:3] else 0.0)

    return Cell(f"k={k} mean={mean} {kind}", share)


def paired_rows() -> Iterator[Row]:
    """T3: MOVER with clustered Wilson-t margins, k trials on each side."""
    grid = list(product((1, 3, 10), (0.5, 0.8, 0.95), CHANGES))
    for n, minimum in ((5, 0.932), (20, 0.916), (100, 0.943), (1000, 0.943)):
        cells = tuple(paired_cell(n, k=k, mean=mean, kind=kind) for k, mean, kind in grid)
        yield Row("T3 paired, k trials", n, minimum, 1000 if n == 1000 else 2000, cells)


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "T1": pass_rate_rows,
    "T2": paired_single_rows,
    "T3": paired_rows,
}


def rows() -> list[Row]:
    """Return the rows of all tables."""
    return [row for table in TABLES.values() for row in table()]


def main() -> None:
    """Print the lowest coverage of each row beside what is promised."""
    repeats = None if is_full() else SMOKE
    short = 0
    print(f"{'row':33} cells  repeats  lowest  promised  allowed  where")
    for row in rows():
        found = lowest(row, repeats=repeats)
        size = "exact" if row.repeats == 0 else str(repeats or row.repeats)
        missed = found.share < found.allowed
        short += missed
        print(
            f"{row.name:33} {len(row.cells):5}  {size:>7}  {found.share:6.3f}  "
            f"{row.minimum:8.3f}  {found.allowed:7.3f}  {found.label}{'  SHORT' * missed}",
            flush=True,
        )
    sys.exit(1 if short else 0)


if __name__ == "__main__":
    main()
