"""A run against its baseline, scenario by scenario: frames in, frames out.

Which scenarios belong together is decided in :mod:`evalkit.stats.alignment`, how
wide an interval is in :mod:`evalkit.stats.differences`, what a p-value is in
:mod:`evalkit.stats.significance`, which of them a row gets in
:mod:`evalkit.stats.contrasts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalkit.stats.alignment import Aligned, align
from evalkit.stats.cells import By
from evalkit.stats.contrasts import (
    SIGN_FLIP,
    Contrasts,
    bounds_of,
    choose_intervals,
    choose_tests,
    contrasts_of,
    newly,
    p_values_of,
)
from evalkit.stats.intervals import checked_confidence
from evalkit.stats.multiplicity import adjust_p_values
from evalkit.stats.notes import Notes, names_by_group
from evalkit.stats.reliability import trials_range

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from evalkit.stats.cells import Cells
    from evalkit.stats.clusters import Ints

ENOUGH_TRIALS = 5
"""Fewer trials on a side cannot show that a single scenario changed."""

_ONE = "one scenario: the interval covers it only, and there is no test"

_ENOUGH_SIGNS = 6
"""Fewer differences cannot reach p = .05 by their signs: 2 / 2 ** 5 is .0625."""


def compare(
    run: Any,
    baseline: Any,
    *,
    by: By = None,
    confidence: float = 0.95,
    cluster: str | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare a run with a baseline over the scenarios that both hold, one row a group.

    Parameters
    ----------
    run, baseline
        A run, a pinned baseline, or the frame of their trials (at least the
        columns ``scenario`` and ``status``). Trials of several runs in one frame
        are pooled by scenario.
    by
        ``None`` for one row, or columns to group by: ``"tag"``, ``"grader"`` and
        ``"rubric"`` (these two need the grades of both sides), or any column of
        the trials. A scenario is compared within the groups that hold it on
        both sides.
    confidence
        Two-sided confidence level of the interval.
    cluster
        Column that names coarser clusters. ``None``: the column ``cluster``
        where there is one. Clusters of the two sides that overlap are one.
    n_resamples, seed
        Size and seed of the permutation test.

    Returns
    -------
    pandas.DataFrame
        The columns of ``by``, then

        - ``rate``, ``rate_baseline``: means over the paired scenarios;
        - ``difference`` (run minus baseline), ``difference_low``,
          ``difference_high``, and ``interval``, its method or ``none``;
        - ``p_value`` and ``test`` (``McNemar mid-p``, ``sign-flip permutation`` or
          ``none``); ``p_holm`` and ``p_bh``, adjusted over the rows;
        - ``n_scenarios``: paired, with a rate on both sides;
        - ``n_added``, ``n_removed``, ``n_changed``: not compared;
        - ``n_newly_failing``, ``n_newly_passing``: paired scenarios that passed
          most of their trials on one side only;
        - ``k_low``, ``k_high``: fewest and most measured trials of a paired
          scenario on a side;
        - ``note``: what is missing or what the numbers cannot say.

        Numbers that cannot be known are NaN, and ``note`` says why.

    Raises
    ------
    ValueError
        As :func:`evalkit.stats.pass_rates`; the message names the side.

    Notes
    -----
    Scenarios are the same where id and content hash agree; a side without
    ``scenario_hash`` is matched by id, and ``note`` says so. Each scenario has
    the same weight, however many trials it has, and incomplete trials have none.

    Intervals: Newcombe's for paired rates where every scenario has one trial on
    each side, otherwise MOVER with clustered Wilson-t margins
    (:func:`~evalkit.stats.mover_difference`); Newcombe's for independent rates
    over the trials of a group's only scenario. Tests: McNemar's mid-p for one
    trial each, otherwise sign flips of the differences of scenario rates.
    Trials of the contract lane are copies of one script: they get neither.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"s{i}" for i in range(12) for _ in range(2)]
    >>> before = pd.DataFrame({"scenario": names, "status": ["passed"] * 24})
    >>> after = before.assign(status=["failed"] * 7 + ["passed"] * 17)
    >>> row = compare(after, before).iloc[0]
    >>> row[["difference", "difference_low", "difference_high"]].astype(float).round(3).tolist()
    [-0.292, -0.6, 0.053]
    >>> row["test"], float(row["p_value"]), int(row["n_newly_failing"])
    ('sign-flip permutation', 0.125, 4)
    """
    checked_confidence(confidence)
    sides = align(run, baseline, by=by, cluster=cluster)
    summary = contrasts_of(sides)
    method = choose_intervals(summary)
    low, high = bounds_of(summary, method, confidence=confidence)
    test = choose_tests(summary)
    p_values, n_signs = p_values_of(summary, test, n_resamples=n_resamples, seed=seed)
    numbers = {
        "rate": summary.run.mean,
        "rate_baseline": summary.baseline.mean,
        "difference": summary.apart.mean,
        "difference_low": low,
        "difference_high": high,
        "interval": method,
        "p_value": p_values,
        "test": test,
        "p_holm": adjust_p_values(p_values, method="holm"),
        "p_bh": adjust_p_values(p_values, method="bh"),
    }
    notes = _notes(summary, test, n_signs)
    return sides.groups.assign(**numbers, **_counts(summary), note=notes)


