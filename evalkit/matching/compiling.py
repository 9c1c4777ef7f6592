"""From a pattern as it is written in a suite to one that can match.

A plain value matches what is equal to it (:func:`~evalkit.matching.values.equal`).
A dict with one ``$`` key is a matcher; several ``$`` keys in one dict must all hold.
Inside a pattern, dicts are exact: the same keys, each with a pattern of its own
(``$contains`` asks for some items only, ``$optional`` lets a key be left out).
``$$key`` is the literal key ``$key``. ``{$optional: {$not: {$any: true}}}`` says
that a key must not be there.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from evalkit.errors import UsageError
from evalkit.matching import containers, lookups, scalars
from evalkit.matching.nodes import (
    AllOf,
    Array,
    Builder,
    Difference,
    Literal,
    Node,
    Object,
    Refs,
    Unresolved,
    join_path,
)
from evalkit.matching.values import is_list, show

MATCHERS: Mapping[str, Builder] = {
    **scalars.BUILDERS,
    **containers.BUILDERS,
    **lookups.BUILDERS,
}
"""Every matcher by its key."""

KeyPath = tuple[str | int, ...]
"""Keys and list positions from the pattern's top to a place in it."""

_MAX_DEPTH = 100
"""Levels of a pattern; what a person writes has a handful."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern, cheap to match many times.

    Examples
    --------
    >>> pattern = compile_pattern({"amount": {"$gt": 100}})
    >>> pattern.matches({"amount": 150})
    True
    """

    node: Node
    refs: frozenset[str] = frozenset()
    """Ids of the calls whose results it needs."""

    def matches(self, value: Any, refs: Refs | None = None, *, unresolved: bool = False) -> bool:
        """Tell whether a value matches; ``unresolved`` answers where a ``$ref`` has no value."""
        try:
            return self.node.matches(value, refs or {})
        except Unresolved:
            return unresolved

    def differences(
        self, value: Any, refs: Refs | None = None, *, path: str = ""
    ) -> list[Difference]:
        """List where a value does not match; empty exactly where it matches."""
        return list(self.node.differences(value, refs or {}, path=path))


