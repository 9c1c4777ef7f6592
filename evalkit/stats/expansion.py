"""What a trial counts in beside its own row: each of its tags, each of its graders.

Also holds the one message about a column that is not there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

TRIAL_KEYS = ("run_id", "scenario", "trial")
GRADE_COLUMNS = ("grader", "rubric")
EXPANDED = ("tag", *GRADE_COLUMNS)
"""Names to group by that are no column of the trials."""

NO_TAG = "(no tag)"


def require_columns(frame: pd.DataFrame, columns: Iterable[str], what: str) -> None:
    """Refuse a column that the frame does not have, and say which it could be."""
    known = [str(name) for name in frame.columns if not str(name).startswith("_")]
    for column in columns:
        if column not in frame.columns:
            close = difflib.get_close_matches(str(column), [*known, *EXPANDED], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"{what}: there is no column {column!r}; there are {', '.join(known)}.{hint}"
            )


def graded_rows(rows: pd.DataFrame, grades: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return one row a trial and grader, with the state of its grades.

    A trial without a grade is incomplete for each grader that graded another
    trial of its scenario; a scenario without any grade, for each of its run.
    """
    wanted = [name for name in GRADE_COLUMNS if name in columns]
    require_columns(grades, wanted, "grades")
    worst = _worst_grade(grades, wanted)
    rows = rows.drop(columns=["_state", *wanted], errors="ignore")
    expected = rows.merge(_planned_graders(rows, worst, wanted), on=["run_id", "scenario"])
    merged = expected.merge(worst, on=[*TRIAL_KEYS, *wanted], how="left")
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
    keys = [*TRIAL_KEYS, *wanted]
    graded = grades[keys].assign(_rank=rank)
    worst: pd.DataFrame = graded.groupby(keys, dropna=False, observed=True).max().reset_index()
    worst["_state"] = np.array([0, 2, 1])[worst.pop("_rank").to_numpy()]
    return worst


def tagged_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row a trial and tag."""
    import pandas as pd

    require_columns(rows, ["tags"], "by='tag'")
    found, kinds = pd.factorize(rows["tags"].map(_hashable), use_na_sentinel=False)
    tags = [_tag_tuple(kind) for kind in kinds]
    pairs = pd.DataFrame({"_kind": range(len(tags)), "tag": tags}).explode("tag")
    return rows.drop(columns="tag", errors="ignore").assign(_kind=found).merge(pairs, on="_kind")


def _hashable(tags: Any) -> Any:
    """Return tags in a form that can be counted."""
    known = isinstance(tags, tuple | str) or not isinstance(tags, Iterable)  # tuples are many
    return tags if known else tuple(tags)


def _tag_tuple(tags: Any) -> tuple[str, ...]:
    """Return a trial's different tags, sorted; without tags, the label that says so."""
    if isinstance(tags, str):
        return (tags,) if tags else (NO_TAG,)
    if not isinstance(tags, Iterable):
        return (NO_TAG,)
    return tuple(sorted({str(tag) for tag in tags})) or (NO_TAG,)
