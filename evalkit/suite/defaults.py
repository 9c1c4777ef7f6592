"""``defaults``: what a suite's scenarios share, merged below each of them.

A key of the scenario wins over the same key in ``defaults``. Six keys whose
values are mappings (:data:`MERGED_KEYS`) are merged one level deep, so a scenario's
``expect: {tools: ...}`` keeps the default's ``expect: {errors: ...}``. Everything
else, lists included, is replaced whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MERGED_KEYS = frozenset({"vars", "env", "fixtures", "expect", "forbid", "budget"})
_RIVALS = {"input": "turns", "turns": "input"}


def with_defaults(scenario: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Merge defaults below one scenario, both as written.

    Examples
    --------
    >>> with_defaults({"expect": {"replies": 1}}, {"expect": {"errors": 0}, "tags": ["a"]})
    {'expect': {'errors': 0, 'replies': 1}, 'tags': ['a']}
    """
    merged = {
        key: value
        for key, value in defaults.items()
        if key != "strict" and _RIVALS.get(key) not in scenario
    }
    for key, value in scenario.items():
        below = merged.get(key)
        if key in MERGED_KEYS and isinstance(below, dict) and isinstance(value, dict) and value:
            merged[key] = {**below, **value}
        else:
            merged[key] = value
    return merged