def compare_scenarios(run: Any, baseline: Any) -> pd.DataFrame:
    """Set each scenario of a run beside the same one of its baseline.

    Parameters
    ----------
    run, baseline
        As in :func:`compare`.

    Returns
    -------
    pandas.DataFrame
        One row a scenario of either side, sorted by id: ``scenario`` (after
        ``suite`` where a side holds several), then

        - ``change``: ``same``, ``changed`` (its content), ``added`` or ``removed``;
        - ``rate``, ``rate_baseline``: NaN where nothing was measured;
        - ``difference``: run minus baseline, NaN unless ``same``;
        - ``n_measured``, ``n_measured_baseline``, ``n_incomplete``,
          ``n_incomplete_baseline``: trials;
        - ``newly``: ``failing`` or ``passing`` where most trials passed on one side
          only, and the scenario is the same; empty otherwise.

    Notes
    -----
    Below five trials a side no test can tell a scenario that changed from
    chance (3 of 3 against 0 of 3 has p = .10), so ``newly`` only describes.

    Examples
    --------
    >>> import pandas as pd
    >>> before = pd.DataFrame({"scenario": ["a", "b"], "status": ["passed", "passed"]})
    >>> after = pd.DataFrame({"scenario": ["b", "c"], "status": ["failed", "passed"]})
    >>> compare_scenarios(after, before)[["scenario", "change", "difference", "newly"]]
      scenario   change  difference    newly
    0        a  removed         NaN
    1        b     same        -1.0  failing
    2        c    added         NaN
    """
    import numpy as np

    sides = align(run, baseline, by="scenario")
    rate, other = sides.run.rate, sides.baseline.rate
    failing, passing = newly(sides)
    return sides.groups.assign(
        change=sides.change,
        rate=rate,
        rate_baseline=other,
        difference=np.where(sides.change == "same", rate - other, np.nan),
        n_measured=sides.run.n_measured,
        n_measured_baseline=sides.baseline.n_measured,
        n_incomplete=sides.run.n_incomplete,
        n_incomplete_baseline=sides.baseline.n_incomplete,
        newly=np.select([failing, passing], ["failing", "passing"], default=""),
    )


def _counts(summary: Contrasts) -> dict[str, Ints]:
    """Return how many scenarios and trials stand behind each group."""
    sides, run = summary.sides, summary.sides.run
    failing, passing = newly(sides)
    k_low, k_high = _trials_range(summary.paired)
    return {
        "n_scenarios": summary.n,
        **{
            f"n_{word}": run.tally(sides.change == word) for word in ("added", "removed", "changed")
        },
        "n_newly_failing": run.tally(failing),
        "n_newly_passing": run.tally(passing),
        "k_low": k_low,
        "k_high": k_high,
    }


def _trials_range(paired: Aligned) -> tuple[Ints, Ints]:
    """Return the fewest and the most measured trials of a scenario on a side."""
    import numpy as np

    ranges = [trials_range(side) for side in (paired.run, paired.baseline)]
    return np.minimum(ranges[0][0], ranges[1][0]), np.maximum(ranges[0][1], ranges[1][1])


