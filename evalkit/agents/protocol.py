"""What is said between evalkit and an agent that is no Python object.

A turn goes out as one JSON object, and one or more come back: lines of standard
input and output for a command, bodies of a POST for a server. Both are read by
the same rules, so that an agent may change from one to the other. How the bytes
travel is :mod:`evalkit.agents.command` and :mod:`evalkit.agents.http`.

What the agent says is data of a stranger: whatever breaks the rules is the
agent's fault and is told in one sentence that quotes it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from evalkit.agents.conversation import BadReplyError
from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.trace import CALL_STATUSES, ToolCall, Trace, Turn

PROTOCOL: Final = 1
"""Version of the protocol; it is named in everything that is sent."""

MAX_MESSAGE_BYTES: Final = 16 * 1024**2
"""What one line, or one body, of an agent may have."""

MAX_TURN_BYTES: Final = 4 * MAX_MESSAGE_BYTES
"""What an agent may write in one turn."""

_EXCERPT: Final = 200
_MAX_ERROR: Final = 10_000
_REPLY_KEYS: Final = ("text", "reply", "replies")
_ERROR_LEVELS: Final = frozenset({"ERROR", "CRITICAL", "FATAL"})
_CALL_KEYS: Final = ("name", "args", "result", "status", "duration_s", "id")

Message = Mapping[str, JSON]


class AgentFault(BadReplyError):
    """An agent broke the protocol, told of an error, or ended.

    Parameters
    ----------
    code
        One of the reason codes that mean ``failed``.
    message
        What happened, with what was received.
    trace
        What the agent had told of the turn before that: tools that ran did run.
    """

    def __init__(self, code: str, message: str, *, trace: Trace | None = None) -> None:
        super().__init__(code, message)
        self.trace = trace


def turn_message(text: str, *, turn: int, conversation_id: str) -> dict[str, JSON]:
    """Make what is said to the agent when the user says something.

    Parameters
    ----------
    text
        What the user says.
    turn
        Which turn it is, from 1.
    conversation_id
        The same for all turns of a trial.
    """
    return {"text": text, "turn": turn, "conversation_id": conversation_id}


def decode_object(data: bytes, *, where: str) -> dict[str, JSON]:
    """Read one JSON object.

    Parameters
    ----------
    data
        UTF-8, with or without a byte order mark.
    where
        What the data are, for the message.

    Raises
    ------
    AgentFault
        If it is no JSON object.

    Examples
    --------
    >>> decode_object(b'{"text": "Booked."}', where="line 1")
    {'text': 'Booked.'}
    """
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    raise AgentFault("bad_reply", f"{where} is no JSON object: {excerpt(data)}")


def excerpt(data: bytes | str) -> str:
    """Quote the beginning of something, on one line."""
    if isinstance(data, str):
        data = data.encode("utf-8", "backslashreplace")
    if len(data) <= _EXCERPT:
        return repr(data.decode("utf-8", "backslashreplace"))
    shown = data[:_EXCERPT].decode("utf-8", "backslashreplace")
    return f"{shown!r} ... ({len(data):,} bytes)"


class Observations:
    """What an agent has told of one turn so far."""

    def __init__(self, user: str) -> None:
        self.observes_tools = False
        """Whether the agent reports its tool calls, as far as this turn shows."""
        self._user = user
        self._replies: list[str] = []
        self._calls: list[ToolCall] = []
        self._logs: list[str] = []
        self._errors: list[str] = []

    @property
    def has_replied(self) -> bool:
        """Whether there is a reply."""
        return bool(self._replies)

    def add_reply(self, message: Message, *, where: str) -> None:
        """Take in a reply (or several), with the tool calls that it may list.

        Raises
        ------
        AgentFault
            If it is no reply.
        """
        calls = message.get("tool_calls")
        if calls is not None:
            self._add_calls(calls, where)
        self._replies += _texts(message, where)

    def _add_calls(self, calls: JSON, where: str) -> None:
        if not isinstance(calls, list):
            raise AgentFault("bad_reply", f"{where}: `tool_calls` must be a list")
        self.observes_tools = True
        for number, call in enumerate(calls, start=1):
            self.add_call(call, where=f"tool call {number} of {where}")

    def add_call(self, message: JSON, *, where: str) -> None:
        """Take in a tool call that really ran.

        Raises
        ------
        AgentFault
            If it is none.
        """
        self._calls.append(_tool_call(message, where))
        self.observes_tools = True

    def add_log(self, message: Message) -> None:
        """Take in a line for the log, whatever it looks like."""
        text = log_text(message)
        self._logs.append(text)
        if str(message.get("level", "")).upper() in _ERROR_LEVELS:
            self._errors.append(text)

    def check(self) -> None:
        """Refuse a turn that is over and in which the agent did nothing.

        Raises
        ------
        AgentFault
            If there is neither a reply nor a tool call.
        """
        if not (self._replies or self._calls):
            fault = AgentFault("no_reply", "the agent answered with an empty list of replies")
            fault.is_silence = True
            raise fault

    def trace(self, *, observes_tools: bool) -> Trace:
        """Give the trace of the turn.

        Parameters
        ----------
        observes_tools
            Whether the agent has said that it reports its tool calls; where
            it never did, nobody knows whether there were any.
        """
        return Trace(
            turns=(Turn(self._user, tuple(self._replies)),),
            tool_calls=tuple(self._calls),
            logs=tuple(self._logs),
            errors=tuple(self._errors),
            tools_observed=observes_tools or self.observes_tools,
        )


def is_reply(message: Message) -> bool:
    """Say whether something without a ``type`` can be a reply."""
    return any(key in message for key in _REPLY_KEYS)


def _texts(message: Message, where: str) -> list[str]:
    """Give the texts of a reply, however it is written."""
    given = [key for key in _REPLY_KEYS if key in message]
    if len(given) != 1:
        what = "has " + " and ".join(f"`{key}`" for key in given) if given else "has no reply"
        raise AgentFault(
            "bad_reply" if given else "no_reply",
            f'{where} {what}; write one of {{"text": "..."}}, {{"reply": "..."}} and '
            f'{{"replies": ["...", ...]}}: {_shown(message)}',
        )
    value = message[given[0]]
    texts = value if given == ["replies"] else [value]
    if not isinstance(texts, list):
        _raise_no_text(value, given[0], where)
    for text in texts:
        if not isinstance(text, str):
            _raise_no_text(text, given[0], where)
    return texts


def _raise_no_text(value: JSON, key: str, where: str) -> NoReturn:
    code = "no_reply" if value is None else "bad_reply"
    wanted = "a list of texts" if key == "replies" else "text"
    raise AgentFault(code, f"{where}: `{key}` must be {wanted}, not {_shown(value)}")


def _shown(value: JSON) -> str:
    return excerpt(json.dumps(value, ensure_ascii=False))


def error_text(message: Message) -> str:
    """Give what an agent says of its own failure."""
    for key in ("message", "error", "text"):
        if isinstance(text := message.get(key), str):
            return f"the agent reported an error: {text[:_MAX_ERROR]}"
    return f"the agent reported an error: {_shown(dict(message))}"


def log_text(message: Message) -> str:
    """Give a line of the log; its level, if there is one, stands before it."""
    text = message.get("text")
    shown = text if isinstance(text, str) else json.dumps(dict(message), ensure_ascii=False)
    level = message.get("level")
    return f"{level}: {shown}" if isinstance(level, str) and level else shown


def _tool_call(message: JSON, where: str) -> ToolCall:
    if not isinstance(message, dict):
        raise AgentFault("bad_reply", f"{where} must be an object, not {_shown(message)}")
    refuse_unknown(message, (*_CALL_KEYS, "type"), where=where)
    name, status = message.get("name"), message.get("status", "ok")
    if not isinstance(name, str) or not name:
        raise AgentFault("bad_reply", f"{where} needs a `name`: {_shown(message)}")
    if status not in CALL_STATUSES:
        known = ", ".join(CALL_STATUSES)
        raise AgentFault("bad_reply", f"{where}: status {_shown(status)} is none of {known}")
    args, raw_args = _arguments(message.get("args"), where)
    try:
        return ToolCall(
            name,
            args,
            "error" if args is None else status,
            message.get("result"),
            raw_args=raw_args,
            duration_s=message.get("duration_s"),
            id=str(message.get("id") or ""),
        )
    except TraceError as error:
        raise AgentFault("bad_reply", f"{where}: {error}") from error


def _arguments(value: JSON, where: str) -> tuple[dict[str, JSON] | None, str | None]:
    """Give arguments as an object, or the text that is none.

    Text is what a model wrote, as the chat formats carry it.
    """
    match value:
        case None:
            return {}, None
        case dict():
            return value, None
        case str():
            try:
                return decode_object(value.encode("utf-8", "surrogatepass"), where=where), None
            except AgentFault:
                return None, value
    raise AgentFault("bad_reply", f"{where}: `args` must map names to values: {_shown(value)}")


def refuse_unknown(message: Message, known: Iterable[str], *, where: str) -> None:
    """Refuse a key that would be passed over in silence, and name the nearest one.

    Raises
    ------
    AgentFault
        If there is one.
    """
    names = list(known)
    for key in message:
        if key not in names:
            raise AgentFault("bad_reply", f"{where} has an unknown `{key}`; {nearest(key, names)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest a known word for an unknown one."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"known: {', '.join(names)}"
