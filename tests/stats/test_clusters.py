"""The one standard error that everything uses, against published data and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.stats import cluster_mean

# Weil (1970), Food and Cosmetics Toxicology 8:177: pups alive after 4 and 21 days, by litter.
WEIL = {
    "control": (
        [13, 12, 9, 9, 8, 8, 12, 11, 9, 9, 8, 11, 4, 5, 7, 7],
        [13, 12, 9, 9, 8, 8, 13, 12, 10, 10, 9, 13, 5, 7, 10, 10],
    ),
    "treated": (
        [12, 11, 10, 9, 10, 9, 9, 8, 8, 4, 7, 4, 5, 3, 3, 0],
        [12, 11, 10, 9, 11, 10, 10, 9, 9, 5, 9, 7, 10, 6, 10, 7],
    ),
}


def _pups(name):
    """Return one 0/1 a pup and its litter."""
    alive, born = WEIL[name]
    outcomes = [[1] * y + [0] * (m - y) for y, m in zip(alive, born, strict=True)]
    return np.concatenate(outcomes), np.repeat(np.arange(len(born)), born)


@pytest.mark.parametrize(
    ("name", "mean", "se"), [("control", 0.898734, 0.0266447), ("treated", 0.772414, 0.0692261)]
)
def test_cluster_error_matches_weil(name, mean, se):
    """Unequal litters give the known means and cluster errors."""
    values, litters = _pups(name)
    result = cluster_mean(values, clusters=litters)
    assert result.mean[0] == pytest.approx(mean, abs=5e-7)
    assert result.se[0] == pytest.approx(se, abs=5e-8)
    assert (result.n[0], result.n_clusters[0]) == (len(values), 16)


@pytest.mark.parametrize(
    ("name", "naive", "effect"), [("control", 0.0240004, 1.2325), ("treated", None, 3.9529)]
)
def test_design_effect_matches_weil(name, naive, effect):
    """The squared ratio to the error of independent pups is the known one."""
    values, litters = _pups(name)
    result = cluster_mean(values, clusters=litters)
    flat = np.sqrt(result.mean[0] * (1 - result.mean[0]) / len(values))
    assert (result.se[0] / flat) ** 2 == pytest.approx(effect, abs=5e-5)
    if naive is not None:
        assert flat == pytest.approx(naive, abs=5e-8)


@pytest.mark.parametrize("name", list(WEIL))
def test_cluster_error_equals_statsmodels(name):
    """The estimator is that of a regression on a constant with cov_type='cluster'."""
    import statsmodels.api as sm

    values, litters = _pups(name)
    oracle = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": litters, "use_correction": False}
    )
    factor = np.sqrt(16 / 15)  # statsmodels' own correction also has (n - 1) / (n - p)
    assert cluster_mean(values, clusters=litters).se[0] == pytest.approx(oracle.bse[0] * factor)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
@settings(deadline=None, max_examples=100)
def test_own_clusters_give_the_usual_error(values):
    """Without clusters the error is sqrt(var(ddof=1) / n)."""
    expected = np.sqrt(np.var(values, ddof=1) / len(values))
    assert cluster_mean(values).se[0] == pytest.approx(expected, abs=1e-9)


def test_groups_are_summarised_apart():
    """Each group gets what it would get alone; a group without values gets NaN."""
    values = np.array([0.0, 1.0, 1.0, 0.5, 0.25])
    together = cluster_mean(values, groups=[0, 0, 0, 2, 2], n_groups=3)
    for group, part in ((0, values[:3]), (2, values[3:])):
        alone = cluster_mean(part)
        assert (together.mean[group], together.se[group]) == (alone.mean[0], alone.se[0])
    assert np.isnan([together.mean[1], together.se[1]]).all()
    assert together.n.tolist() == [3, 0, 2]


def test_a_cluster_name_in_two_groups_is_two_clusters():
    """Clusters are counted within their group."""
    result = cluster_mean([0, 1, 0, 1], clusters=["x", "y", "x", "y"], groups=[0, 0, 1, 1])
    assert result.n_clusters.tolist() == [2, 2]


def test_one_cluster_has_no_error():
    """One cluster shows no spread: NaN, not 0."""
    assert np.isnan(cluster_mean([0, 1], clusters=["x", "x"]).se[0])


def test_missing_values_are_refused():
    """NaN among the values is an error, because a mean would swallow it."""
    with pytest.raises(ValueError, match="NaN"):
        cluster_mean([1.0, float("nan")])
