"""``vars``: putting a scenario's variables into its texts.

``{name}`` of a declared variable is replaced, ``{{name}}`` gives the literal
``{name}``, and every other brace stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_UNTOUCHED = frozenset({"id", "tags", "vars", "cluster"})


def fill_scenario(data: dict[str, Any]) -> dict[str, Any]:
    """Replace the variables of a scenario in all its other keys.

    Texts are replaced where they are values, and where they are the single key of a
    short form (the route of an HTTP fixture). Variables that are no texts are
    left for the models to refuse.

    Examples
    --------
    >>> fill_scenario({"vars": {"n": "7"}, "input": "job {n}, {{n}}, {m}"})["input"]
    'job 7, {n}, {m}'
    """
    variables = data.get("vars")
    if not isinstance(variables, dict):
        return data
    texts = {name: text for name, text in variables.items() if isinstance(text, str)}
    if not texts:
        return data
    names = "|".join(sorted(map(re.escape, texts), key=len, reverse=True))
    place = re.compile(r"\{\{(" + names + r")\}\}|\{(" + names + r")\}")
    return {
        key: value if key in _UNTOUCHED else _filled(value, place=place, texts=texts)
        for key, value in data.items()
    }


def _filled(value: Any, *, place: re.Pattern[str], texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return place.sub(lambda found: _replacement(found, texts), value) if "{" in value else value
    if isinstance(value, list | tuple):
        return [_filled(item, place=place, texts=texts) for item in value]
    if isinstance(value, dict):
        is_short_form = len(value) == 1
        return {
            _filled(key, place=place, texts=texts) if is_short_form else key: _filled(
                item, place=place, texts=texts
            )
            for key, item in value.items()
        }
    return value


def _replacement(found: re.Match[str], texts: Mapping[str, str]) -> str:
    literal, name = found[1], found[2]
    return f"{{{literal}}}" if literal else texts[name]
