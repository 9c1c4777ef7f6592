"""Database: whether queries give the rows that they should, and which rows changed.

``outcome["database"]`` has ``tables`` (names by database, at the beginning) and
``events``, in the order in which they were recorded. Each names its ``database`` and
``turn`` (from 0; ``None`` for the end) and has

- ``query`` with ``columns``, ``rows`` and, where more were counted, ``n_rows``;
- ``changes`` by table: ``inserted``, ``deleted``, ``updated`` rows by column, with
  ``keys``, ``schema``, and what could not be listed;
- or ``problem``, with ``is_agents`` saying whose.

What a turn expects is held against that turn, what the scenario expects against the
end: a row that was inserted and updated later is one inserted row. A database that the
agent removed or broke is a fault; one that evalkit could not read is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.net_changes import NetChanges, net_changes
from evalkit.graders.places import expected
from evalkit.graders.rows import row_misses
from evalkit.graders.texts import is_over
from evalkit.matching import show
from evalkit.suite.expectations import Count, DatabaseExpect, RowChanges
from evalkit.suite.fields import suggestion

NAME: Final = "database"
_SHOWN: Final = 120

_Told = Mapping[str, Any]


def grade_database(trial: Trial) -> Grade:
    """Grade what one trial did to its databases.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, only turns that ended are judged.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where nobody looked, or not all could be read.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> look = {"database": "a.db", "query": "select count(*) from jobs", "rows": [[1]]}
    >>> scenario = Scenario.model_validate(
    ...     {"id": "save", "input": "Go.", "expect": {"database": [look]}}
    ... )
    >>> told = {"database": "a.db", "turn": None, "query": look["query"],
    ...         "columns": ["count(*)"], "rows": [[0]]}
    >>> outcome = {"database": {"tables": {"a.db": ["jobs"]}, "events": [told]}}
    >>> grade_database(Trial(scenario, Trace(), outcome)).reason
    'a.db: select count(*) from jobs: count(*): expected 1, got 0'
    """
    looks = list(expected(trial.scenario, lambda expect: expect.database))
    if not looks:
        return Grade.incomplete(NAME, "the scenario expects nothing of databases")
    recorded = Recorded.of(trial)
    if recorded is None:
        return Grade.incomplete(NAME, "nobody looked at the agent's databases")
    findings = chain.from_iterable(
        _found(look, turn, trial=trial, recorded=recorded)
        for turn, asked in looks
        for look in asked
    )
    return grade_of(NAME, findings, trial=trial, passed="the databases are as expected")


def _applies(trial: Trial) -> bool:
    return any(True for _ in expected(trial.scenario, lambda expect: expect.database))


class Recorded(NamedTuple):
    """What was recorded of a trial's databases."""

    tables: Mapping[str, Any]
    events: list[_Told]
    only: str
    """The database that is meant where none is named."""

    @classmethod
    def of(cls, trial: Trial) -> Recorded | None:
        """Read what was recorded; ``None`` if nobody looked."""
        told: Any = trial.outcome.get("database")
        if not isinstance(told, Mapping):
            return None
        given = trial.scenario.fixtures
        only = next(iter(given.database), "") if given is not None else ""
        return cls(told["tables"], list(told["events"]), only)

    def answer(self, name: str, query: str, *, turn: int | None) -> _Told | None:
        """Give what a query gave; a turn that was gone through twice counts as it was last."""
        asked = (name, query, turn)
        found = [e for e in self.events if (e["database"], e.get("query"), e.get("turn")) == asked]
        return found[-1] if found else None

    def changes(self, name: str, *, turn: int | None) -> list[_Told]:
        """Give the changes of one turn, or of all."""
        mine = (e for e in self.events if e["database"] == name and "changes" in e)
        return [e for e in mine if turn is None or e["turn"] == turn]

    def problem(self, name: str, *, turn: int | None) -> _Told | None:
        """Give what was wrong with a database when a turn, or the trial, was over."""
        last: _Told | None = None
        for event in self.events:
            is_said = event["database"] == name and "query" not in event and "turn" in event
            if is_said and (turn is None or event["turn"] <= turn):
                last = event if "problem" in event else None
        return last

    def has_table(self, name: str, table: str) -> bool:
        """Say whether a database had a table at any time; unknown counts as yes."""
        return self.tables.get(name, ()) is None or table.casefold() in {
            one.casefold() for one in self.table_names(name)
        }

    def table_names(self, name: str) -> list[str]:
        """Name the tables that a database had at any time, as far as it is known."""
        found = dict.fromkeys(self.tables.get(name) or ())
        for event in self.changes(name, turn=None):
            made = (one["name"] for one in event.get("schema", ()) if one["type"] == "table")
            found.update(dict.fromkeys((*made, *event["changes"])))
        return list(found)


