"""Which scenario of a run is which scenario of its baseline.

Two scenarios are the same where id and content agree. Rows of the two sides are
never matched by position, and trial j of one side never with trial j of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.stats.cells import (
    SEVERAL_CONTENTS,
    By,
    Cells,
    collect_cells,
    has_suites,
    sorted_groups,
    trials_of,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from evalkit.stats.clusters import Ints


class Aligned(NamedTuple):
    """The scenarios of two sides, element by element; one element a scenario in a group."""

    run: Cells
    """Cells of the run; without any trial where only the baseline has the scenario."""
    baseline: Cells
    """Cells of the baseline, in the same order and with the same groups."""
    change: NDArray[Any]
    """``"same"``, ``"changed"`` (in content), ``"added"`` or ``"removed"``."""
    by_id_only: NDArray[np.bool_]
    """Whether the two are taken to be the same although a content is unknown."""

    @property
    def groups(self) -> pd.DataFrame:
        """Groups of either side, sorted."""
        return self.run.groups

    @property
    def rated(self) -> NDArray[np.bool_]:
        """Which scenarios are the same and have a rate on both sides."""
        import numpy as np

        measured = (self.run.n_measured > 0) & (self.baseline.n_measured > 0)
        return np.asarray((self.change == "same") & measured, dtype=bool)

    @property
    def other_suite(self) -> NDArray[np.bool_]:
        """Which scenarios name another suite on either side."""
        import numpy as np

        ours, theirs = self.run.suite, self.baseline.suite
        return np.asarray((ours != "") & (theirs != "") & (ours != theirs), dtype=bool)

    def where(self, keep: NDArray[np.bool_]) -> Aligned:
        """Return the scenarios that ``keep`` selects; the groups stay."""
        return Aligned(
            self.run.where(keep),
            self.baseline.where(keep),
            self.change[keep],
            self.by_id_only[keep],
        )


def align(run: Any, baseline: Any, *, by: By = None, cluster: str | None = None) -> Aligned:
    """Match the scenarios of a run with those of its baseline.

    Parameters
    ----------
    run, baseline, by, cluster
        As in :func:`evalkit.stats.compare`.

    Raises
    ------
    ValueError
        As :func:`evalkit.stats.cells.collect_cells`; the message names the side.

    Notes
    -----
    Where either side holds several suites, a scenario is a suite and an id.
    Several contents of one scenario on one side agree with nothing.
    """
    sides = {"run": run, "baseline": baseline}
    by_suite = False
    for name, side in sides.items():
        with _naming(name):
            by_suite |= has_suites(trials_of(side))
    cells = []
    for name, side in sides.items():
        with _naming(name):
            cells.append(collect_cells(side, by=by, cluster=cluster, by_suite=by_suite))
    return _matched(cells[0], cells[1], by_suite=by_suite)


@contextmanager
def _naming(side: str) -> Iterator[None]:
    """Say on which side something is wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{side}: {error}") from error


def _matched(run: Cells, baseline: Cells, *, by_suite: bool) -> Aligned:
    """Put the cells of both sides in one order: by group, then by scenario."""
    import numpy as np
    import pandas as pd

    columns = list(run.groups.columns)
    groups, place = sorted_groups(pd.concat([run.groups, baseline.groups]), columns)
    units, unit = _units(run, baseline, by_suite=by_suite)
    split = len(run.groups)
    group = np.concatenate([place[:split][run.group], place[split:][baseline.group]])
    keys = group * (len(units) + 1) + unit
    every, first = np.unique(keys, return_index=True)
    frame = _Frame(groups, group[first], units["scenario"].to_numpy(dtype=object)[unit[first]])
    n = len(run.group)
    left = _placed(run, frame, np.searchsorted(every, keys[:n]))
    right = _placed(baseline, frame, np.searchsorted(every, keys[n:]))
    return Aligned(left, right, *_changes(left, right))


def _units(run: Cells, baseline: Cells, *, by_suite: bool) -> tuple[pd.DataFrame, Ints]:
    """Return the sorted scenarios of both sides, and which one each cell is of."""
    import pandas as pd

    columns = ["suite", "scenario"] if by_suite else ["scenario"]
    parts = [
        pd.DataFrame({name: getattr(side, name) for name in columns}) for side in (run, baseline)
    ]
    return sorted_groups(pd.concat(parts), columns)


class _Frame(NamedTuple):
    """What both sides share: groups, and the group and scenario of each cell."""

    groups: pd.DataFrame
    group: Ints
    scenario: NDArray[Any]


def _placed(cells: Cells, frame: _Frame, place: Ints) -> Cells:
    """Return cells at their places in a longer order, blank where there is none."""
    import numpy as np

    blanks = {"suite": "", "content": "", "cluster": -1, "contract": False}
    placed: dict[str, Any] = {}
    for name in Cells._fields[3:]:
        values = getattr(cells, name)
        placed[name] = np.full(len(frame.group), blanks.get(name, 0), dtype=values.dtype)
        placed[name][place] = values
    return Cells(*frame, **placed)


def _changes(run: Cells, baseline: Cells) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Say how each scenario changed, and where that rests on its id alone."""
    import numpy as np

    sides = (run, baseline)
    unknown = np.any([side.content == "" for side in sides], axis=0)
    several = np.any([side.content == SEVERAL_CONTENTS for side in sides], axis=0)
    differs = several | (~unknown & (run.content != baseline.content))
    change = np.where(differs, "changed", "same").astype(object)
    change[baseline.n_planned == 0] = "added"
    change[run.n_planned == 0] = "removed"
    return change, unknown & (change == "same")
