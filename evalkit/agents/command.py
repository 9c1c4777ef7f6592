"""An agent as a command that speaks one JSON object a line.

A turn is one line to its standard input, ``{"protocol": 1, "type": "turn",
"text": "...", "turn": 1, "conversation_id": "..."}``; the answer is one line of
its standard output, ``{"type": "reply", "text": "..."}``. Lines that it may write
before that, and all that it may leave out, are in GUIDE.md, "Agents in any
language". Standard error is its log. It ends when its input ends.
"""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from evalkit.agents.continuing import Talk, next_talk
from evalkit.agents.hosting import Killable
from evalkit.agents.lines import Lines
from evalkit.agents.program import Program, RunningProgram, log_line
from evalkit.agents.protocol import (
    MAX_TURN_BYTES,
    PROTOCOL,
    AgentFault,
    Message,
    Observations,
    decode_object,
    error_text,
    excerpt,
    is_reply,
    log_text,
    nearest,
    refuse_unknown,
    turn_message,
)
from evalkit.agents.reference import AgentRef
from evalkit.ledger import JSON
from evalkit.trace import Trace

_EXIT_GRACE_S: Final = 2.0
"""Seconds that the program has to end after its input has ended."""

_TERM_GRACE_S: Final = 0.5
_TYPES: Final = ("reply", "tool_call", "log", "error", "hello", "state")


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """An agent that is a command, as it travels to the process of a trial.

    It is a zero-argument factory of a conversation, so it can stand wherever an
    agent can.

    Examples
    --------
    >>> agent = CommandAgent(("sed", "-u", 's/.*/{"text": "Hello."}/'), "/")
    >>> with agent() as conversation:
    ...     conversation.reply("Hi").reply
    'Hello.'
    """

    command: tuple[str, ...]
    folder: str
    """Of the suite, as a whole path: files that the command names lie there."""

    @property
    def description(self) -> str:
        """What a manifest calls it."""
        return f"command: {Program(self.command, self.folder)}"

    def refer(self) -> AgentRef:
        """Make the reference that a worker is sent.

        Raises
        ------
        AgentError
            If there is no such program.
        """
        program = Program(self.command, self.folder)
        executable = program.words()[0]
        return AgentRef(
            self.description,
            (),
            pickle.dumps(self),
            program.code_hash(),
            is_program=True,
            executable=executable,
        )

    def open(self, talk: Talk | str) -> CommandConversation:
        """Start the command for one trial.

        Parameters
        ----------
        talk
            What the conversation is known by, or its id.

        Raises
        ------
        AgentError
            If it cannot be started.
        """
        program = RunningProgram(Program(self.command, self.folder), speaks=True)
        return CommandConversation(program, talk)

    def __call__(self) -> CommandConversation:
        """Start the command for one trial, under an id that the trial's seed gives."""
        return self.open(next_talk())


