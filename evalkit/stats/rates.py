"""Pass rates of a run with honest intervals: frames in, frames out.

A scenario's rate is passed / (passed + failed) of its trials, and a rate over
scenarios is the mean of the scenario rates, never the pooled trials. Which rows
belong together is decided in :mod:`evalkit.stats.cells`, how wide an interval
is in :mod:`evalkit.stats.intervals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from evalkit.stats.cells import By, Cells, by_columns, collect_cells
from evalkit.stats.clusters import ClusterMean, cluster_mean
from evalkit.stats.intervals import (
    Interval,
    checked_confidence,
    clustered_interval,
    fixed_suite_interval,
    wilson,
)
from evalkit.stats.notes import Notes, names_by_group

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from evalkit.stats.clusters import Floats, Ints

Estimand = Literal["all_users", "fixed_suite"]
IntervalMethod = Literal["clustered", "beta_binomial"]


def pass_rates(
    run: Any,
    *,
    by: By = None,
    confidence: float = 0.95,
    cluster: str | None = None,
    estimand: Estimand = "all_users",
    interval: IntervalMethod = "clustered",
) -> pd.DataFrame:
    """Return pass rates, one row a group, with intervals and everything left out.

    Parameters
    ----------
    run
        A run, several stacked runs, or the frame of their trials (at least the
        columns ``scenario`` and ``status``).
    by
        ``None`` for one row, or columns to group by: ``"scenario"``, ``"lane"``,
        ``"run_id"`` or any other column of the trials; ``"tag"`` (a scenario
        counts in each of its tags); ``"grader"`` or ``"rubric"`` (grades count
        in place of statuses, so this needs the run itself).
    confidence
        Two-sided confidence level of the interval.
    cluster
        Column that names coarser clusters, such as the document that several
        scenarios are about. ``None``: the column ``cluster`` where there is
        one, else each scenario by itself.
    estimand
        What the interval is about. ``"all_users"``: scenarios that users may
        bring, of which these are a sample. ``"fixed_suite"``: these scenarios
        only; just the noise of trials counts, and each needs at least two.
    interval
        ``"clustered"``: clustered Wilson-t. ``"beta_binomial"``: the posterior
        of :func:`~evalkit.stats.beta_binomial.beta_binomial_interval`, for
        ``all_users`` and without coarser clusters.

    Returns
    -------
    pandas.DataFrame
        The columns of ``by``, then

        - ``estimand``: as asked, or ``this_scenario`` where a group has a
          single scenario, whose interval can only be about its own trials;
        - ``interval``: its method, or ``none``;
        - ``rate``, ``rate_low``, ``rate_high``: estimate and interval, NaN where
          there is none (``note`` says why);
        - ``rate_if_failed``, ``rate_if_passed``: the rate if every incomplete
          trial had failed, or passed;
        - ``n_scenarios`` in the rate, ``n_scenarios_without_rate`` beside it;
        - ``n_passed``, ``n_failed``, ``n_incomplete``, ``n_planned``: trials;
        - ``note``: what is missing or what the number cannot say; empty if nothing.

        With several suites, ``by="scenario"`` also has the column ``suite``.

    Raises
    ------
    ValueError
        If a column, a status, the estimand or the confidence makes no sense, if
        a trial is there twice or a scenario lies in two clusters.

    Notes
    -----
    Intervals: clustered Wilson-t over scenarios
    (:func:`~evalkit.stats.intervals.clustered_wilson`), Wilson over the trials
    of a single scenario. Trials of the contract lane are copies of one scripted
    trial and get no interval. Incomplete trials are in no rate and widen no
    interval: look at ``rate_if_failed``.

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({
    ...     "scenario": ["book", "book", "cancel", "cancel", "refund", "refund"],
    ...     "status": ["passed", "passed", "passed", "failed", "failed", "incomplete"]})
    >>> row = pass_rates(trials).iloc[0]
    >>> row[["rate", "rate_low", "rate_high", "rate_if_failed", "rate_if_passed"]].astype(
    ...     float).round(3).tolist()
    [0.5, 0.036, 0.964, 0.5, 0.667]
    >>> row["note"]
    '1 of 6 trials incomplete; 3 scenarios: too few scenarios to generalise'
    >>> pass_rates(trials, by="scenario")[["scenario", "rate", "n_incomplete"]]
      scenario  rate  n_incomplete
    0     book   1.0             0
    1   cancel   0.5             0
    2   refund   0.0             1
    """
    checked_confidence(confidence)
    _checked_estimand(estimand, interval)
    cells = collect_cells(run, by=by, cluster=cluster)
    summary = _summarise(cells)
    choice = _choose(summary, estimand, interval)
    low, high = _bounds(summary, choice, confidence=confidence)
    named = {"estimand": choice.estimand, "interval": choice.method, "rate": summary.spread.mean}
    numbers = {"rate_low": low, "rate_high": high, **_extremes(cells), **_counts(summary)}
    notes = {"note": _notes(summary, choice, single="scenario" in by_columns(by))}
    return cells.groups.assign(**named, **numbers, **notes)


def unrated_scenarios(run: Any, *, by: By = None) -> pd.DataFrame:
    """Return the scenarios that have no rate because no trial could be measured.

    Parameters
    ----------
    run, by
        As in :func:`pass_rates`.

    Returns
    -------
    pandas.DataFrame
        The columns of ``by``, ``scenario`` and ``n_incomplete``; one row a
        scenario that :func:`pass_rates` counts in ``n_scenarios_without_rate``.

    Examples
    --------
    >>> import pandas as pd
    >>> unrated_scenarios(pd.DataFrame({"scenario": ["a", "b"],
    ...                                 "status": ["passed", "incomplete"]}))
      scenario  n_incomplete
    0        b             1
    """
    cells = collect_cells(run, by=by)
    missing = cells.where(cells.n_measured == 0)
    rows = missing.groups.iloc[missing.group].reset_index(drop=True)
    return rows.assign(scenario=missing.scenario, n_incomplete=missing.n_incomplete)


def standard_errors(run: Any, *, by: By = None, cluster: str | None = None) -> pd.DataFrame:
    """Return the standard error of each rate, by scenario and as if trials were independent.

    The two differ because trials of one scenario resemble each other. The flat
    one is what most tools print; it is here to be compared with, not to be used.

    Parameters
    ----------
    run, by, cluster
        As in :func:`pass_rates`.

    Returns
    -------
    pandas.DataFrame
        The columns of ``by``, ``rate``, ``se_flat`` (``sqrt(m (1 - m) / trials)``),
        ``se_clustered`` (NaN below two clusters), ``design_effect`` (the square of
        their ratio), ``n_clusters``, ``n_scenarios`` and ``n_trials`` (measured).

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({"scenario": list("aaaabbbb"),
    ...                        "status": ["passed"] * 4 + ["failed"] * 4})
    >>> standard_errors(trials)[["rate", "se_flat", "se_clustered", "design_effect"]].round(3)
       rate  se_flat  se_clustered  design_effect
    0   0.5    0.177           0.5            8.0
    """
    import numpy as np

    summary = _summarise(collect_cells(run, by=by, cluster=cluster))
    mean, se, n, n_clusters = summary.spread
    with np.errstate(invalid="ignore", divide="ignore"):
        flat = np.sqrt(mean * (1 - mean) / summary.n_trials)
        effect = np.where(flat > 0, (se / flat) ** 2, np.nan)
    return summary.cells.groups.assign(
        rate=mean,
        se_flat=flat,
        se_clustered=se,
        design_effect=effect,
        n_clusters=n_clusters,
        n_scenarios=n,
        n_trials=summary.n_trials.astype("int64"),
    )


class _Summary(NamedTuple):
    """Cells, those of them with a rate, and the spread of the rates in each group."""

    cells: Cells
    rated: Cells
    spread: ClusterMean
    n_trials: Floats


class _Choice(NamedTuple):
    """Which interval each group gets, and why some get none."""

    estimand: NDArray[Any]
    method: NDArray[Any]
    reason: NDArray[Any]


def _checked_estimand(estimand: str, interval: str) -> None:
    """Refuse an estimand or an interval that does not exist, and a pair that does not fit."""
    known = {"estimand": (estimand, Estimand), "interval": (interval, IntervalMethod)}
    for name, (value, kinds) in known.items():
        if value not in get_args(kinds):
            raise ValueError(f"{name} is {value!r}; it can be {' or '.join(get_args(kinds))}")
    if (estimand, interval) == ("fixed_suite", "beta_binomial"):
        raise ValueError("the beta-binomial interval is about all_users, not about a fixed suite")


def _summarise(cells: Cells) -> _Summary:
    """Average the scenario rates of each group."""
    rated = cells.where(cells.n_measured > 0)
    spread = cluster_mean(
        rated.rate, clusters=rated.cluster, groups=rated.group, n_groups=len(cells.groups)
    )
    return _Summary(cells, rated, spread, rated.total(rated.n_measured))


def _choose(summary: _Summary, estimand: str, interval: str) -> _Choice:
    """Decide on the interval of each group, first rule that holds."""
    import numpy as np

    _, rated, spread, n_trials = summary
    unrepeated = rated.tally(rated.n_measured < 2)
    fixed, bayes = estimand == "fixed_suite", interval == "beta_binomial"
    conditions = [
        spread.n == 0,
        summary.cells.tally(summary.cells.contract) > 0,
        spread.n == 1,
        fixed & (unrepeated > 0),
        np.full(len(spread.n), fixed),
        spread.n_clusters < 2,
        bayes & (spread.n_clusters < spread.n),
        np.full(len(spread.n), bayes),
        n_trials == spread.n_clusters,
    ]
    methods = ["none", "none", "Wilson over trials", "none", "fixed-suite Wilson-t", "none"]
    methods += ["none", "beta-binomial grid", "Wilson"]
    reasons = [
        "no rate: nothing was measured",
        "contract lane: trials are copies of one script, no interval",
        "",
        "no interval: fixed_suite needs two measured trials of every scenario",
        "",
        "no interval: all scenarios lie in one cluster",
        "no interval: the beta-binomial grid has no clusters coarser than a scenario",
        "",
        "",
    ]
    single = (spread.n == 1) | (summary.cells.tally(summary.cells.n_planned > 0) == 1)
    return _Choice(
        np.where(single, "this_scenario", estimand),
        np.select(conditions, methods, "clustered Wilson-t"),
        np.select(conditions, reasons, ""),
    )


def _bounds(summary: _Summary, choice: _Choice, *, confidence: float) -> Interval:
    """Return the bounds of each group by the method that was chosen."""
    import numpy as np

    methods = {
        "Wilson over trials": _over_trials,
        "fixed-suite Wilson-t": _over_fixed_suite,
        "clustered Wilson-t": _over_scenarios,
        "Wilson": _over_scenarios,
        "beta-binomial grid": _on_grid,
    }
    low, high = np.full((2, len(choice.method)), np.nan)
    for name in np.unique(choice.method):
        where = choice.method == name
        if name != "none":
            bounds = methods[name](summary, confidence)
            low[where], high[where] = bounds.low[where], bounds.high[where]
    return Interval(low, high)


def _over_trials(summary: _Summary, confidence: float) -> Interval:
    """Return Wilson's interval over the trials of each group."""
    n_passed = summary.rated.total(summary.rated.n_passed)
    return wilson(n_passed, summary.n_trials, confidence=confidence)


