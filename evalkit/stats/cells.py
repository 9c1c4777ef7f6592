"""Which rows of a frame belong together: groups, scenarios, clusters.

:func:`collect_cells` is the only place that decides what one scenario is, which
of its trials count, and which scenarios form a cluster. Everything that
:mod:`evalkit.stats` computes starts from its :class:`Cells`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.stats.clusters import codes

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from evalkit.stats.clusters import Floats, Ints

By = str | Sequence[str] | None

STATUSES = ("passed", "failed", "incomplete")
GRADE_COLUMNS = ("grader", "rubric")
NO_TAG = "(no tag)"
_SPECIAL = ("tag", *GRADE_COLUMNS)
_TRIAL_KEYS = ("run_id", "scenario", "trial")


class Cells(NamedTuple):
    """One element a scenario in a group; a scenario with two tags has two cells."""

    groups: pd.DataFrame
    """One row a group, with the columns named in ``by``; sorted."""
    group: Ints
    """Position of the cell's group in ``groups``."""
    scenario: NDArray[Any]
    """Id of the cell's scenario."""
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


def collect_cells(run: Any, *, by: By = None, cluster: str | None = None) -> Cells:
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
    trials = _trials_of(run)
    _require(trials, [name for name in columns if name not in _SPECIAL], "by")
    units, own = _groups(trials, _unit_columns(trials))
    _refuse_repeated(trials, own)
    kept = [*_TRIAL_KEYS, "lane", "tags", *columns, *units.columns]
    rows = trials[[name for name in trials.columns if name in kept]].assign(
        _own=own, _state=_states(trials), _cluster=_clusters(trials, own, cluster)
    )
    if set(columns) & set(GRADE_COLUMNS):
        rows = _graded(rows, _grades_of(run, trials), columns)
    if "tag" in columns:
        rows = _tagged(rows)
    if columns == ["scenario"]:
        columns = list(units.columns)
    return _cells(rows, columns, units)


def by_columns(by: By) -> list[str]:
    """Return ``by`` as a list of column names."""
    if by is None:
        return []
    columns = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if "tags" in columns:
        raise ValueError("by: trials hold several tags each; use 'tag' to group by each of them")
    return columns


def _trials_of(run: Any) -> pd.DataFrame:
    """Return the trials of a run, or the frame itself."""
    import pandas as pd

    trials = run if isinstance(run, pd.DataFrame) else getattr(run, "trials", None)
    if not isinstance(trials, pd.DataFrame):
        raise ValueError(f"expected a run or the frame of its trials, got {type(run).__name__}")
    _require(trials, ["scenario", "status"], "trials")
    return trials


def _grades_of(run: Any, trials: pd.DataFrame) -> pd.DataFrame:
    """Return the grades of a run."""
    import pandas as pd

    grades = getattr(run, "grades", None)
    if not isinstance(grades, pd.DataFrame):
        raise ValueError(
            "rates by grader need the grades: pass the run itself, not only its trials"
        )
    _require(grades, [*_TRIAL_KEYS, *GRADE_COLUMNS[:1], "passed"], "grades")
    _require(trials, _TRIAL_KEYS, "trials")
    return grades


def _require(frame: pd.DataFrame, columns: Iterable[str], what: str) -> None:
    """Refuse a column that the frame does not have, and say which it could be."""
    known = [str(name) for name in frame.columns if not str(name).startswith("_")]
    for column in columns:
        if column not in frame.columns:
            close = difflib.get_close_matches(str(column), [*known, *_SPECIAL], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"{what}: there is no column {column!r}; there are {', '.join(known)}.{hint}"
            )


def _refuse_repeated(trials: pd.DataFrame, own: Ints) -> None:
    """Refuse a frame that holds one trial twice: it would count as two."""
    import pandas as pd

    if not set(_TRIAL_KEYS) <= set(trials.columns):
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


def _unit_columns(trials: pd.DataFrame) -> list[str]:
    """Return the columns that tell scenarios apart."""
    several = "suite" in trials.columns and trials["suite"].nunique(dropna=False) > 1  # noqa: PD101  # counts suites
    return ["suite", "scenario"] if several else ["scenario"]


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
    _require(trials, [column], "cluster")
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