class CommandConversation(Killable):
    """One trial's conversation with a command."""

    def __init__(self, program: RunningProgram, talk: Talk | str) -> None:
        self._program = program
        self._lines = Lines(program)
        self.conversation_id, self._n_turns = (talk, 0) if isinstance(talk, str) else talk
        self._observes_tools = self._has_state = False
        self._is_open, self._is_sound = True, True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except AgentFault:
            if error is None:
                raise

    def reply(self, text: str) -> Trace:
        """Say something, and wait for the agent's reply.

        Raises
        ------
        AgentFault
            If it breaks the protocol, tells of an error, or ends.
        """
        turn = Observations(text)
        try:
            self._converse(turn, text)
        except AgentFault as fault:
            self._is_sound = False
            fault.trace = self._trace(turn)
            raise
        return self._trace(turn)

    def _converse(self, turn: Observations, text: str) -> None:
        self._n_turns += 1
        self._lines.allow(MAX_TURN_BYTES)
        for line in self._lines.pending():
            if self._take(line, turn) or turn.has_replied:
                raise AgentFault("bad_reply", f"{self._unasked(line)} before turn {self._n_turns}")
        said = turn_message(text, turn=self._n_turns, conversation_id=self.conversation_id)
        self._lines.send({"protocol": PROTOCOL, "type": "turn", **said})
        while not self._take(self._next_line(), turn):
            pass
        turn.check()

    def _trace(self, turn: Observations) -> Trace:
        self._observes_tools |= turn.observes_tools
        return turn.trace(observes_tools=self._observes_tools)

    def _next_line(self) -> bytes:
        line = self._lines.next()
        if line is None:
            raise self._end()
        return line

    def _take(self, line: bytes, turn: Observations) -> bool:
        """Take in one line; say whether it is the last of the turn."""
        where, message = self._read(line)
        match self._type(message, where):
            case "reply":
                turn.add_reply(message, where=where)
                return message.get("more") is not True
            case "tool_call":
                turn.add_call(message, where=where)
            case "log":
                turn.add_log(message)
            case "error":
                raise AgentFault("agent_raised", error_text(message))
            case "hello":
                self._greet(message, where)
            case "state":
                raise AgentFault("bad_reply", f"{where} is a state that nobody asked for")
        return False

    def _read(self, line: bytes) -> tuple[str, Message]:
        where = f"line {self._lines.n_read} of the agent's standard output"
        try:
            return where, decode_object(line, where=where)
        except AgentFault as fault:
            advice = "write JSON lines there, and all else to standard error"
            raise AgentFault(fault.code, f"{fault.message}; {advice}") from None

    def _type(self, message: Message, where: str) -> str:
        """Say what a line is; the simplest agents name no type."""
        kind = message.get("type", "reply" if is_reply(message) else None)
        if kind is None and "error" in message:
            return "error"
        if kind in _TYPES:
            return str(kind)
        if kind is None:
            shown = excerpt(json.dumps(message, ensure_ascii=False))
            raise AgentFault(
                "bad_reply",
                f'{where} is no reply; write {{"type": "reply", "text": "..."}}: {shown}',
            )
        hint = nearest(str(kind), _TYPES)
        raise AgentFault("bad_reply", f"{where} has the unknown type {excerpt(str(kind))}; {hint}")

    def _greet(self, message: Message, where: str) -> None:
        """Take in what the agent says of itself."""
        refuse_unknown(message, ("type", "protocol", "tools", "state"), where=where)
        if message.get("protocol", PROTOCOL) != PROTOCOL:
            raise AgentFault(
                "bad_reply",
                f"{where}: the agent speaks protocol {message['protocol']!r}, and this version "
                f"of evalkit protocol {PROTOCOL}",
            )
        self._observes_tools |= message.get("tools") is True
        self._has_state |= message.get("state") is True

    @property
    def tells_state(self) -> bool:
        """Whether the agent has said that it tells its state."""
        return self._has_state

    def state(self) -> dict[str, JSON] | None:
        """Ask the agent for its state.

        Returns
        -------
        dict or None
            ``None`` if it has not said that it tells it.

        Raises
        ------
        AgentFault
            If it does not answer with a state.
        """
        if not self._has_state:
            return None
        try:
            return self._asked_state()
        except AgentFault:
            self._is_sound = False
            raise

    def _asked_state(self) -> dict[str, JSON]:
        self._lines.allow(MAX_TURN_BYTES)
        self._lines.send({"protocol": PROTOCOL, "type": "state"})
        while True:
            where, message = self._read(self._next_line())
            kind = self._type(message, where)
            if kind == "error":
                raise AgentFault("agent_raised", error_text(message))
            if kind == "log":
                log_line(log_text(message))
            elif kind != "state" or not isinstance(state := message.get("state"), dict):
                wanted = '{"type": "state", "state": {...}}'
                raise AgentFault("bad_reply", f"{where} does not answer for the state: {wanted}")
            else:
                return state

    def _unasked(self, line: bytes) -> str:
        return (
            f"the agent wrote more replies than it was asked for, {excerpt(line)}; "
            'write `"more": true` into a reply that another one follows: this one came'
        )

    def _end(self) -> AgentFault:
        """Say how the agent left the conversation."""
        asked = f"before it had replied to turn {self._n_turns}"
        if self._program.wait(_TERM_GRACE_S):
            code, how = self._program.how_it_ended()
        else:
            code, how = "no_reply", "closed its standard output"
        self._program.stop(0)
        return AgentFault(code, f"the agent {how} {asked}; {self._program.last_words()}")

    def kill(self) -> None:
        """End the agent without a word; what it says then is no reply to anything."""
        self._is_open = False
        self._program.stop(0)

    def close(self) -> None:
        """End the agent: its input ends, then it is asked to, then made to; once.

        How a program ends then is not judged.

        Raises
        ------
        AgentFault
            If it had said something that no turn has room for.
        """
        if not self._is_open:
            return
        self._is_open = False
        try:
            if self._is_sound:
                self._hear_out()
        finally:
            self._program.stop(_TERM_GRACE_S if self._is_sound else 0)

    def _hear_out(self) -> None:
        """Let the agent end, and look at what it still says."""
        self._lines.allow(MAX_TURN_BYTES)
        due = time.monotonic() + _EXIT_GRACE_S
        for line in self._lines.rest(due):
            where, message = self._read(line)
            match self._type(message, where):
                case "log":
                    log_line(log_text(message))
                case "error":
                    raise AgentFault("agent_raised", error_text(message))
                case "reply":
                    raise AgentFault("bad_reply", f"{self._unasked(line)} after the last turn")
                case "tool_call":
                    raise AgentFault(
                        "bad_reply",
                        f"{where} is a tool call after the last reply; write it before the reply "
                        f"of its turn: {excerpt(line)}",
                    )
        if not self._program.wait(max(due - time.monotonic(), 0.0)):
            log_line(
                f"evalkit: the agent was still running {_EXIT_GRACE_S:g} s after its standard "
                "input had ended, and was ended; every trial waits for that"
            )
