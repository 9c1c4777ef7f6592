"""JSON values: comparing them by JSON's types, naming their types, showing them.

Patterns live in :mod:`evalkit.matching.nodes`; nothing here knows a matcher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_SHOWN = 80
"""Characters of a value that fit a sentence."""


_TYPES: tuple[tuple[str, type], ...] = (
    ("number", float),
    ("string", str),
    ("array", list),
    ("array", tuple),
    ("object", Mapping),
)


def is_number(value: object) -> bool:
    """Tell whether a value is a JSON number; ``true`` and ``false`` are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_list(value: object) -> bool:
    """Tell whether a value is a JSON array; a tuple counts as one."""
    return isinstance(value, list | tuple)


def json_type(value: object) -> str:
    """Name the JSON type of a value, or its Python type where JSON has none.

    Examples
    --------
    >>> json_type(True), json_type(1), json_type(1.5), json_type(None)
    ('boolean', 'integer', 'number', 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    fitting = (name for name, kind in _TYPES if isinstance(value, kind))
    return next(fitting, type(value).__name__)


def equal(expected: object, actual: object) -> bool:
    """Compare two JSON values by JSON's types, as deep as they go.

    ``true`` is not ``1`` and ``"1"`` is not ``1``, but ``1`` equals ``1.0``. Numbers
    compare by exact value, so integers beyond 2**53 keep their digits, also
    against floats. NaN equals NaN: two records of it are the same data. Lists
    compare in order, objects by key; a tuple counts as a list.

    Examples
    --------
    >>> equal({"n": [1]}, {"n": [1.0]}), equal(1, True), equal(10**17, 10**17 + 1)
    (True, False, False)
    """
    # A stack, because the agent chooses how deep a value is.
    pending = [(expected, actual)]
    while pending:
        left, right = pending.pop()
        if is_list(left) and is_list(right):
            if len(left) != len(right):  # type: ignore[arg-type]
                return False
            pending += zip(left, right, strict=True)  # type: ignore[call-overload]
        elif isinstance(left, Mapping) and isinstance(right, Mapping):
            if left.keys() != right.keys():
                return False
            pending += ((left[key], right[key]) for key in left)
        elif not _scalars_equal(left, right):
            return False
    return True


def _scalars_equal(left: Any, right: Any) -> bool:
    """Compare what is neither list nor object."""
    if is_number(left) and is_number(right):
        return bool(left == right) or (_is_nan(left) and _is_nan(right))
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return type(left) is type(right) and bool(left == right)


def _is_nan(value: float) -> bool:
    """Tell whether a number is NaN, whatever its size."""
    return isinstance(value, float) and math.isnan(value)


def show(value: object, limit: int = _SHOWN) -> str:
    """Write a value as short Python text that is safe for any size, depth and character.

    Examples
    --------
    >>> show("AA123"), show("x" * 500, limit=10)
    ("'AA123'", "'xxxxxx...")
    """
    try:
        text = repr(_cut(value, limit))
    except (RecursionError, ValueError):  # too deep, or an integer of thousands of digits
        return f"<{json_type(value)} too large to show>"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _cut(value: object, limit: int) -> object:
    """Shorten a long text before it is quoted, so that 50 MB are never copied."""
    return value[: limit + 1] if isinstance(value, str) else value
