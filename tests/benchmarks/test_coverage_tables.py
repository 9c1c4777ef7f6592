"""The intervals of a comparison cover as often as they say, over tables of settings."""

from __future__ import annotations

import bench_coverage
import numpy as np
import pytest

ROWS = [*bench_coverage.paired_single_rows(), *bench_coverage.paired_rows()]
EXACT = [row for row in ROWS if row.repeats == 0]
SMOKE = 100
HARDEST = "k=10 mean=0.95 all redrawn"


def _ids(row):
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=_ids)
def test_no_setting_covers_less_than_promised(row):
    """No setting falls below the minimum of its row by more than four Monte Carlo errors.

    Where coverage is counted exactly that is full size; where it is simulated, a smoke run.
    """
    found = bench_coverage.lowest(row, repeats=SMOKE)
    assert found.share >= found.allowed, found.label


def test_the_hardest_setting_covers_at_full_size():
    """At twenty scenarios the setting that covers least holds the promised minimum."""
    (row,) = (row for row in ROWS if row.n == 20 and row.repeats)
    found = bench_coverage.lowest(row, only=HARDEST)
    assert found.label == HARDEST
    assert found.allowed <= found.share < 0.95


@pytest.mark.parametrize("row", EXACT, ids=_ids)
def test_exact_minima_are_the_documented_ones(row):
    """Counted, not drawn: the minimum of Newcombe's interval agrees to three digits."""
    assert bench_coverage.lowest(row).share == pytest.approx(row.minimum, abs=5.5e-4)


def test_a_careless_interval_would_be_caught():
    """The tables can fail: normal intervals of the differences cover far too little."""
    rng = np.random.default_rng(6)
    before = bench_coverage.draw_truth(rng, (2000, 20), mean=0.95, rho=0.5)
    after = bench_coverage.changed(rng, before, mean=0.95, rho=0.5, kind="few break")
    d = (rng.binomial(3, after) - rng.binomial(3, before)) / 3
    half = 1.96 * d.std(axis=1, ddof=1) / np.sqrt(20)
    covered = np.mean(np.abs(d.mean(axis=1) + bench_coverage.DROP) <= half)
    assert covered < 0.85


def test_every_table_has_rows():
    """The benchmark at full size measures each table that is named."""
    names = {row.table[:2] for row in bench_coverage.rows()}
    assert names == set(bench_coverage.TABLES)