def _notes(summary: Contrasts, test: NDArray[Any], n_signs: Ints) -> list[str]:
    """Write what each row cannot say by its numbers."""
    notes = Notes(len(summary.n))
    _note_no_interval(notes, summary)
    _note_left_out(notes, summary)
    _note_alignment(notes, summary)
    _note_flags(notes, summary)
    _note_test(notes, test, n_signs)
    notes.add((summary.n == 1) & ~summary.scripted, _ONE)
    notes.add_sample_size(summary.apart, (summary.apart.n_clusters > 1) & ~summary.scripted)
    return notes.texts()


def _note_no_interval(notes: Notes, summary: Contrasts) -> None:
    """Say why a row has no difference, or a difference without an interval."""
    scripted, both = summary.scripted, summary.scripted_sides == 2
    notes.add(
        scripted & both, "contract lane: trials are copies of one script, no interval and no test"
    )
    notes.add(scripted & ~both, "contract lane on one side only: nothing to be learnt from it")
    notes.add(summary.n == 0, "nothing to compare: no scenario has a rate on both sides")
    lone = (summary.apart.n_clusters == 1) & (summary.n > 1) & ~scripted
    notes.add(lone, "no interval and no test: one cluster shows no spread")


def _note_left_out(notes: Notes, summary: Contrasts) -> None:
    """Name the scenarios that are not compared, and count the incomplete trials."""
    sides = summary.sides
    unrated = (sides.change == "same") & ~sides.rated
    for where, words in (
        (sides.change == "added", "added"),
        (sides.change == "removed", "removed"),
        (sides.change == "changed", "changed, not compared"),
        (unrated, "without a rate on a side"),
    ):
        _note_names(notes, sides.run.where(where), words)
    for name, side in (("run", sides.run), ("baseline", sides.baseline)):
        incomplete, planned = (
            side.total(count).astype(int) for count in (side.n_incomplete, side.n_planned)
        )
        text = name + ": {k} of {n} trials incomplete"
        notes.add(incomplete > 0, text, k=incomplete, n=planned)


def _note_names(notes: Notes, cells: Cells, words: str) -> None:
    """Name the first scenarios of each group, and count them."""
    counts = cells.tally(cells.group >= 0)
    notes.add(counts > 0, words + " ({n}): {ids}", n=counts, ids=names_by_group(cells))


def _note_alignment(notes: Notes, summary: Contrasts) -> None:
    """Say what was taken on trust when scenarios were matched."""
    paired = summary.paired
    by_id, renamed = paired.run.tally(paired.by_id_only), paired.run.tally(paired.other_suite)
    every = by_id == summary.n
    notes.add((by_id > 0) & every, "content unknown: aligned by id")
    some = "content of {k} of {n} scenarios unknown: aligned by id"
    notes.add((by_id > 0) & ~every, some, k=by_id, n=summary.n)
    notes.add(renamed > 0, "the two sides are of different suites")
    if summary.joined:
        notes.add(summary.n > 1, "clusters of the two sides differ: those that overlap are joined")


def _note_flags(notes: Notes, summary: Contrasts) -> None:
    """List the flags of scripted scenarios; say where those of others only describe."""
    failing, passing = newly(summary.paired)
    for which, words in ((failing, "newly failing"), (passing, "newly passing")):
        _note_names(notes, summary.paired.run.where(which & summary.paired.run.contract), words)
    flags = summary.paired.run.tally(failing | passing)
    few = (flags > 0) & (_trials_range(summary.paired)[0] < ENOUGH_TRIALS) & ~summary.scripted
    notes.add(few, "below 5 trials a side, newly failing and newly passing only describe")


def _note_test(notes: Notes, test: NDArray[Any], n_signs: Ints) -> None:
    """Say where a p-value could not have been small, whatever the run had done."""
    notes.add((test != "none") & (n_signs == 0), "no scenario differs: p is 1 by definition")
    bound = (test == SIGN_FLIP) & (n_signs > 0) & (n_signs < _ENOUGH_SIGNS)
    notes.add(
        bound,
        "{n} scenario(s) or cluster(s) differ: p cannot fall below {p:g}",
        n=n_signs,
        p=0.5 ** (n_signs - 1.0),
    )