def _over_scenarios(summary: _Summary, confidence: float) -> Interval:
    """Return the clustered interval over the scenarios of each group."""
    return clustered_interval(summary.spread, summary.n_trials, confidence=confidence)


def _on_grid(summary: _Summary, confidence: float) -> Interval:
    """Return the beta-binomial interval over the scenarios of each group."""
    from evalkit.stats.beta_binomial import beta_binomial_interval

    rated = summary.rated
    size = len(rated.groups)
    return beta_binomial_interval(
        rated.n_passed,
        rated.n_measured,
        groups=rated.group,
        n_groups=size,
        confidence=confidence,
    )


def _over_fixed_suite(summary: _Summary, confidence: float) -> Interval:
    """Return the interval that holds for exactly the scenarios of each group."""
    rated = summary.rated
    return fixed_suite_interval(
        rated.rate,
        rated.n_measured.astype("float64"),
        rated.group,
        n_groups=len(rated.groups),
        confidence=confidence,
    )


def _extremes(cells: Cells) -> dict[str, Floats]:
    """Return the rates that count incomplete trials as failed, and as passed."""
    import numpy as np

    n = np.bincount(cells.group, minlength=len(cells.groups))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "rate_if_failed": cells.total(cells.n_passed / cells.n_planned) / n,
            "rate_if_passed": 1 - cells.total(cells.n_failed / cells.n_planned) / n,
        }


