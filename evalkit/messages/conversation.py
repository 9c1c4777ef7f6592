"""The one place where chat messages become a trace: turns, pairing, parts, arguments.

The modules beside this one know how one vendor writes its messages down. They
tell a :class:`Conversation` what happened, message by message, and take the
trace from it.

Calls and results are paired **by position**: a result belongs to the earliest
call before it that carries its id and has no result yet, a call of the same turn
first. Ids are not unique in real traces, so there is no table of ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.trace import CallStatus, ModelCall, ToolCall, Trace, Turn


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gave back, as a message holds it."""

    content: JSON
    id: str = ""
    """Id of the call; empty where the vendor gives none."""
    name: str = ""
    """Name of the tool, used only where there is no id."""
    status: CallStatus = "ok"


@dataclass(slots=True)
class Conversation:
    """A conversation being read; :meth:`trace` gives what it came to.

    Examples
    --------
    >>> talk = Conversation()
    >>> talk.user("Book AA123.")
    >>> talk.call(ToolCall("book", {"flight_id": "AA123"}, id="c1"))
    >>> talk.result(Result("done", id="c1"), where="messages[2]")
    >>> talk.reply("Booked.")
    >>> talk.trace().tool_calls[0].result
    'done'
    """

    _turns: list[Turn] = field(default_factory=list)
    _calls: list[ToolCall] = field(default_factory=list)
    _answered: list[bool] = field(default_factory=list)
    _model_calls: list[ModelCall] = field(default_factory=list)
    _n_answers: int = 0
    _answers_next: bool = True
    """Whether what the model says next belongs to an answer of its own."""
    _system: list[str] = field(default_factory=list)

    @property
    def turn(self) -> int:
        """0-based index of the turn that is going on."""
        return max(len(self._turns) - 1, 0)

    @property
    def n_calls(self) -> int:
        """How many tool calls were seen so far."""
        return len(self._calls)

    def system(self, text: str) -> None:
        """Keep an instruction to the model as metadata."""
        self._system.append(text)

    def user(self, text: str) -> None:
        """Begin a turn."""
        self._turns.append(Turn(text))
        self._answers_next = True

    def answer(self) -> None:
        """Begin a message of the model; one begins by itself after a user and a result.

        What is said and called in one message belongs together.
        """
        self._answers_next = True

    def reply(self, text: str) -> None:
        """Add something the agent said; nothing if it is empty."""
        if text:
            last = self._turns.pop() if self._turns else Turn()
            said_by = (*last.said_by, self._answer_number())
            self._turns.append(replace(last, replies=(*last.replies, text), said_by=said_by))

    def call(self, call: ToolCall, *, answered: bool = False) -> None:
        """Add a tool call; until a result comes its status is ``unknown``.

        A call with malformed arguments stays ``error``, whatever comes back.
        """
        status = "error" if call.args is None else call.status if answered else "unknown"
        asked_by = self._answer_number()
        self._calls.append(replace(call, status=status, turn=self.turn, asked_by=asked_by))
        self._answered.append(answered)

    def result(self, result: Result, *, where: str) -> None:
        """Give a result to the call that it belongs to.

        Raises
        ------
        TraceError
            If no call before it waits for such a result.
        """
        waiting = self._waiting_for(result)
        if not waiting:
            self._refuse_orphan(result, where)
        index = next((i for i in waiting if self._calls[i].turn == self.turn), waiting[0])
        self._answers_next = True
        call = self._calls[index]
        status = call.status if call.args is None else result.status
        self._calls[index] = replace(call, status=status, result=result.content)
        self._answered[index] = True

    def model_call(self, call: ModelCall) -> None:
        """Add a request to a model, in the turn that is going on."""
        self._model_calls.append(replace(call, turn=self.turn))

    def trace(
        self,
        *,
        models_observed: bool = False,
        tools_observed: bool = True,
        metadata: Mapping[str, JSON] | None = None,
    ) -> Trace:
        """Give the trace of everything seen so far."""
        system = {"system": "\n\n".join(self._system)} if self._system else {}
        return Trace(
            turns=tuple(self._turns),
            tool_calls=tuple(self._calls),
            model_calls=tuple(self._model_calls),
            tools_observed=tools_observed,
            models_observed=models_observed,
            metadata=system | dict(metadata or {}),
        )

    def _answer_number(self) -> int:
        """Give the number, from 0, of the model's message that is being read."""
        self._n_answers += self._answers_next
        self._answers_next = False
        return self._n_answers - 1

    def _waiting_for(self, result: Result) -> list[int]:
        return [
            index
            for index, call in enumerate(self._calls)
            if not self._answered[index] and _belongs(result, call)
        ]

    def _refuse_orphan(self, result: Result, where: str) -> NoReturn:
        known = any(_belongs(result, call) for call in self._calls)
        label = f"id {result.id!r}" if result.id else f"name {result.name!r}"
        problem = "has its result already" if known else "does not come before it"
        raise TraceError(
            f"{where}: a tool result, but the call with {label} {problem}; "
            "give the whole conversation, in its order"
        )