@dataclass(frozen=True, slots=True)
class _Notes:
    """What compiling found on its way."""

    problems: list[tuple[KeyPath, str]] = field(default_factory=list)
    refs: list[tuple[KeyPath, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The place of one matcher, for its builder."""

    path: KeyPath
    depth: int
    notes: _Notes

    def sub(self, raw: Any, *, step: str | int | None = None) -> Node:
        """Compile what stands inside the matcher."""
        return _compile(raw, self.at(step) if step is not None else self.deeper())

    def at(self, step: str | int) -> _Scope:
        """Go one key or position down."""
        return _Scope((*self.path, step), self.depth + 1, self.notes)

    def deeper(self) -> _Scope:
        """Go one level down at the same place."""
        return _Scope(self.path, self.depth + 1, self.notes)

    def complain(self, message: str) -> Node:
        """Note a problem at this place."""
        self.notes.problems.append((self.path, message))
        return containers.NOTHING

    def refer(self, call: str) -> None:
        """Note a needed call."""
        self.notes.refs.append((self.path, call))


def _compile(raw: Any, scope: _Scope, *, keyed: bool = False) -> Node:
    """Compile any pattern; ``keyed`` where it is the value of a key."""
    if scope.depth > _MAX_DEPTH:
        return scope.complain(f"is nested deeper than {_MAX_DEPTH} levels")
    if is_list(raw):
        return Array(tuple(scope.sub(item, step=index) for index, item in enumerate(raw)))
    if not isinstance(raw, Mapping):
        return Literal(raw)
    if any(map(_is_matcher, raw)):
        return _matchers(raw, scope, keyed=keyed)
    return Object(_items(raw, scope))


def _items(raw: Mapping[Any, Any], scope: _Scope) -> dict[str, Node]:
    """Compile the values of a plain dict and unescape its keys."""
    items: dict[str, Node] = {}
    for key, part in raw.items():
        place = scope.at(str(key))
        if not isinstance(key, str):
            place.complain(f"the key {show(key)} is no text; put it in quotes")
        else:
            items[_unescaped(key)] = _compile(part, place, keyed=True)
    return items


def _matchers(raw: Mapping[Any, Any], scope: _Scope, *, keyed: bool) -> Node:
    """Compile a dict of matchers."""
    nodes = tuple(_matcher(key, part, scope=scope) for key, part in raw.items())
    if "$optional" in raw and not keyed:
        scope.complain("$optional only makes sense as the value of an argument or key")
    return nodes[0] if len(nodes) == 1 else AllOf(nodes)


def _matcher(key: Any, raw: Any, *, scope: _Scope) -> Node:
    """Compile one matcher, or say why its key is none."""
    place = scope.at(str(key))
    if not _is_matcher(key):
        return place.complain("a plain key beside a matcher; write $$name for a key with a $")
    if key not in MATCHERS:
        close = difflib.get_close_matches(key, MATCHERS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"these exist: {', '.join(MATCHERS)}"
        return place.complain(f"unknown matcher {key}; {hint} (a literal key is written ${key})")
    return MATCHERS[key](raw, place)


def _is_matcher(key: object) -> bool:
    """Tell a matcher's key from an escaped one."""
    return isinstance(key, str) and key.startswith("$") and not key.startswith("$$")


def _unescaped(key: str) -> str:
    """Give the literal key."""
    return key[1:] if key.startswith("$$") else key


def _noted(raw: Any, *, keyed: bool) -> tuple[Node, _Notes]:
    """Compile and keep what was found."""
    notes = _Notes()
    return _compile(raw, _Scope((), 0, notes), keyed=keyed), notes


def check_pattern(pattern: Any, *, argument: bool = True) -> list[tuple[KeyPath, str]]:
    """List everything that is wrong with a pattern, before anything is matched.

    Parameters
    ----------
    pattern
        The pattern as written.
    argument
        Whether it is the value of an argument or key, where ``$optional`` is allowed.

    Returns
    -------
    list of (key path, message)
        Empty when the pattern can be used. A key path is a tuple such as
        ``("legs", 0, "$gt")``.

    Examples
    --------
    >>> path, message = check_pattern({"url": {"$regx": "/17$"}})[0]
    >>> path, message
    (('url', '$regx'),
     'unknown matcher $regx; did you mean $regex? (a literal key is written $$regx)')
    """
    return _noted(pattern, keyed=argument)[1].problems


def references(pattern: Any) -> list[tuple[KeyPath, str]]:
    """List the calls whose results a pattern needs, with where it says so.

    Examples
    --------
    >>> references({"flight_id": {"$ref": "w.result.flight.id"}})
    [(('flight_id', '$ref'), 'w')]
    """
    return _noted(pattern, keyed=True)[1].refs


def compile_pattern(pattern: Any) -> Pattern:
    """Compile a pattern once, to match it often.

    Raises
    ------
    UsageError
        If anything is wrong with it; :func:`check_pattern` lists the same without raising.
    """
    node, notes = _noted(pattern, keyed=True)
    if notes.problems:
        raise UsageError("\n".join(map(_sentence, notes.problems)))
    return Pattern(node, frozenset(call for _, call in notes.refs))


def check_arguments(patterns: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
    """List what is wrong with patterns by argument name (see :func:`check_pattern`)."""
    return _argument_nodes(patterns)[1].problems


def compile_arguments(patterns: Mapping[str, Any]) -> dict[str, Pattern]:
    """Compile patterns by argument name; ``$$name`` is the argument ``$name``.

    Raises
    ------
    UsageError
        If anything is wrong with one of them, or a name begins with one ``$``.
    """
    nodes, notes = _argument_nodes(patterns)
    if notes.problems:
        raise UsageError("\n".join(map(_sentence, notes.problems)))
    refs: dict[str, set[str]] = {}
    for (argument, *_), call in notes.refs:
        refs.setdefault(_unescaped(str(argument)), set()).add(call)
    return {name: Pattern(node, frozenset(refs.get(name, ()))) for name, node in nodes.items()}


def _argument_nodes(patterns: Mapping[str, Any]) -> tuple[dict[str, Node], _Notes]:
    """Compile the arguments of a call and keep what was found."""
    scope = _Scope((), 0, _Notes())
    for key in filter(_is_matcher, patterns):
        scope.at(key).complain("a matcher cannot stand in place of an argument's name")
    return _items(patterns, scope), scope.notes


def _sentence(problem: tuple[KeyPath, str]) -> str:
    """Write a problem for a person."""
    path, message = problem
    return f"{reduce(join_path, path, '') or 'pattern'}: {message}"


def match(pattern: Any, value: Any, *, refs: Refs | None = None) -> bool:
    """Tell whether a value matches a pattern.

    Parameters
    ----------
    pattern
        A plain value or matchers, as in a suite.
    value
        What was really there.
    refs
        Call id -> ``{"args": ..., "result": ...}`` (or a list of those), for ``$ref``.
        A ``$ref`` to nothing never matches, also inside ``$not``.

    Examples
    --------
    >>> match({"$regex": "/posting/17$"}, "https://jobs.example.test/posting/17")
    True
    >>> match({"$ref": "w.result.id"}, 7, refs={"w": {"result": {"id": 7}}})
    True
    """
    return compile_pattern(pattern).matches(value, refs)


def explain(pattern: Any, value: Any, *, refs: Refs | None = None) -> list[Difference]:
    """List where a value does not match a pattern, expected before actual.

    Examples
    --------
    >>> [str(difference) for difference in explain({"flight_id": "AA123"}, {"flight_id": "AA999"})]
    ["flight_id: expected 'AA123', got 'AA999'"]
    """
    return compile_pattern(pattern).differences(value, refs)


def write_pattern(value: Any) -> Any:
    """Write the pattern that matches exactly this value.

    Only keys that begin with ``$`` look different: they get a second one.

    Examples
    --------
    >>> write_pattern({"$ref": 1, "plain": [2]})
    {'$$ref': 1, 'plain': [2]}
    """
    if is_list(value):
        return [write_pattern(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {_escaped(key): write_pattern(item) for key, item in value.items()}


def _escaped(key: str) -> str:
    """Write a literal key."""
    return f"${key}" if key.startswith("$") else key
