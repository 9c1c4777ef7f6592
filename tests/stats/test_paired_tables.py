"""Intervals that others print, by published tables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.stats import newcombe_paired, paired_table_interval

CAVO, BENTUR, APPROVAL = (6, 16, 161), (1, 7, 21), (86, 150, 1600)


@pytest.mark.parametrize(
    ("table", "method", "low", "high", "digits"),
    [
        (CAVO, "wald", -0.1184, -0.0058, 4),
        (CAVO, "agresti-min", -0.1182, -0.0045, 4),
        (CAVO, "bonett-price", -0.1195, -0.0032, 4),
        (CAVO, "tango", -0.1240, -0.0054, 4),
        ((3, 0, 3), "tango", -0.1230, 1, 4),
        (BENTUR, "tango", -0.517232, -0.026003, 6),
        (BENTUR, "wald", -0.519709, -0.05172, 6),
        (BENTUR, "bonett-price", -0.508359, -0.01338, 6),
        (APPROVAL, "wald", -0.0587, -0.0213, 4),
    ],
    ids=lambda value: str(value),
)
def test_intervals_equal_published_ones(
    table: tuple[int, int, int], method: str, low: float, high: float, digits: int
) -> None:
    """Each method gives the published bounds to their printed digits."""
    gained, lost, n = table
    found = paired_table_interval(gained, lost, n=n, method=method)  # type: ignore[arg-type]
    assert (round(float(found.low), digits), round(float(found.high), digits)) == (low, high)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
def test_tango_contains_the_estimate_and_mirrors(gained: int, lost: int, rest: int) -> None:
    """The estimate lies inside, within [-1, 1]; run and baseline swapped swap the bounds."""
    n = gained + lost + rest
    if not n:
        return
    low, high = paired_table_interval(gained, lost, n=n, method="tango")
    assert -1 <= low <= (gained - lost) / n <= high <= 1
    mirrored = paired_table_interval(lost, gained, n=n, method="tango")
    assert (-mirrored.high, -mirrored.low) == pytest.approx((low, high), abs=1e-9)


def test_tango_is_close_to_newcombe() -> None:
    """With a hundred scenarios both methods tell nearly the same."""
    ours = newcombe_paired(9, 26, both_passed=50, both_failed=15)
    low, high = paired_table_interval(9, 26, n=100, method="tango")
    assert (float(ours.low), float(ours.high)) == pytest.approx((low, high), abs=0.02)


@pytest.mark.parametrize("counts", [(-1, 0, 3), (2, 2, 3), (0, 0, 0)], ids=str)
def test_what_is_no_table_is_refused(counts: tuple[int, int, int]) -> None:
    """Negative counts, more changes than scenarios, and nothing at all are errors."""
    gained, lost, n = counts
    with pytest.raises(ValueError, match="must be counts"):
        paired_table_interval(gained, lost, n=n, method="wald")


def test_an_unknown_method_is_refused() -> None:
    """A misspelled method is no other method."""
    with pytest.raises(ValueError, match="it can be tango"):
        paired_table_interval(1, 2, n=9, method="newcombe")  # type: ignore[arg-type]
