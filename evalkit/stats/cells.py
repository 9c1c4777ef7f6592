"""Which rows of a frame belong together: groups, scenarios, clusters.

:func:`collect_cells` is the only place that decides what one scenario is, which
of its trials count, and which scenarios form a cluster. Everything that
:mod:`evalkit.stats` computes starts from its :class:`Cells`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.stats.clusters import codes
from evalkit.stats.expansion import (
    EXPANDED,
    GRADE_COLUMNS,
    TRIAL_KEYS,
    graded_rows,
    require_columns,
    tagged_rows,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from evalkit.stats.clusters import Floats, Ints

By = str | Sequence[str] | None

STATUSES = ("passed", "failed", "incomplete")
SEVERAL_CONTENTS = "(several contents)"


class Cells(NamedTuple):
    """One element a scenario in a group; a scenario with two tags has two cells."""

    groups: pd.DataFrame
    """One row a group, with the columns named in ``by``; sorted."""
    group: Ints
    """Position of the cell's group in ``groups``."""
    scenario: NDArray[Any]
    """Id of the cell's scenario."""
    suite: NDArray[Any]
    """Name of its suite; "" unknown."""
    content: NDArray[Any]
    """Its content hash; "" unknown, ``SEVERAL_CONTENTS`` where its trials disagree."""
    cluster: Ints
    """Code of the cluster that the scenario belongs to."""
    n_passed: Ints
    n_failed: Ints
    n_incomplete: Ints
    contract: NDArray[np.bool_]
    """Whether any of the cell's trials ran in the contract lane."""

    @property
    def n_measured(self) -> Ints:
        """Trials that passed or failed."""
        return self.n_passed + self.n_failed

    @property
    def n_planned(self) -> Ints:
        """All trials, measured or not."""
        return self.n_measured + self.n_incomplete

    @property
    def rate(self) -> Floats:
        """Passed / (passed + failed); NaN where nothing was measured."""
        import numpy as np

        with np.errstate(invalid="ignore", divide="ignore"):
            return self.n_passed / self.n_measured

    def where(self, keep: NDArray[np.bool_]) -> Cells:
        """Return the cells that ``keep`` selects; the groups stay."""
        return self._replace(**{name: getattr(self, name)[keep] for name in self._fields[1:]})

    def total(self, values: NDArray[Any]) -> Floats:
        """Sum one value a cell over each group."""
        import numpy as np

        weights = np.asarray(values, dtype=np.float64)
        sums = np.bincount(self.group, weights=weights, minlength=len(self.groups))
        return sums.astype(np.float64)

    def tally(self, which: NDArray[np.bool_]) -> Ints:
        """Count the cells of each group for which ``which`` holds."""
        import numpy as np

        return np.bincount(self.group[which], minlength=len(self.groups))


