"""What a ledger says of databases and of the agent's state, for graders.

``outcome["database"]`` has ``tables``, the names of the tables that each database began
with, and ``events``: changes, problems and answers in the order in which they were
recorded. ``outcome["state"]`` has what the agent told, turn by turn.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from evalkit.ledger import JSON, Event

_READING: Final = frozenset(
    {
        "select", "values", "explain", "delete", "begin", "commit", "end", "rollback",
        "savepoint", "release",
    }
)  # fmt: skip
_VERBS: Final = frozenset({"select", "values", "delete", "insert", "update", "replace"})
_PART: Final = re.compile(
    r"""(?P<blob>[xX]'[0-9a-fA-F]*'?)|(?P<text>'(?:[^']|'')*'?)|(?P<name>"(?:[^"]|"")*"?)
    |(?P<comment>--[^\n]*|/\*.*?(?:\*/|$))|(?P<word>[A-Za-z_]\w*)|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)


def databases_of(events: Iterable[Event]) -> dict[str, JSON]:
    """Read back what happened to databases; nothing where nobody looked."""
    tables: dict[str, JSON] | None = None
    told: list[JSON] = []
    for event in events:
        if event.kind == "state" and "databases" in event.data:
            begun = {name: one["tables"] for name, one in event.data["databases"].items()}
            tables = {**begun, **(tables or {})}
        elif event.kind == "database" and "sql" not in event.data:
            told.append(dict(event.data))
    return {} if tables is None else {"database": {"tables": tables, "events": told}}


def states_of(events: Iterable[Event]) -> dict[str, JSON]:
    """Read back what the agent told of its state; nothing where it told none."""
    told = [dict(event.data) for event in events if event.kind == "state" and "turn" in event.data]
    return {"state": told} if told else {}


def database_gap(events: Iterable[Event]) -> str:
    """Say why not all that was written into databases was seen; empty if all was."""
    gaps: dict[tuple[str, str], str] = {}
    for event in events:
        told = event.data
        if event.kind != "database":
            continue
        name = told["database"]
        if "query" not in told and ("problem" in told or "changes" in told):
            gaps.pop((name, "problem"), None)
        for kind, gap in _gaps(told):
            gaps[name, kind] = f"{name} {gap}"
    return next(iter(gaps.values()), "")


def _gaps(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "n_cut" in told:
        yield "cut", "was given a statement too long to be kept"
    if "n_statements_left_out" in told:
        yield "left out", f"was given {told['n_statements_left_out']:,} more statements than kept"
    if told.get("unlisted") or told.get("n_schema_left_out"):
        yield "unlisted", "has more changed rows than were kept"
    for table, why in (told.get("problems") or {}).items():
        yield "table", f"has a table {table!r} that {why}"
    if "problem" in told and "query" not in told and "exist" not in told["problem"]:
        yield "problem", str(told["problem"])


def written_into(events: Iterable[Event], *, given: Mapping[str, str]) -> list[JSON]:
    """Give what was written into databases: rows, names, and the statements that write.

    Parameters
    ----------
    events
        Of the whole trial.
    given
        Text of the fixture, by the name of the database. What stands in it was in the
        database before, so a statement that says it again tells nothing; where a row
        says it that did not, the row tells.
    """
    found: list[JSON] = []
    for event in events:
        if event.kind != "database":
            continue
        told = event.data
        if "sql" in told:
            found += _writing(told["sql"], given.get(told["database"], ""))
        for table in (told.get("changes") or {}).values():
            found += [_with_text(row) for row in table["inserted"]]
            found += [_with_text(_news(**pair)) for pair in table["updated"]]
        found += [one["after"] for one in told.get("schema", ()) if one["after"]]
    return found


def _news(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """Give the values of a row that it did not have before."""
    return {
        column: value
        for column, value in after.items()
        if column not in before or before[column] != value
    }


def _with_text(row: Mapping[str, JSON]) -> dict[str, JSON]:
    """Add to bytes what they read as."""
    found: dict[str, JSON] = {}
    for column, value in row.items():
        found[column] = value
        if isinstance(value, Mapping):
            found[column] = [value, *_readings(base64.b64decode(value["base64"]))]
    return found


def _readings(data: bytes) -> list[str]:
    texts = [data.decode("utf-8", "replace")]
    return [*texts, data.decode("utf-16-le", "replace")] if b"\0" in data else texts


def _writing(sql: str, given: str) -> list[str]:
    """Give what a statement writes, as texts: not what it looks for, nor what was there."""
    parts = [(str(found.lastgroup), found.group()) for found in _PART.finditer(sql)]
    if _verb(parts) in _READING:
        return []
    kept: list[str] = []
    more: list[str] = []
    for kind, text in _without_condition(parts):
        if kind == "text" and text[1:-1].replace("''", "'") in given:
            kept.append("''")
            continue
        kept.append(text)
        if kind == "blob":
            digits = text[2:].rstrip("'")
            more += _readings(bytes.fromhex(digits[: len(digits) // 2 * 2]))
    return ["".join(kept), *more]


def _verb(parts: Iterable[tuple[str, str]]) -> str:
    """Give the word that says what a statement does."""
    depth, first = 0, ""
    for kind, text in parts:
        depth += (text == "(") - (text == ")")
        word = text.lower() if kind == "word" else ""
        first = first or word
        if first and first != "with":
            return first
        if depth == 0 and word in _VERBS:
            return word
    return first


def _without_condition(parts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Leave out all from the WHERE of the statement itself."""
    depth = 0
    for kind, text in parts:
        depth += (text == "(") - (text == ")")
        if depth == 0 and kind == "word" and text.lower() == "where":
            return
        yield kind, text