def _found(
    look: DatabaseExpect, turn: int | None, *, trial: Trial, recorded: Recorded
) -> Iterator[Finding]:
    """Hold one look at a database against what was recorded."""
    name = look.database or recorded.only
    if look.query is not None:
        yield from _asked(look, name, turn=turn, trial=trial, recorded=recorded)
    if look.changes is not None and is_over(trial, turn):
        yield from _changed(look.changes, name, turn=turn, recorded=recorded)


def _asked(
    look: DatabaseExpect, name: str, *, turn: int | None, trial: Trial, recorded: Recorded
) -> Iterator[Finding]:
    query = str(look.query)
    told = recorded.answer(name, query, turn=turn)
    where = f"{name}: {_short(query)}"
    if told is None:
        if is_over(trial, turn):
            yield gap(f"{where}: nobody asked this; run the trial again", turn=turn)
        return
    if "problem" in told:
        yield _blamed(told, f"{where}: {told['problem']}", turn)
        return
    n_rows = told.get("n_rows", len(told["rows"]))
    if look.n_rows is not None and not _is_within(n_rows, look.n_rows):
        text = f"{where}: gave {_rows(n_rows)}, expected {_range(look.n_rows)}"
        yield fault(text, turn=turn, n_rows=n_rows)
    if look.rows is not None:
        yield from _compared(look, told, n_rows=n_rows, where=where, turn=turn)


def _compared(
    look: DatabaseExpect, told: _Told, *, n_rows: int, where: str, turn: int | None
) -> Iterator[Finding]:
    assert look.rows is not None
    if n_rows > len(told["rows"]) and n_rows == len(look.rows):
        yield gap(f"{where}: only {_rows(len(told['rows']))} of {n_rows:,} were kept", turn=turn)
        return
    misses = row_misses(
        look.rows, told["rows"], columns=told["columns"], order=look.order, n_rows=n_rows
    )
    if misses:
        yield fault(f"{where}: {'; '.join(misses)}", turn=turn, rows=told["rows"][:10])


def _blamed(told: _Told, text: str, turn: int | None) -> Finding:
    return fault(text, turn=turn) if told.get("is_agents") else gap(text, turn=turn)


def _changed(
    wanted: Mapping[str, RowChanges], name: str, *, turn: int | None, recorded: Recorded
) -> Iterator[Finding]:
    """Hold the changes of a turn, or of the whole trial, against what is expected."""
    problem = recorded.problem(name, turn=turn)
    if problem is not None:
        yield _blamed(problem, f"{name} {problem['problem']}", turn)
        return
    events = recorded.changes(name, turn=turn)
    for table, changes in wanted.items():
        where = f"{name}: {table}"
        if not recorded.has_table(name, table):
            yield _no_table(where, table, changes, turn=turn, known=recorded.table_names(name))
            continue
        net = net_changes(events, table)
        if net.gap:
            yield gap(f"{where}: {net.gap}", turn=turn)
        else:
            yield from _miscounted(where, changes, net, turn=turn)


def _no_table(
    where: str, table: str, wanted: RowChanges, *, turn: int | None, known: list[str]
) -> Finding:
    """Say that a table is not there; that nothing happened to it then says nothing."""
    near = suggestion(table, known)
    hint = near or (f" There is {', '.join(known[:5])}" if known else " There is no table at all")
    text = f"{where}: there was never such a table.{hint}"
    counts = (wanted.inserted, wanted.updated, wanted.deleted)
    is_missed = any(count is not None and count.min > 0 for count in counts)
    return fault(text, turn=turn) if is_missed else gap(text, turn=turn)


def _miscounted(
    where: str, wanted: RowChanges, net: NetChanges, *, turn: int | None
) -> Iterator[Finding]:
    for kind in ("inserted", "updated", "deleted"):
        count, number = getattr(wanted, kind), getattr(net, f"n_{kind}")
        if count is not None and not _is_within(number, count):
            listed = getattr(net, kind)
            examples = f": {', '.join(show(row, _SHOWN) for row in listed[:2])}" if listed else ""
            text = f"{where}: {_rows(number)} {kind}, expected {_range(count)}{examples}"
            yield fault(text, turn=turn, kind=kind, n_rows=number, rows=listed[:10])


def _is_within(number: int, count: Count) -> bool:
    return count.min <= number and (count.max is None or number <= count.max)


def _range(count: Count) -> str:
    if count.max is None:
        return f"at least {count.min}"
    return str(count.min) if count.min == count.max else f"{count.min} to {count.max}"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _short(query: str) -> str:
    text = " ".join(query.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


add_grader(Grader(NAME, grade_database, version="1", applies=_applies, reads_partial=True))