def collect_cells(
    run: Any, *, by: By = None, cluster: str | None = None, by_suite: bool | None = None
) -> Cells:
    """Sort the trials of a run into groups, scenarios and clusters.

    Parameters
    ----------
    run
        A run (anything with a frame ``trials``, and ``grades`` where ``by``
        names a grader), or a frame with the columns ``scenario`` and ``status``.
        Trials of one scenario from several runs are pooled unless ``by`` says
        otherwise; with several values of ``suite``, a scenario is a suite and an id.
    by
        Columns to group by: any column of the trials; ``"tag"`` (a scenario
        counts in each of its tags, or in ``"(no tag)"``); ``"grader"`` and
        ``"rubric"`` (grades count instead of statuses).
    cluster
        Column with the cluster of each scenario. ``None``: the column
        ``cluster`` where there is one, else each scenario is a cluster. A
        missing value makes the scenario its own cluster.
    by_suite
        For pairing with another run: whether suite and id tell scenarios apart,
        or the id alone. ``None``: they do where there are several suites, and
        suites and contents of the cells stay unknown, which is faster.

    Raises
    ------
    ValueError
        If a column is unknown, a status is not one of the three words, a trial
        is there twice, or a scenario lies in two clusters.

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({"scenario": ["a", "a", "b"],
    ...                        "status": ["passed", "failed", "incomplete"]})
    >>> cells = collect_cells(trials)
    >>> cells.scenario.tolist(), cells.n_passed.tolist(), cells.n_planned.tolist()
    (['a', 'b'], [1, 0], [2, 1])
    """
    columns = by_columns(by)
    trials = trials_of(run)
    if by_suite and "suite" not in trials.columns:
        trials = trials.assign(suite="")
    require_columns(trials, [name for name in columns if name not in EXPANDED], "by")
    several = has_suites(trials) if by_suite is None else by_suite
    unit_columns = ["suite", "scenario"] if several else ["scenario"]
    units, own = sorted_groups(trials, unit_columns)
    _refuse_repeated(trials, own)
    kept = [*TRIAL_KEYS, "lane", "tags", *columns, *unit_columns]
    rows = trials[[name for name in trials.columns if name in kept]].assign(
        _own=own, _state=_states(trials), _cluster=_clusters(trials, own, cluster)
    )
    if set(columns) & set(GRADE_COLUMNS):
        rows = graded_rows(rows, _grades_of(run, trials), columns)
    if "tag" in columns:
        rows = tagged_rows(rows)
    if columns == ["scenario"]:
        columns = unit_columns
    described = trials if by_suite is not None else trials[["scenario"]]
    return _cells(rows, columns, _described(units, described, own))


def by_columns(by: By) -> list[str]:
    """Return ``by`` as a list of column names."""
    if by is None:
        return []
    columns = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if "tags" in columns:
        raise ValueError("by: trials hold several tags each; use 'tag' to group by each of them")
    return columns


def trials_of(run: Any) -> pd.DataFrame:
    """Return the trials of a run, or the frame itself."""
    import pandas as pd

    trials = run if isinstance(run, pd.DataFrame) else getattr(run, "trials", None)
    if not isinstance(trials, pd.DataFrame):
        raise ValueError(f"expected a run or the frame of its trials, got {type(run).__name__}")
    require_columns(trials, ["scenario", "status"], "trials")
    return trials


def _grades_of(run: Any, trials: pd.DataFrame) -> pd.DataFrame:
    """Return the grades of a run."""
    import pandas as pd

    grades = getattr(run, "grades", None)
    if not isinstance(grades, pd.DataFrame):
        raise ValueError(
            "rates by grader need the grades: pass the run itself, not only its trials"
        )
    require_columns(grades, [*TRIAL_KEYS, *GRADE_COLUMNS[:1], "passed"], "grades")
    require_columns(trials, TRIAL_KEYS, "trials")
    return grades


def _refuse_repeated(trials: pd.DataFrame, own: Ints) -> None:
    """Refuse a frame that holds one trial twice: it would count as two."""
    import pandas as pd

    if not set(TRIAL_KEYS) <= set(trials.columns):
        return
    key = own
    for column in ("run_id", "trial"):
        further = codes(trials[column])
        key = key * (int(further.max(initial=0)) + 1) + further
    if len(pd.unique(key)) < len(key):
        row = trials.loc[pd.Series(key).duplicated().to_numpy()].iloc[0]
        raise ValueError(
            f"trial {row['trial']} of scenario {row['scenario']!r} is there twice in run "
            f"{row['run_id']!r}; drop the repeated rows, or give the runs different ids"
        )


def has_suites(trials: pd.DataFrame) -> bool:
    """Say whether an id may stand for several scenarios, of several suites."""
    return "suite" in trials.columns and bool(trials["suite"].nunique(dropna=False) > 1)  # noqa: PD101  # counts suites


def _described(units: pd.DataFrame, trials: pd.DataFrame, own: Ints) -> pd.DataFrame:
    """Add the suite and the content hash of each scenario; "" where there is no column."""
    import numpy as np

    suite, content = np.full((2, len(units)), "", dtype=object)
    _, first = np.unique(own, return_index=True)
    if "suite" in trials.columns:
        suite = trials["suite"].iloc[first].fillna("").astype(str).to_numpy(dtype=object)
    if "scenario_hash" in trials.columns:
        hashes = trials["scenario_hash"].astype(object).fillna("").to_numpy(dtype=object)
        content = hashes[first]
        content[own[hashes != content[own]]] = SEVERAL_CONTENTS
    return units.assign(_suite=suite, _content=content)


