"""Compiled patterns: what a literal, a list and an object match, and how a miss reads.

The matchers with a ``$`` are in :mod:`~evalkit.matching.scalars` and
:mod:`~evalkit.matching.containers`; compiling is in :mod:`~evalkit.matching.compiling`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from evalkit.matching.values import equal, is_list, show

Refs = Mapping[str, Any]
"""Call id -> ``{"args": ..., "result": ...}`` of the call matched to it, or a list of those."""

ABSENT = "nothing"
"""How a reason names what is not there."""

_PLAIN_KEY = re.compile(r"[\w-]+", re.ASCII)


class Unresolved(Exception):
    """A ``$ref`` points at nothing, so what it stands in can be neither true nor false."""


class Difference(NamedTuple):
    """One place where a value is not what a pattern asks for.

    Examples
    --------
    >>> str(Difference("flight_id", "'AA123'", "'AA999'"))
    "flight_id: expected 'AA123', got 'AA999'"
    """

    path: str
    """Where, such as ``flight.legs[0].id``; empty for the value itself."""
    expected: str
    """What would have matched, as text."""
    actual: str
    """What was there, as short text; ``nothing`` for a missing key."""

    def __str__(self) -> str:
        words = f"expected {self.expected}, got {self.actual}"
        return f"{self.path}: {words}" if self.path else words


def join_path(path: str, step: str | int) -> str:
    """Add a key or an index to a path.

    Examples
    --------
    >>> join_path(join_path("a", 0), "b"), join_path("a", "x.y")
    ('a[0].b', "a['x.y']")
    """
    if isinstance(step, int):
        return f"{path}[{step}]"
    if not _PLAIN_KEY.fullmatch(step.lstrip("$")):
        return f"{path}[{show(step)}]"
    return f"{path}.{step}" if path else step


class Node:
    """One compiled part of a pattern."""

    __slots__ = ()

    @property
    def optional(self) -> bool:
        """Whether the key that holds this pattern may be left out."""
        return False

    def matches(self, value: Any, refs: Refs) -> bool:
        """Tell whether a value matches."""
        raise NotImplementedError

    def describe(self) -> str:
        """Say what would match, to follow the word "expected"."""
        raise NotImplementedError

    def differences(self, value: Any, refs: Refs, *, path: str) -> Iterator[Difference]:
        """List where a value does not match; nothing where it does."""
        try:
            matched = self.matches(value, refs)
        except Unresolved as signal:
            yield Difference(path, f"{self.describe()}, but there is no {signal}", show(value))
            return
        if not matched:
            yield Difference(path, self.describe(), show(value))


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A plain scalar, or a value that is compared whole."""

    value: Any

    def matches(self, value: Any, refs: Refs) -> bool:  # noqa: ARG002
        """Compare by JSON's types."""
        return equal(self.value, value)

    def describe(self) -> str:
        """Show the value."""
        return show(self.value)


@dataclass(frozen=True, slots=True)
class Predicate(Node):
    """A matcher that is one test of the value alone."""

    accepts: Callable[[Any], bool]
    words: str

    def matches(self, value: Any, refs: Refs) -> bool:  # noqa: ARG002
        """Run the test."""
        return self.accepts(value)

    def describe(self) -> str:
        """Give the words that the matcher was built with."""
        return self.words


@dataclass(frozen=True, slots=True)
class Array(Node):
    """A list: as many elements, each matching, in order."""

    items: tuple[Node, ...]

    def matches(self, value: Any, refs: Refs) -> bool:
        """Compare element by element."""
        return (
            is_list(value)
            and len(value) == len(self.items)
            and all(map(lambda node, item: node.matches(item, refs), self.items, value))
        )

    def describe(self) -> str:
        """Show the elements."""
        return f"[{listed(self.items)}]"

    def differences(self, value: Any, refs: Refs, *, path: str) -> Iterator[Difference]:
        """List the elements that differ, or the length."""
        if not is_list(value) or len(value) != len(self.items):
            yield Difference(path, self.describe(), show(value))
            return
        for index, (node, item) in enumerate(zip(self.items, value, strict=True)):
            yield from node.differences(item, refs, path=join_path(path, index))


@dataclass(frozen=True, slots=True)
class Object(Node):
    """An object: every listed key matches; keys not listed are refused unless it is open."""

    items: Mapping[str, Node]
    open: bool = False

    def matches(self, value: Any, refs: Refs) -> bool:
        """Compare key by key."""
        if not isinstance(value, Mapping) or not (self.open or value.keys() <= self.items.keys()):
            return False
        return all(
            node.matches(value[key], refs) if key in value else node.optional
            for key, node in self.items.items()
        )

    def describe(self) -> str:
        """Show keys and what they ask for."""
        inner = ", ".join(f"{show(key)}: {node.describe()}" for key, node in self.items.items())
        return f"an object with {{{inner}}}" if self.open else f"{{{inner}}}"

    def differences(self, value: Any, refs: Refs, *, path: str) -> Iterator[Difference]:
        """List the keys that differ, are missing, or should not be there."""
        if not isinstance(value, Mapping):
            yield Difference(path, self.describe(), show(value))
            return
        for key, node in self.items.items():
            place = join_path(path, key)
            if key in value:
                yield from node.differences(value[key], refs, path=place)
            elif not node.optional:
                yield Difference(place, node.describe(), ABSENT)
        for key in () if self.open else value.keys() - self.items.keys():
            yield Difference(join_path(path, str(key)), ABSENT, show(value[key]))


@dataclass(frozen=True, slots=True)
class AllOf(Node):
    """Several matchers in one dict: all must hold."""

    nodes: tuple[Node, ...]

    @property
    def optional(self) -> bool:
        """Optional as soon as one of them says so."""
        return any(node.optional for node in self.nodes)

    def matches(self, value: Any, refs: Refs) -> bool:
        """Ask all."""
        return all(node.matches(value, refs) for node in self.nodes)

    def describe(self) -> str:
        """Join what each asks for."""
        return " and ".join(node.describe() for node in self.nodes)

    def differences(self, value: Any, refs: Refs, *, path: str) -> Iterator[Difference]:
        """List what each of them misses."""
        for node in self.nodes:
            yield from node.differences(value, refs, path=path)


class Scope(Protocol):
    """What a matcher may ask of the compiler while it is built."""

    def sub(self, raw: Any, *, step: str | int | None = None) -> Node:
        """Compile a nested pattern, ``step`` below the matcher."""

    def complain(self, message: str) -> Node:
        """Note a problem at the matcher; the node that comes back matches nothing."""

    def refer(self, call: str) -> None:
        """Note that the pattern needs a value of the call with this id."""


Builder = Callable[[Any, Scope], Node]
"""Makes the node of one matcher from what stands beside its ``$key``."""


def listed(nodes: tuple[Node, ...]) -> str:
    """Describe nodes with commas between."""
    return ", ".join(node.describe() for node in nodes)
