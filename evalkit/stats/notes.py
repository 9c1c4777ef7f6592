"""The words that stand beside a number: what is missing, what it cannot say.

A note is part of the frame, so that it reaches every report. The functions of
:mod:`evalkit.stats` raise no warnings: Python shows a warning once, and a frame
that is saved or rendered later has lost it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalkit.terminal import some_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalkit.stats.cells import Cells
    from evalkit.stats.clusters import ClusterMean

FEW_SCENARIOS = 10
_NAMED = 3


class Notes:
    """Sentences for the rows of a frame, joined by semicolons; empty where all is well."""

    def __init__(self, n_rows: int) -> None:
        self._parts: list[list[str]] = [[] for _ in range(n_rows)]

    def add(self, where: NDArray[np.bool_], template: str, **values: Any) -> None:
        """Add a sentence to the rows of ``where``, filled with each row's values."""
        for row in where.nonzero()[0]:
            self._parts[row].append(
                template.format(**{name: column[row] for name, column in values.items()})
            )

    def add_sample_size(self, spread: ClusterMean, where: NDArray[np.bool_]) -> None:
        """Say where clusters are coarser than scenarios, and where there are too few."""
        n, c = spread.n, spread.n_clusters
        coarse, few = where & (c < n), where & (c < FEW_SCENARIOS)
        self.add(few & ~coarse, "{n} scenarios: too few scenarios to generalise", n=n)
        self.add(coarse, "interval over {c} clusters of {n} scenarios", c=c, n=n)
        self.add(few & coarse, "too few clusters to generalise")

    def texts(self) -> list[str]:
        """Return one text a row."""
        return ["; ".join(parts) for parts in self._parts]


def names_by_group(cells: Cells) -> list[str]:
    """Return the first scenario ids of each group, and how many more there are."""
    names: list[list[str]] = [[] for _ in range(len(cells.groups))]
    for group, scenario in zip(cells.group.tolist(), cells.scenario.tolist(), strict=True):
        names[group].append(str(scenario))
    return [some_of(ids, limit=_NAMED) for ids in names]