def _belongs(result: Result, call: ToolCall) -> bool:
    if result.id:
        return call.id == result.id
    return not result.name or call.name == result.name


def read_arguments(raw: object) -> tuple[Mapping[str, JSON] | None, str | None]:
    """Read the arguments of a call: a JSON object, or the text of one.

    Returns
    -------
    tuple
        The arguments and ``None``; or ``None`` and the raw text where that is
        no JSON object. Integers of any size stay exact.

    Examples
    --------
    >>> read_arguments('{"city": "Denver"}')
    ({'city': 'Denver'}, None)
    >>> read_arguments('{"city": "Den')
    (None, '{"city": "Den')
    >>> read_arguments("[1]")
    (None, '[1]')
    """
    if isinstance(raw, Mapping):
        return dict(raw), None
    if not isinstance(raw, str):
        return None, json.dumps(raw)
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None, raw
    return (value, None) if isinstance(value, dict) else (None, raw)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def tool_call(name: object, arguments: object, *, id: object = "", where: str) -> ToolCall:  # noqa: A002
    """Build the record of a call from the words that every vendor has for it.

    Raises
    ------
    TraceError
        If the call has no name.
    """
    if not isinstance(name, str) or not name:
        raise TraceError(f"{where}: a tool call without a name ({name!r}); it must be a string")
    args, raw = read_arguments(arguments)
    return ToolCall(name, args, raw_args=raw, id="" if id is None else str(id))


def as_mapping(message: object, *, where: str) -> Mapping[str, Any]:
    """Give a message as a mapping; objects of an SDK are dumped.

    Raises
    ------
    TraceError
        If it is neither.
    """
    dump = getattr(message, "model_dump", None)
    value = dump() if callable(dump) else message
    if isinstance(value, Mapping):
        return value
    raise TraceError(
        f"{where}: {_shown(message)} is no message; a message is an object with a role or type"
    )


def part_of(data: Mapping[str, Any], key: str, *, where: str) -> Mapping[str, Any]:
    """Give the object under a key; an empty one if there is none.

    Raises
    ------
    TraceError
        If something else stands there.
    """
    value = data.get(key)
    return {} if value is None else as_mapping(value, where=f"{where}.{key}")


def list_of(data: Mapping[str, Any], key: str, *, where: str) -> Sequence[Any]:
    """Give the list under a key; an empty one if there is none.

    Raises
    ------
    TraceError
        If something else stands there.
    """
    value = data.get(key)
    if value is None or isinstance(value, list | tuple):
        return value or ()
    raise TraceError(f"{where}: {key} must be a list, not {type(value).__name__}")


def word_of(data: Mapping[str, Any], key: str) -> str:
    """Give the word under a key; empty if there is none."""
    value = data.get(key)
    return "" if value is None else str(value)


def as_messages(messages: object) -> Sequence[object]:
    """Give the list of messages, also out of ``{"messages": [...]}``.

    Raises
    ------
    TraceError
        If there is no list.
    """
    inner = messages.get("messages") if isinstance(messages, Mapping) else messages
    if isinstance(inner, Iterable) and not isinstance(inner, str | bytes | Mapping):
        return list(inner)
    raise TraceError(f"{_shown(messages)} is no list of messages, and holds none under 'messages'")


def prompt_of(request: Mapping[str, Any], messages: Sequence[object]) -> dict[str, JSON]:
    """Give all that a request showed the model: system prompt and tools, not only messages."""
    told = {key: value for key, value in request.items() if key not in ("model", "stream")}
    return {**told, "messages": list(messages)}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST: Final = 80


def first_of(data: Mapping[str, Any], *names: str) -> Any:
    """Give the first value that is there and not null."""
    return next((data[name] for name in names if data.get(name) is not None), None)


def whole_number(value: object) -> int | None:
    """Give a count of tokens as an integer; ``None`` where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_of_parts(
    content: object, *, text_types: Iterable[str], where: str, separator: str = "\n"
) -> str:
    """Join the text of message content: nothing, a string, or a list of parts.

    Parts that are no text (an image, a file) appear as ``[type]``, so that the
    reader knows that there was something.

    Raises
    ------
    TraceError
        If the content, or one part, is of another kind.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise TraceError(f"{where}: content {_shown(content)} is neither text nor a list of parts")
    wanted = frozenset(text_types)
    parts = (_text_of_part(part, wanted, where) for part in content)
    return separator.join(parts)


def _text_of_part(part: object, text_types: frozenset[str], where: str) -> str:
    if isinstance(part, str):
        return part
    data = as_mapping(part, where=f"{where}: content part")
    kind = word_of(data, "type")
    if kind in text_types or (not kind and "text" in data):
        text = first_of(data, "text", kind)
        return "" if text is None else str(text)
    return f"[{kind}]"
