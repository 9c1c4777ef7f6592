"""What an importer gives: trials, an optional suite, and where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from evalkit.errors import TraceError
from evalkit.grade import Grade
from evalkit.ledger import JSON
from evalkit.trace import Trace

UNSEEN: Final = Trace(tools_observed=False)
"""The trace of a trial whose record cannot be read: nobody saw anything."""


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """One trial that another tool recorded."""

    scenario: str
    trial: int
    trace: Trace
    grades: tuple[Grade, ...] = ()
    """What the other tool said of it; empty if it said nothing."""
    tags: tuple[str, ...] = ()
    problem: str = ""
    """Why the record cannot be read; the trial is then ``incomplete``."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file, before it is read."""

    where: str
    """File, and line or position in it."""
    scenario: str
    """Scenario it belongs to, unless the record itself says."""
    value: JSON = None
    problem: str = ""
    """Why there is no value."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A record that was read, before trials are numbered."""

    trace: Trace
    scenario: str = ""
    """Empty: the row's."""
    trial: int | None = None
    """``None``: the next of its scenario."""
    grades: tuple[Grade, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trials:
    """Trials that are read from the file each time that somebody iterates."""

    start: Callable[[], Iterator[ImportedTrial]]

    def __iter__(self) -> Iterator[ImportedTrial]:
        """Read from the beginning."""
        return self.start()


@dataclass(frozen=True, slots=True)
class Imported:
    """What was found under a path.

    Examples
    --------
    >>> Imported("openai", Path("a.jsonl"), Trials(lambda: iter(()))).name
    'a'
    """

    format: str
    path: Path
    trials: Trials
    suite: Mapping[str, JSON] | None = None
    """Expectations that the file holds, in the words of a suite file."""
    source: Mapping[str, JSON] = field(default_factory=dict)
    """Tool, file, size and hash; goes into the run's manifest."""

    @property
    def name(self) -> str:
        """Name of the suite: the one the file holds, else the file's."""
        return str(self.suite["suite"]) if self.suite else self.path.stem


def numbered(rows: Iterator[Row], read_row: Callable[[Row], Draft]) -> Iterator[ImportedTrial]:
    """Read rows into trials and number those that have no number of their own.

    A row that cannot be read becomes a trial with a ``problem``.

    Raises
    ------
    TraceError
        If one trial stands there twice.
    """
    seen: Counter[str] = Counter()
    places: dict[tuple[str, int], str] = {}
    for row in rows:
        draft, problem = _attempt(row, read_row)
        scenario = draft.scenario or row.scenario
        trial = seen[scenario] if draft.trial is None else draft.trial
        seen[scenario] += 1
        _refuse_twice(places, (scenario, trial), row.where)
        yield ImportedTrial(scenario, trial, draft.trace, draft.grades, draft.tags, problem)


def _attempt(row: Row, read_row: Callable[[Row], Draft]) -> tuple[Draft, str]:
    if row.problem:
        return Draft(UNSEEN), row.problem
    try:
        return read_row(row), ""
    except UnreadableRow as error:
        return replace(error.draft, trace=UNSEEN, grades=()), f"{row.where}: {error}"
    except (TraceError, RecursionError) as error:
        return Draft(UNSEEN), f"{row.where}: {error or 'nested too deeply'}"
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Draft(UNSEEN), f"{row.where}: not of the shape that is expected: {error!r}"


class UnreadableRow(TraceError):
    """A row cannot be read, though it is known whose it is."""

    def __init__(self, message: str, draft: Draft) -> None:
        super().__init__(message)
        self.draft = draft


def _refuse_twice(places: dict[tuple[str, int], str], key: tuple[str, int], where: str) -> None:
    first = places.setdefault(key, where)
    if first != where:
        raise TraceError(
            f"{where}: trial {key[1]} of scenario {key[0]!r} stands in {first} already; "
            "number the trials of a scenario 0, 1, 2 ..., or leave the numbers out"
        )