def _states(trials: pd.DataFrame) -> Ints:
    """Return each trial's place in ``STATUSES``."""
    import numpy as np
    import pandas as pd

    found, labels = pd.factorize(trials["status"], use_na_sentinel=False)
    unknown = [str(label) for label in labels if str(label) not in STATUSES]
    if unknown:
        raise ValueError(
            f"trials: status {unknown[0]!r} is not one of {', '.join(STATUSES)}; "
            "what could not be measured is incomplete"
        )
    places = np.array([STATUSES.index(str(label)) for label in labels], dtype=np.int64)
    return places[found] if len(places) else np.zeros(0, np.int64)


def _clusters(trials: pd.DataFrame, own: Ints, cluster: str | None) -> Ints:
    """Return each trial's cluster code, coarser than or equal to its scenario."""
    import numpy as np

    if cluster is None and "cluster" not in trials.columns:
        return own
    column = cluster or "cluster"
    require_columns(trials, [column], "cluster")
    if column == "scenario":
        return own
    declared = codes(trials[column])
    found = np.where(trials[column].isna(), -1 - own, declared)
    _refuse_split(trials, own, clusters=found)
    return codes(found)


def _refuse_split(trials: pd.DataFrame, own: Ints, *, clusters: Ints) -> None:
    """Refuse a scenario whose trials lie in two clusters."""
    import pandas as pd

    per_scenario = pd.Series(clusters).groupby(own).agg(["min", "max"])
    split = per_scenario.index[per_scenario["min"] != per_scenario["max"]]
    if len(split):
        name = trials["scenario"].to_numpy()[own == split[0]][0]
        raise ValueError(
            f"scenario {name!r} lies in several clusters; a cluster must hold whole scenarios"
        )


def _cells(rows: pd.DataFrame, columns: list[str], units: pd.DataFrame) -> Cells:
    """Count states in each scenario of each group."""
    import numpy as np

    own = rows["_own"].to_numpy()
    by_unit = columns == list(units.columns[:-2])
    groups, row_group = (units[columns], own) if by_unit else sorted_groups(rows, columns)
    cell, first, place = np.unique(
        row_group * (len(units) + 1) + own, return_index=True, return_inverse=True
    )
    counts = np.bincount(place * 3 + rows["_state"].to_numpy(), minlength=3 * len(cell))
    passed, failed, incomplete = counts.reshape(len(cell), 3).T
    return Cells(
        groups,
        group=row_group[first],
        scenario=units["scenario"].to_numpy(dtype=object)[own[first]],
        suite=units["_suite"].to_numpy(dtype=object)[own[first]],
        content=units["_content"].to_numpy(dtype=object)[own[first]],
        cluster=rows["_cluster"].to_numpy()[first],
        n_passed=passed,
        n_failed=failed,
        n_incomplete=incomplete,
        contract=_contract(rows, place, len(cell)),
    )


def sorted_groups(rows: pd.DataFrame, columns: list[str]) -> tuple[pd.DataFrame, Ints]:
    """Return the sorted groups and each row's position among them."""
    import numpy as np
    import pandas as pd

    if not columns:
        return pd.DataFrame(index=range(1)), np.zeros(len(rows), np.int64)
    grouped = rows.groupby(columns, sort=True, dropna=False, observed=True)
    place = np.asarray(grouped.ngroup(), dtype=np.int64)
    _, first = np.unique(place, return_index=True)
    return rows[columns].iloc[first].reset_index(drop=True), place


def _contract(rows: pd.DataFrame, place: Ints, n_cells: int) -> NDArray[np.bool_]:
    """Say which cells hold a trial of the contract lane."""
    import numpy as np

    if "lane" not in rows.columns:
        return np.zeros(n_cells, dtype=bool)
    scripted = rows["lane"].isin(["contract"]).to_numpy()
    return np.bincount(place[scripted], minlength=n_cells) > 0