def _graded(rows: pd.DataFrame, grades: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return one row a trial and grader, with the state of its grades.

    A trial without a grade is incomplete for each grader that graded another
    trial of its scenario; a scenario without any grade, for each of its run.
    """
    wanted = [name for name in GRADE_COLUMNS if name in columns]
    _require(grades, wanted, "grades")
    worst = _worst_grade(grades, wanted)
    rows = rows.drop(columns=["_state", *wanted], errors="ignore")
    expected = rows.merge(_planned_graders(rows, worst, wanted), on=["run_id", "scenario"])
    merged = expected.merge(worst, on=[*_TRIAL_KEYS, *wanted], how="left")
    return merged.assign(_state=merged["_state"].fillna(2).astype("int64"))


def _planned_graders(rows: pd.DataFrame, worst: pd.DataFrame, wanted: list[str]) -> pd.DataFrame:
    """Return which graders each scenario of each run was meant for."""
    import pandas as pd

    seen = worst[["run_id", "scenario", *wanted]].drop_duplicates()
    scenarios = rows[["run_id", "scenario"]].drop_duplicates()
    marked = scenarios.merge(
        seen[["run_id", "scenario"]].drop_duplicates(), how="left", indicator=True
    )
    ungraded = marked.loc[marked["_merge"] == "left_only", ["run_id", "scenario"]]
    of_run = seen[["run_id", *wanted]].drop_duplicates()
    return pd.concat([seen, ungraded.merge(of_run, on="run_id")], ignore_index=True)


def _worst_grade(grades: pd.DataFrame, wanted: list[str]) -> pd.DataFrame:
    """Reduce several grades of a trial: failed beats incomplete beats passed."""
    import numpy as np

    passed = grades["passed"].astype("boolean")
    unknown = passed.isna().to_numpy()
    rank = np.where(unknown, 1, np.where(passed.fillna(False).to_numpy(dtype=bool), 0, 2))
    keys = [*_TRIAL_KEYS, *wanted]
    graded = grades[keys].assign(_rank=rank)
    worst: pd.DataFrame = graded.groupby(keys, dropna=False, observed=True).max().reset_index()
    worst["_state"] = np.array([0, 2, 1])[worst.pop("_rank").to_numpy()]
    return worst


def _tagged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row a trial and tag."""
    import pandas as pd

    _require(rows, ["tags"], "by='tag'")
    found, kinds = pd.factorize(rows["tags"].map(_hashable), use_na_sentinel=False)
    tags = [_tag_tuple(kind) for kind in kinds]
    pairs = pd.DataFrame({"_kind": range(len(tags)), "tag": tags}).explode("tag")
    return rows.drop(columns="tag", errors="ignore").assign(_kind=found).merge(pairs, on="_kind")


def _hashable(tags: Any) -> Any:
    """Return tags in a form that can be counted."""
    return tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else tags


def _tag_tuple(tags: Any) -> tuple[str, ...]:
    """Return a trial's different tags, sorted; without tags, the label that says so."""
    if isinstance(tags, str):
        return (tags,) if tags else (NO_TAG,)
    if not isinstance(tags, Iterable):
        return (NO_TAG,)
    return tuple(sorted({str(tag) for tag in tags})) or (NO_TAG,)


def _cells(rows: pd.DataFrame, columns: list[str], units: pd.DataFrame) -> Cells:
    """Count states in each scenario of each group."""
    import numpy as np

    own = rows["_own"].to_numpy()
    by_unit = columns == list(units.columns)
    groups, row_group = (units, own) if by_unit else _groups(rows, columns)
    cell, first, place = np.unique(
        row_group * (len(units) + 1) + own, return_index=True, return_inverse=True
    )
    counts = np.bincount(place * 3 + rows["_state"].to_numpy(), minlength=3 * len(cell))
    passed, failed, incomplete = counts.reshape(len(cell), 3).T
    return Cells(
        groups,
        group=row_group[first],
        scenario=units["scenario"].to_numpy(dtype=object)[own[first]],
        cluster=rows["_cluster"].to_numpy()[first],
        n_passed=passed,
        n_failed=failed,
        n_incomplete=incomplete,
        contract=_contract(rows, place, len(cell)),
    )


def _groups(rows: pd.DataFrame, columns: list[str]) -> tuple[pd.DataFrame, Ints]:
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
