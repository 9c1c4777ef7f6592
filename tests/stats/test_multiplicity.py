"""Adjusted p-values against Benjamini and Hochberg's own example and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.stats import adjust_p_values

# Benjamini and Hochberg (1995): fifteen p-values, of which theirs finds four and Holm's three.
BH_1995 = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
    0.5719, 0.6528, 0.7590, 1.0,
]  # fmt: skip
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.parametrize(("method", "found"), [("bh", 4), ("holm", 3)])
def test_adjustments_find_what_was_published(method, found):
    """The published example: four findings by the one, three by the other."""
    assert (adjust_p_values(BH_1995, method=method) <= 0.05).sum() == found


@given(p_values)
@settings(deadline=None, max_examples=100)
def test_adjustments_equal_statsmodels(values):
    """Both are those of statsmodels, for any p-values in any order."""
    from statsmodels.stats.multitest import multipletests

    for method, theirs in (("holm", "holm"), ("bh", "fdr_bh")):
        expected = multipletests(values, method=theirs)[1]
        assert adjust_p_values(values, method=method) == pytest.approx(expected, abs=1e-12)


@given(p_values, st.randoms())
@settings(deadline=None, max_examples=100)
def test_comparisons_without_a_test_do_not_count(values, random):
    """NaN stays NaN where it stands, and changes no other p-value."""
    mixed = [*values, float("nan"), float("nan")]
    random.shuffle(mixed)
    known = [value for value in mixed if not np.isnan(value)]
    for method in ("holm", "bh"):
        adjusted = adjust_p_values(mixed, method=method)
        assert np.isnan(adjusted).tolist() == np.isnan(mixed).tolist()
        assert adjusted[~np.isnan(mixed)].tolist() == adjust_p_values(known, method=method).tolist()


@given(p_values)
@settings(deadline=None, max_examples=100)
def test_adjusted_values_are_larger_and_in_order(values):
    """No p-value shrinks, none exceeds 1, the order stays, and Holm is the stricter."""
    holm, bh = (adjust_p_values(values, method=method) for method in ("holm", "bh"))
    order = np.argsort(values)
    for adjusted in (holm, bh):
        assert (adjusted >= np.array(values) - 1e-12).all()
        assert (adjusted <= 1).all()
        assert (np.diff(adjusted[order]) >= -1e-12).all()
    assert (holm >= bh - 1e-12).all()


def test_one_comparison_needs_no_adjustment():
    """A single p-value stays; nothing at all stays nothing; the input is left alone."""
    given_values = np.array([0.03, np.nan])
    assert adjust_p_values(0.03).tolist() == [0.03]
    assert adjust_p_values([]).tolist() == []
    adjust_p_values(given_values)
    assert given_values[0] == 0.03


@pytest.mark.parametrize(
    ("values", "method", "message"),
    [([1.2], "holm", "between 0 and 1"), ([-0.1], "bh", "between 0 and 1"), ([0.5], "by", "'by'")],
    ids=["above", "below", "method"],
)
def test_what_is_no_p_value_is_refused(values, method, message):
    """P-values lie in [0, 1], and the method is holm or bh."""
    with pytest.raises(ValueError, match=message):
        adjust_p_values(values, method=method)
