"""An order of events that does not depend on what came first by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from evalkit.ledger import JSON, Event, encode

ABSENT: Final = object()
"""Stands for a value that is not there."""


def canonical(events: Iterable[Event]) -> tuple[Event, ...]:
    """Bring a ledger into an order that does not depend on what came first by chance.

    Within a turn the events of one span stand together; spans stand in the order of
    what they hold, shorter prompts first, and tool calls behind the answer that
    asked for them. Then numbers and ids are given anew, by first appearance. What
    an agent says, and what stands in arguments and results, is never touched.

    Examples
    --------
    >>> a, b = ({"call": n, "turn": 0, "name": "t", "args": {"n": n}} for n in (0, 1))
    >>> one = [Event(1, "tool_call", a, "x"), Event(2, "tool_call", b, "y")]
    >>> other = [
    ...     Event(1, "tool_call", {**b, "call": 0}, "p"),
    ...     Event(2, "tool_call", {**a, "call": 1}, "q"),
    ... ]
    >>> canonical(one) == canonical(other)
    True
    """
    ordered: list[Event] = []
    section: list[Event] = []
    for event in events:
        if event.kind in _BARRIERS:
            ordered += _ordered(section)
            ordered.append(event)
            section = []
        else:
            section.append(event)
    ordered += _ordered(section)
    return _Renumbering(ordered).events()


_BARRIERS: Final = frozenset({"trial_start", "turn", "trial_end"})
_SEQUENTIAL: Final = frozenset({"state", "reply", "database"})
"""Kinds without a span whose order means something."""

_MODEL_KINDS: Final = frozenset({"model_call", "model_reply"})
_TOOL_KINDS: Final = frozenset({"tool_call", "tool_result"})


class _Group(NamedTuple):
    """The events of one span, in their order."""

    key: tuple[Any, ...]
    events: tuple[Event, ...]


def _ordered(section: Sequence[Event]) -> list[Event]:
    """Order the events between two barriers."""
    spans: dict[Any, list[Event]] = {}
    for number, event in enumerate(section):
        spans.setdefault(_span_key(event, number), []).append(event)
    groups = list(spans.values())
    askers = {_number(g[0], "call"): g for g in groups if g[0].kind == "model_call"}
    askers.pop(ABSENT, None)
    asked: dict[int, list[list[Event]]] = {}
    roots = []
    for group in groups:
        asker = askers.get(_asked_by(group))
        if asker is None:
            roots.append(group)
        else:
            asked.setdefault(id(asker), []).append(group)
    families = [_family(group, asked.get(id(group), [])) for group in roots]
    return [event for family in sorted(families, key=_by_key) for event in family.events]


def _by_key(group: _Group) -> tuple[Any, ...]:
    return group.key


def _span_key(event: Event, number: int) -> Any:
    """Say what an event stands together with: its span, its call, its like, or nothing."""
    for kinds, name in ((_MODEL_KINDS, "model"), (_TOOL_KINDS, "tool")):
        if event.kind in kinds and not event.span:
            return name, _number(event, "call")
    if event.span:
        return "span", event.span
    return ("kind", event.kind) if event.kind in _SEQUENTIAL else ("alone", number)


def _asked_by(group: Sequence[Event]) -> object:
    return _number(group[0], "asked_by") if group[0].kind == "tool_call" else ABSENT


def _number(event: Event, key: str) -> object:
    """Give a number or id that an event holds; what is neither is absent."""
    value = event.data.get(key)
    return value if _is_name(value) else ABSENT


def _is_name(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and value != ""


def _family(group: Sequence[Event], tools: Sequence[Sequence[Event]]) -> _Group:
    """Put a model call together with the tool calls that it asked for, in the order asked."""
    events = (*group, *(event for tool in tools for event in tool))
    bare = [encode([event.kind, _bare(event)]) for event in events]
    return _Group((_RANKS.get(group[0].kind, 1), len(bare[0]), *bare), events)


_RANKS: Final[Mapping[str, int]] = {"state": 0, "reply": 2, "database": 3}


def _bare(event: Event) -> JSON:
    """Give what an event holds without its numbers and ids."""
    return _renamed(event, lambda _kind, _name: "")


_Rename = Callable[[str, Any], JSON]


def _renamed(event: Event, rename: _Rename) -> dict[str, JSON]:
    """Rename every number and id in what an event holds."""
    data = dict(event.data)
    for key, space in _IDS.get(event.kind, {}).items():
        if _is_name(data.get(key)):
            # Calls seen at the tool are counted apart from those seen on the wire.
            place = str(data.get("at", "")) if key == "call" else ""
            data[key] = rename(space + place, data[key])
    for key in _WIRE.get(event.kind, ()):
        if key in data:
            data[key] = _renamed_wire(data[key], rename)
    return data


_IDS: Final[Mapping[str, Mapping[str, str]]] = {
    "model_call": {"call": "model"},
    "model_reply": {"call": "model"},
    "fault": {"call": "model"},
    "tool_call": {"call": "tool", "asked_by": "model", "id": "id"},
    "tool_result": {"call": "tool"},
    "reply": {"said_by": "model"},
    "span": {"parent_id": "span"},
}
"""Keys of an event that hold a number or id, and of what."""
_WIRE: Final[Mapping[str, tuple[str, ...]]] = {"model_call": ("prompt",), "model_reply": ("reply",)}
_WIRE_IDS: Final = frozenset({
    "id", "tool_call_id", "tool_use_id", "call_id", "item_id", "previous_response_id",
})  # fmt: skip
"""Where the wire formats keep the ids that providers and runtimes make up."""

_NOT_WIRE: Final = frozenset({"tools", "arguments", "args", "json", "metadata"})
"""What comes from the agent or its user, in which an ``id`` means something."""


def _renamed_wire(value: JSON, rename: _Rename) -> JSON:
    if isinstance(value, list | tuple):
        return [_renamed_wire(item, rename) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _renamed_part(key, part, value, rename=rename) for key, part in value.items()}


def _renamed_part(key: str, part: JSON, holder: Mapping[str, JSON], *, rename: _Rename) -> JSON:
    if key in _WIRE_IDS and isinstance(part, str):
        return rename("id", part)
    if key in _NOT_WIRE or (key == "input" and holder.get("type") == "tool_use"):
        return part
    return _renamed_wire(part, rename)


class _Renumbering:
    """Gives numbers and ids anew, by first appearance."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._names: dict[str, dict[Any, JSON]] = {}

    def events(self) -> tuple[Event, ...]:
        """Give the events renumbered."""
        return tuple(self._event(seq, event) for seq, event in enumerate(self._events, start=1))

    def _event(self, seq: int, event: Event) -> Event:
        span, parent = (
            self._name("span", one) if one else "" for one in (event.span, event.parent)
        )
        data = _renamed(event, self._name)
        return event._replace(seq=seq, data=data, span=span, parent=parent)

    def _name(self, space: str, old: Any) -> JSON:
        names = self._names.setdefault(space, {})
        if old not in names:
            n = len(names)
            names[old] = n if isinstance(old, int) else f"{space}-{n + 1}"
        return names[old]
