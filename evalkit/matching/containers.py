"""Matchers that hold other patterns: choices, negation, contents of lists and objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalkit.matching.bipartite import Graph, cover_rows
from evalkit.matching.nodes import (
    AllOf,
    Builder,
    Difference,
    Literal,
    Node,
    Object,
    Predicate,
    Refs,
    Scope,
    Unresolved,
    listed,
)
from evalkit.matching.values import is_list, show


def _any(raw: Any, scope: Scope) -> Node:
    """``$any: true``: whatever is there, null too, but something must be."""
    if raw is not True:
        return scope.complain("takes true; for one of several values write $one_of")
    return Predicate(lambda _value: True, "anything")


def _one_of(raw: Any, scope: Scope) -> Node:
    """``$one_of: [a, b]``: at least one of the patterns matches."""
    nodes = _nodes(raw, scope)
    return OneOf(nodes) if nodes else scope.complain("takes a list of at least one pattern")


def _not(raw: Any, scope: Scope) -> Node:
    """``$not: a``: present, and the pattern does not match."""
    return Not(scope.sub(raw))


def _optional(raw: Any, scope: Scope) -> Node:
    """Build ``$optional: a``: may be left out; what is there must match."""
    return MayBeLeftOut(scope.sub(raw))


def _contains(raw: Any, scope: Scope) -> Node:
    """Build ``$contains: a``: inside a text, list or object; a list of things asks for all."""
    if raw in ("", []):
        return scope.complain("needs something to look for")
    if isinstance(raw, list):
        return AllOf(tuple(_holding(part, scope, step=at) for at, part in enumerate(raw)))
    return _holding(raw, scope)


def _holding(raw: Any, scope: Scope, *, step: int | None = None) -> Node:
    """Build the test for one thing that must be inside."""
    element = scope.sub(raw, step=step)
    items = Object(element.items, open=True) if isinstance(element, Object) else None
    return Contains(element, items, raw if isinstance(raw, str) else None)


def _set(raw: Any, scope: Scope) -> Node:
    """``$set: [a, b]``: the same elements, order and repeats apart."""
    if not isinstance(raw, list):
        return scope.complain(f"takes a list, not {show(raw)}")
    return SameSet(_nodes(raw, scope))


def _multiset(raw: Any, scope: Scope) -> Node:
    """``$multiset: [a, a, b]``: the same elements as often, order apart."""
    if not isinstance(raw, list):
        return scope.complain(f"takes a list, not {show(raw)}")
    return SameMultiset(_nodes(raw, scope))


def _nodes(raw: Any, scope: Scope) -> tuple[Node, ...]:
    """Compile the patterns of a list; nothing where it is no list."""
    parts = raw if isinstance(raw, list) else []
    return tuple(scope.sub(part, step=index) for index, part in enumerate(parts))


@dataclass(frozen=True, slots=True)
class OneOf(Node):
    """At least one pattern matches."""

    nodes: tuple[Node, ...]

    def matches(self, value: Any, refs: Refs) -> bool:
        """Ask until one says yes; a ``$ref`` to nothing matters only if none does."""
        unresolved: Unresolved | None = None
        for node in self.nodes:
            try:
                if node.matches(value, refs):
                    return True
            except Unresolved as signal:
                unresolved = signal
        if unresolved is not None:
            raise unresolved
        return False

    def describe(self) -> str:
        """List the choices."""
        return f"one of {listed(self.nodes)}" if len(self.nodes) > 1 else listed(self.nodes)


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The pattern does not match."""

    node: Node

    def matches(self, value: Any, refs: Refs) -> bool:
        """Turn the answer round."""
        return not self.node.matches(value, refs)

    def describe(self) -> str:
        """Say what is refused."""
        return f"anything but {self.node.describe()}"


@dataclass(frozen=True, slots=True)
class MayBeLeftOut(Node):
    """A pattern whose key may be absent."""

    node: Node

    @property
    def optional(self) -> bool:
        """Yes."""
        return True

    def matches(self, value: Any, refs: Refs) -> bool:
        """Match what is there."""
        return self.node.matches(value, refs)

    def describe(self) -> str:
        """Say that nothing is fine too."""
        return f"{self.node.describe()} or nothing"

    def differences(self, value: Any, refs: Refs, *, path: str) -> Iterator[Difference]:
        """Say where what is there differs."""
        return self.node.differences(value, refs, path=path)


@dataclass(frozen=True, slots=True)
class Contains(Node):
    """Something is inside a text, a list or an object."""

    element: Node
    items: Object | None
    text: str | None

    def matches(self, value: Any, refs: Refs) -> bool:
        """Look inside, by the type of the value."""
        if isinstance(value, str):
            return self.text is not None and self.text in value
        if isinstance(value, Mapping):
            return self.items is not None and self.items.matches(value, refs)
        return is_list(value) and any(self.element.matches(item, refs) for item in value)

    def describe(self) -> str:
        """Say what must be inside."""
        return f"something that contains {self.element.describe()}"


@dataclass(frozen=True, slots=True)
class SameSet(Node):
    """Every pattern has an element and every element a pattern."""

    nodes: tuple[Node, ...]

    def matches(self, value: Any, refs: Refs) -> bool:
        """Look in both directions."""
        return (
            is_list(value)
            and all(any(node.matches(item, refs) for item in value) for node in self.nodes)
            and all(any(node.matches(item, refs) for node in self.nodes) for item in value)
        )

    def describe(self) -> str:
        """List the elements."""
        return f"the set of {listed(self.nodes)}"


@dataclass(frozen=True, slots=True)
class SameMultiset(Node):
    """A perfect assignment of patterns to elements exists."""

    nodes: tuple[Node, ...]

    def matches(self, value: Any, refs: Refs) -> bool:
        """Assign, since an element may match several patterns."""
        if not is_list(value) or len(value) != len(self.nodes):
            return False
        hits = [
            sum(1 << at for at, item in enumerate(value) if node.matches(item, refs))
            for node in self.nodes
        ]
        return len(cover_rows(Graph(hits, n_columns=len(value)))) == len(self.nodes)

    def describe(self) -> str:
        """List the elements."""
        return f"in any order {listed(self.nodes)}"


NOTHING = Literal(None)
"""Stands where a matcher was wrong, in patterns that are never used."""

BUILDERS: Mapping[str, Builder] = {
    "$any": _any,
    "$contains": _contains,
    "$multiset": _multiset,
    "$not": _not,
    "$one_of": _one_of,
    "$optional": _optional,
    "$set": _set,
}
"""Matchers of this module by key."""
