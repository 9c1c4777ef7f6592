"""What several changes of a table come to: a row that came and went is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evalkit.ledger import JSON, encode

_Row = Mapping[str, JSON]


class NetChanges(NamedTuple):
    """How one table differs at the end from what it was at the beginning."""

    inserted: list[JSON] = []  # noqa: RUF012 - never changed
    updated: list[JSON] = []  # noqa: RUF012
    deleted: list[JSON] = []  # noqa: RUF012
    n_inserted: int = 0
    n_updated: int = 0
    n_deleted: int = 0
    gap: str = ""
    """Why it is not known; empty if it is."""


def net_changes(events: Iterable[Mapping[str, Any]], table: str) -> NetChanges:
    """Sum up the changes of one table, whatever the case of its name.

    Parameters
    ----------
    events
        Those with ``changes``, of one database, in their order.
    table
        Its name.

    Examples
    --------
    >>> came = {"inserted": [{"id": 1, "a": "x"}], "updated": [], "deleted": []}
    >>> pair = {"before": {"id": 1, "a": "x"}, "after": {"id": 1, "a": "y"}}
    >>> later = {"inserted": [], "updated": [pair], "deleted": []}
    >>> keys = {"jobs": ["id"]}
    >>> events = [{"changes": {"jobs": one}, "keys": keys} for one in (came, later)]
    >>> net_changes(events, "jobs").inserted
    [{'id': 1, 'a': 'y'}]
    """
    mine = [found for event in events for found in _of_table(event, table)]
    gap = next((one.problem for one in mine if one.problem), "")
    if gap:
        return NetChanges(gap=f"it {gap}")
    if len(mine) == 1:
        return _alone(mine[0])
    if any(one.unlisted for one in mine):
        return NetChanges(gap="more rows changed than were kept, in more than one turn")
    return _folded(mine)


class _Part(NamedTuple):
    """What one event says of the table."""

    changes: Mapping[str, Sequence[Any]]
    key: Sequence[str]
    unlisted: Mapping[str, int]
    problem: str


_NONE: Mapping[str, Sequence[Any]] = {"inserted": (), "updated": (), "deleted": ()}


def _of_table(event: Mapping[str, Any], table: str) -> Iterator[_Part]:
    said = {**event["changes"], **event.get("problems", {})}
    for name in said:
        if name.casefold() == table.casefold():
            yield _Part(
                event["changes"].get(name, _NONE),
                event.get("keys", {}).get(name, ()),
                event.get("unlisted", {}).get(name, {}),
                event.get("problems", {}).get(name, ""),
            )


def _alone(part: _Part) -> NetChanges:
    kinds = ("inserted", "updated", "deleted")
    listed = [list(part.changes[kind]) for kind in kinds]
    numbers = [
        len(rows) + part.unlisted.get(kind, 0) for rows, kind in zip(listed, kinds, strict=True)
    ]
    inserted, updated, deleted = listed
    n_inserted, n_updated, n_deleted = numbers
    return NetChanges(
        inserted,
        updated,
        deleted,
        n_inserted=n_inserted,
        n_updated=n_updated,
        n_deleted=n_deleted,
    )


def _folded(parts: Sequence[_Part]) -> NetChanges:
    rows: dict[bytes, _Row] = {}
    balance: Counter[bytes] = Counter()
    for part in parts:
        gained = [*part.changes["inserted"], *(pair["after"] for pair in part.changes["updated"])]
        lost = [*part.changes["deleted"], *(pair["before"] for pair in part.changes["updated"])]
        for row, sign in (*((r, 1) for r in gained), *((r, -1) for r in lost)):
            identity = _identity(row)
            rows[identity] = row
            balance[identity] += sign
    came = [rows[one] for one, n in balance.items() for _ in range(n)]
    went = [rows[one] for one, n in balance.items() for _ in range(-n)]
    key = next((part.key for part in reversed(parts) if part.key), ())
    return _split(came, went, key)


def _split(came: list[_Row], went: list[_Row], key: Sequence[str]) -> NetChanges:
    """Tell updated rows, by their key, from inserted and deleted ones."""
    before, after = _by_key(went, key), _by_key(came, key)
    both = [one for one in before if one in after and len(before[one]) == len(after[one]) == 1]
    updated = [{"before": before[one][0], "after": after[one][0]} for one in both]
    inserted = [row for one, rows in after.items() if one not in both for row in rows]
    deleted = [row for one, rows in before.items() if one not in both for row in rows]
    return NetChanges(
        list(inserted), list(updated), list(deleted), len(inserted), len(updated), len(deleted)
    )


def _by_key(rows: Iterable[_Row], key: Sequence[str]) -> dict[bytes, list[_Row]]:
    """Collect rows by key; one without a key, or without all of it, stays alone."""
    found: dict[bytes, list[_Row]] = {}
    for number, row in enumerate(rows):
        has_key = bool(key) and all(row.get(column) is not None for column in key)
        identity = _identity({column: row[column] for column in key}) if has_key else b""
        found.setdefault(identity or b"%d %d" % (id(rows), number), []).append(row)
    return found


def _identity(row: _Row) -> bytes:
    """Tell rows apart; a column that is NULL may as well not be there, and 1.0 is 1."""
    return encode({column: _whole(value) for column, value in row.items() if value is not None})


def _whole(value: JSON) -> JSON:
    return int(value) if isinstance(value, float) and value.is_integer() else value
