"""Tool calls as they cross the wire: asked for in an answer, returned in a later request.

Every request carries the whole history again, ids are not unique everywhere, and
some clients make up their own. So a result is paired **by position**: the uses in
a request that bear one id are, from the last backwards, the calls asked for under
that id; where the id is nobody's, the tool's name and arguments stand in for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from evalkit.gateway.canonical import Asked, Returned, ToolUse
from evalkit.gateway.witness import Witness
from evalkit.ledger import JSON, Event, encode
from evalkit.serving.jsontext import to_text


class _Call:
    """A tool call that an answer has asked for."""

    def __init__(self, number: int, use: ToolUse, *, turn: int, asked_by: int) -> None:
        self.number = number
        self.use = use
        self.turn = turn
        self.asked_by = asked_by
        self.is_told = False
        self.is_open = True


class _Use(NamedTuple):
    """A tool use in a request's history, with its result if there is one."""

    key: Hashable
    result: Returned | None


class ToolWatch:
    """Follows the tool calls of one trial."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._calls: dict[int, _Call] = {}
        self._by_key: dict[Hashable, list[_Call]] = {}
        self._next = 0
        self._n_open = 0

    def asked(
        self, uses: Iterable[ToolUse], *, turn: int, asked_by: int, tell: bool = True
    ) -> None:
        """Note what an answer asks for; half an answer is told only once somebody acts on it."""
        for use in uses:
            call = _Call(self._next, use, turn=turn, asked_by=asked_by)
            self._add(call)
            if tell:
                self._tell(call)

    def returned(self, history: Iterable[Asked | Returned]) -> None:
        """Note the results that a request brings for the first time."""
        if not self._n_open:
            return
        found = {call.number: result for call, result in self._matched(history)}
        for number in sorted(found):
            self._close(self._calls[number], found[number])

    def _matched(self, history: Iterable[Asked | Returned]) -> Iterator[tuple[_Call, Returned]]:
        """Give the open calls that have a result in a history."""
        for key, results in self._by_position(history).items():
            calls = self._by_key.get(key, [])
            # The oldest may be cut off from a request, so the newest decide.
            for result, call in zip(reversed(results), reversed(calls), strict=False):
                if result is not None and call.is_open:
                    yield call, result

    def restore(self, events: Iterable[Event]) -> None:
        """Know again what a ledger says was asked for and returned."""
        for event in events:
            if event.data.get("at", "wire") != "wire":
                continue  # seen at the tool itself, where calls have numbers of their own
            if event.kind == "tool_call":
                self._add_told(event)
            elif event.kind == "tool_result":
                self._calls[event.data["call"]].is_open = False
                self._n_open -= 1

    def _add(self, call: _Call) -> None:
        self._calls[call.number] = call
        self._next = max(self._next, call.number + 1)
        self._n_open += 1
        for key in (call.use.id, _named(call.use.name, call.use.args)):
            self._by_key.setdefault(key, []).append(call)

    def _add_told(self, event: Event) -> None:
        data = event.data
        raw, args = data.get("raw_args"), data["args"] or {}
        is_cut = data["args"] is None
        use = ToolUse(data["name"], args, raw or to_text(args), data.get("id", ""), is_cut)
        call = _Call(data["call"], use, turn=data["turn"], asked_by=data.get("asked_by", 0))
        call.is_told = True
        self._add(call)

    def _tell(self, call: _Call) -> None:
        call.is_told = True
        self._witness.tool_call(call.number, call.use, turn=call.turn, asked_by=call.asked_by)

    def _close(self, call: _Call, result: Returned) -> None:
        if not call.is_told:
            self._tell(call)
        call.is_open = False
        self._n_open -= 1
        # Whatever came back: a call with broken arguments has failed.
        status = "error" if call.use.is_cut else result.status
        self._witness.tool_result(call.number, status=status, result=result.content)

    def _by_position(
        self, history: Iterable[Asked | Returned]
    ) -> dict[Hashable, list[Returned | None]]:
        by_key: dict[Hashable, list[Returned | None]] = {}
        for use in self._paired(list(history)):
            by_key.setdefault(use.key, []).append(use.result)
        return by_key

    def _paired(self, history: list[Asked | Returned]) -> Iterator[_Use]:
        """Pair the uses in a history with the results that follow them."""
        waiting = [part for part in history if isinstance(part, Returned)]
        for part in history:
            if isinstance(part, Asked):
                result = next((one for one in waiting if one.id == part.id), None)
                if result is not None:
                    waiting.remove(result)
                yield _Use(self._key(part), result)
        for result in waiting:
            # The provider keeps the history: the request brings nothing but results.
            yield _Use(result.id, result)

    def _key(self, part: Asked) -> Hashable:
        return part.id if part.id in self._by_key else _named(part.name, part.args)


def _named(name: str, args: JSON) -> Hashable:
    return name, encode(args)
