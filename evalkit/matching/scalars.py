"""Matchers of one scalar: texts, numbers, lengths, types, dates.

Each builder checks what stands beside its ``$key`` when the pattern is compiled
and returns a node that never raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evalkit.matching.dates import parse_moment, same_moment
from evalkit.matching.nodes import Builder, Node, Predicate, Refs, Scope
from evalkit.matching.values import is_list, is_number, json_type, show

_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
_RELATIVE = 1e-6
"""Relative tolerance of ``$approx`` where none is written."""


def _regex(raw: Any, scope: Scope) -> Node:
    """``$regex: "/posting/17$"``: a text in which the expression is found."""
    if not isinstance(raw, str):
        return scope.complain(f"takes a regular expression as text, not {show(raw)}")
    try:
        search = re.compile(raw).search
    except (re.error, RecursionError, OverflowError) as error:
        return scope.complain(f"{show(raw)} is no regular expression: {error}")
    return Predicate(lambda value: isinstance(value, str) and search(value) is not None, f"/{raw}/")


def _casefold(raw: Any, scope: Scope) -> Node:
    """``$casefold: denver``: the same text, upper and lower case alike."""
    if not isinstance(raw, str):
        return scope.complain(f"takes a text, not {show(raw)}; elsewhere write (?i) in a $regex")
    folded = raw.casefold()
    return Predicate(
        lambda value: isinstance(value, str) and value.casefold() == folded,
        f"{show(raw)} in any case",
    )


def _date(raw: Any, scope: Scope) -> Node:
    """``$date: 2026-01-05``: the same day or instant in another spelling."""
    moment = parse_moment(raw) if isinstance(raw, str) else None
    if moment is None:
        return scope.complain(
            f"{show(raw)} is no date that reads one way; write 2026-01-05 or 2026-01-05T09:00:00Z"
        )

    def accepts(value: Any) -> bool:
        found = parse_moment(value) if isinstance(value, str) else None
        return found is not None and same_moment(moment, found)

    return Predicate(accepts, f"the date {raw}")


def _type(raw: Any, scope: Scope) -> Node:
    """``$type: integer`` or ``[string, null]``: the JSON type; 1.0 is an integer too."""
    names = raw if isinstance(raw, list) and raw else [raw]
    for name in names:
        if name not in _TYPES:
            return scope.complain(f"{show(name)} is no JSON type; these are: {', '.join(_TYPES)}")
    accepted = {*names} | ({"integer"} if "number" in names else set())
    return Predicate(lambda value: json_type(value) in accepted, " or ".join(names))


def _bound(sign: str, holds: Callable[[Any, Any], bool]) -> Builder:
    """Make the builder of a comparison with a number."""

    def build(raw: Any, scope: Scope) -> Node:
        if not is_number(raw) or math.isnan(raw):
            return scope.complain(f"takes a number, not {show(raw)}")
        return Predicate(
            lambda value: is_number(value) and holds(value, raw), f"a number {sign} {show(raw)}"
        )

    return build


def _approx(raw: Any, scope: Scope) -> Node:
    """``$approx: 9.99`` or ``{value: 9.99, abs: 0.01}`` or ``{value: 9.99, rel: 0.1}``."""
    spec = raw if isinstance(raw, Mapping) else {"value": raw}
    if "value" not in spec or not spec.keys() <= {"value", "abs", "rel"}:
        return scope.complain("takes a number or {value, abs, rel}")
    for key, number in spec.items():
        if not is_number(number) or math.isnan(number) or math.isinf(number):
            return scope.complain(f"{key} is {show(number)}, which is no finite number")
        if key != "value" and number < 0:
            return scope.complain(f"{key} is {show(number)}; a tolerance is not negative")
    return _near(spec)


def _near(spec: Mapping[str, Any]) -> Node:
    """Build the test behind ``$approx``; the larger of two tolerances decides."""
    rel = spec.get("rel", 0 if "abs" in spec else _RELATIVE)
    centre = _exact(spec["value"])
    tolerance = max(_exact(spec.get("abs", 0)), _exact(rel) * abs(centre))

    def accepts(value: Any) -> bool:
        if not is_number(value) or math.isnan(value) or math.isinf(value):
            return False
        return abs(_exact(value) - centre) <= tolerance

    slack = ", ".join(f"{key} {show(spec[key])}" for key in ("abs", "rel") if key in spec)
    return Predicate(accepts, f"about {show(spec['value'])}" + (f" ({slack})" if slack else ""))


def _exact(number: float) -> Fraction:
    """Give the number that is written, so that 0.4 is within 0.1 of 0.3."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def _len(raw: Any, scope: Scope) -> Node:
    """``$len: 3`` or ``{$gt: 2}``: how many characters, elements or keys."""
    whole = isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0
    if not whole and not isinstance(raw, Mapping):
        return scope.complain(f"takes a whole number or a matcher such as {{$gt: 2}}, not {raw!r}")
    return Length(scope.sub(raw))


@dataclass(frozen=True, slots=True)
class Length(Node):
    """The length of a text, list or object matches."""

    count: Node

    def matches(self, value: Any, refs: Refs) -> bool:
        """Measure, then match."""
        sized = is_list(value) or isinstance(value, str | Mapping)
        return sized and self.count.matches(len(value), refs)

    def describe(self) -> str:
        """Say which length."""
        return f"a length of {self.count.describe()}"


BUILDERS: Mapping[str, Builder] = {
    "$approx": _approx,
    "$casefold": _casefold,
    "$date": _date,
    "$gt": _bound(">", lambda value, bound: value > bound),
    "$gte": _bound(">=", lambda value, bound: value >= bound),
    "$len": _len,
    "$lt": _bound("<", lambda value, bound: value < bound),
    "$lte": _bound("<=", lambda value, bound: value <= bound),
    "$regex": _regex,
    "$type": _type,
}
"""Matchers of this module by key."""
