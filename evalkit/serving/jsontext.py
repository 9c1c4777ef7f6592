"""JSON as it travels: fast where it can be, exact where it must be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, NoReturn

import orjson

from evalkit.ledger import JSON

_LONG_NUMBER: Final = re.compile(rb"\d{19}")
"""Where an integer may be beyond 64 bits, which orjson makes a float."""
_MAX_DEPTH: Final = 200
_TOO_DEEP: Final = f"it is nested far deeper than {_MAX_DEPTH} levels"


def to_bytes(value: JSON) -> bytes:
    r"""Write a value as JSON, keys in their order; integers of any size survive.

    Examples
    --------
    >>> to_bytes({"b": 1, "a": "\u00e9"}).decode()
    '{"b":1,"a":"é"}'
    """
    try:
        return orjson.dumps(value)
    except (TypeError, RecursionError):
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def to_text(value: JSON) -> str:
    """Write a value as JSON text."""
    return to_bytes(value).decode()


def parse(content: bytes) -> JSON:
    """Read JSON that somebody sent; lone surrogates and integers of any size survive.

    Raises
    ------
    ValueError
        If it is none, or nested hundreds of levels deep; ``NaN`` is none.
    """
    read = _parsed_exactly if _LONG_NUMBER.search(content) else _parsed
    value = read(content)
    if content.count(b"[") + content.count(b"{") > _MAX_DEPTH:
        _check_depth(value)
    return value


def _parsed(content: bytes) -> JSON:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return _parsed_exactly(content)


def _check_depth(value: JSON) -> None:
    """Refuse what the ledger could not write down; most is cheaply shown to be flat."""
    try:
        orjson.dumps(value)
    except TypeError:
        if _depth(value) > _MAX_DEPTH:
            raise ValueError(_TOO_DEEP) from None


def _parsed_exactly(content: bytes) -> JSON:
    """Read what orjson refuses although it is JSON, or would round."""
    try:
        return json.loads(content, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def _depth(value: JSON) -> int:
    """Count levels, a level at a time: no recursion, and no work on what is flat."""
    depth, level = 0, [value]
    while level := [item for one in level for item in _inside(one)]:
        depth += 1
    return depth


def _inside(value: JSON) -> Iterable[JSON]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