def _counts(summary: _Summary) -> dict[str, Ints]:
    """Return how many scenarios and trials stand behind each group."""
    cells, _, spread, _ = summary
    names = ("n_passed", "n_failed", "n_incomplete", "n_planned")
    scenarios = {
        "n_scenarios": spread.n,
        "n_scenarios_without_rate": cells.tally(cells.n_measured == 0),
    }
    return scenarios | {name: cells.total(getattr(cells, name)).astype("int64") for name in names}


def _notes(summary: _Summary, choice: _Choice, *, single: bool) -> list[str]:
    """Write what each row cannot say by its numbers."""
    cells, _, spread, n_trials = summary
    counts = _counts(summary)
    missing = cells.where(cells.n_measured == 0)
    unrated, incomplete = counts["n_scenarios_without_rate"], counts["n_incomplete"]
    notes = Notes(len(spread.n))
    notes.add(choice.reason != "", "{reason}", reason=choice.reason)
    notes.add(incomplete > 0, "{k} of {n} trials incomplete", k=incomplete, n=counts["n_planned"])
    if not single:
        notes.add(unrated > 0, "without a rate: {ids}", ids=names_by_group(missing))
        notes.add(
            choice.method == "Wilson over trials", "one scenario: the interval covers it only"
        )
    notes.add((spread.n == 1) & (n_trials == 1), "one trial")
    general = (choice.estimand == "all_users") & (choice.reason == "")
    notes.add_sample_size(spread, general)
    return notes.texts()
