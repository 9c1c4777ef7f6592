"""Talking to an agent in this process, whatever form it has.

An agent is one of

- a callable ``agent(text) -> reply``, sync or async;
- a zero-argument factory (a class, say) of an object with ``reply(text)``, or
  of such a callable;
- an object with ``reply(text)``, sync or async, and optionally ``close()``.

A reply is text, or a whole :class:`~evalkit.trace.Trace` of the turn. All turns
of a trial share one conversation and one event loop; it is the conversation's
own, so that an async agent can be talked to where a loop runs already (a
notebook).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType, TracebackType
from typing import Any, Final, Self

from evalkit.agents.event_loop import OwnLoop
from evalkit.agents.hosting import Hosted, Killable
from evalkit.errors import AgentError
from evalkit.trace import Trace, Turn

MAX_REPLY_LENGTH: Final = 10_000_000
"""Characters that an agent may return for one turn; more is a fault of the agent."""


class BadReplyError(Exception):
    """An agent returned what is no reply; ``code`` says which kind of wrong it is."""

    is_silence = False
    """Whether it returned nothing at all, which is right where replies come out elsewhere."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class Conversation:
    """One trial's conversation with an agent.

    Parameters
    ----------
    agent
        In any of the forms that the module names.

    Raises
    ------
    AgentError
        If it has none of those forms.

    Examples
    --------
    >>> with Conversation(lambda text: text.upper()) as conversation:
    ...     conversation.reply("hello").reply
    'HELLO'
    """

    def __init__(self, agent: object) -> None:
        self._loop = OwnLoop()
        self._close: Callable[[], Any] | None = None
        try:
            built = self._built(agent)
            self._speak = _speaker(built)
        except BaseException:
            self._loop.close()
            raise
        self.hosted = built if isinstance(built, Hosted) else None
        """The agent as one that serves, if it does."""
        self._killable = built if isinstance(built, Killable) else None
        self._agent = built
        self._state_of = _teller(built)
        if hasattr(built, "reply"):
            self._close = getattr(built, "close", None)

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
        except BaseException:
            if error is None:
                raise
            # What went wrong first says more than an agent that cannot be closed after it.

    def reply(self, text: str) -> Trace:
        """Say something and give what the agent did as the trace of one turn.

        Raises
        ------
        BadReplyError
            If the agent returns neither text nor a trace.
        Exception
            Whatever the agent raises.
        """
        return as_turn(self._finished(self._speak(text)), user=text)

    @property
    def has_state(self) -> bool:
        """Whether the agent tells its state; of a program, as far as it has said so."""
        teller = self._state_of
        return teller is not None and getattr(teller, "tells_state", True) is True

    def state(self) -> Any:
        """Ask the agent for its state; gives and raises whatever it does."""
        return None if self._state_of is None else self._finished(self._state_of.state())

    @property
    def id(self) -> str:
        """What the agent knows the conversation by; empty if it is told nothing."""
        try:
            found = getattr(self._agent, "conversation_id", "")
        except Exception:  # an attribute of the agent's own, which nobody asked for
            return ""
        return found if isinstance(found, str) else ""

    def kill(self) -> None:
        """End what the agent runs beside this process, as a crash of the agent would."""
        if self._killable is not None:
            self._killable.kill()

    def close(self) -> None:
        """Close the agent, if it can be closed, and its event loop; once."""
        close, self._close = self._close, None
        try:
            if callable(close):
                self._finished(close())
        finally:
            self._loop.close()

    def _built(self, agent: object) -> object:
        """Call a factory; give anything else as it is."""
        if not inspect.isclass(agent) and hasattr(agent, "reply"):
            return agent
        if callable(agent) and _takes_nothing(agent):
            return self._finished(agent())
        return agent

    def _finished(self, value: Any) -> Any:
        """Wait for what is awaitable; give anything else as it is."""
        return self._loop.run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value


def _takes_nothing(function: Callable[..., Any]) -> bool:
    """Say whether a callable can only be called without arguments; a plain one is asked once."""
    if isinstance(function, FunctionType):
        return _function_takes_nothing(function)
    return _signature_takes_nothing(function)


def _signature_takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = {"POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL"}
    required = [p for p in parameters if p.kind.name in positional and _is_needed(p)]
    optional = [p for p in parameters if p.kind.name in positional and not _is_needed(p)]
    return not required and (inspect.isclass(function) or not optional)


_function_takes_nothing: Final = lru_cache(maxsize=16)(_signature_takes_nothing)


def _is_needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty and parameter.kind.name != "VAR_POSITIONAL"


def check_agent(agent: object) -> None:
    """Refuse what can be no agent, before anything runs.

    Raises
    ------
    AgentError
        If it has none of the forms that this module names.
    """
    if not inspect.isclass(agent) and callable(getattr(agent, "reply", None)):
        return
    if not callable(agent):
        raise _no_agent(agent)
    try:
        signature = inspect.signature(agent)
    except (TypeError, ValueError):  # written in C: only a call would tell
        return
    if not (_takes_nothing(agent) or (_binds(signature, "text") and not inspect.isclass(agent))):
        raise _no_agent(agent)


def _binds(signature: inspect.Signature, *arguments: str) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _speaker(agent: object) -> Callable[[str], Any]:
    """Find what to call with the user's text."""
    reply = getattr(agent, "reply", None)
    if inspect.isclass(agent):
        raise _no_agent(agent)
    if callable(reply):
        return reply  # type: ignore[no-any-return]
    if callable(agent):
        return agent
    raise _no_agent(agent)


def _teller(agent: Any) -> Any:
    """Give an agent that can be asked for its state without saying more; else ``None``."""
    state = getattr(agent, "state", None) if hasattr(agent, "reply") else None
    if not callable(state):
        return None
    try:
        return agent if _binds(inspect.signature(state)) else None
    except (TypeError, ValueError):
        return None


def _no_agent(agent: object) -> AgentError:
    hint = " For a graph, use evalkit.agents.langgraph(graph)." if hasattr(agent, "ainvoke") else ""
    return AgentError(
        f"{agent!r} is no agent: give a callable agent(text) -> reply, an object with "
        f"reply(text), or a zero-argument factory of one.{hint}"
    )


def as_turn(returned: object, *, user: str) -> Trace:
    """Bring what an agent returned into the trace of one turn.

    Text shows no tool calls, so nothing about them is observed.

    Raises
    ------
    BadReplyError
        If it is neither text nor a trace, or too large.
    """
    match returned:
        case Trace():
            return _checked(returned)
        case str():
            _check_size(len(returned))
            return Trace(turns=(Turn(user, (returned,)),), tools_observed=False)
        case None:
            raise silence("the agent returned None instead of a reply")
    raise BadReplyError(
        "bad_reply",
        f"the agent returned {type(returned).__name__}; return text or an evalkit Trace",
    )


def silence(message: str) -> BadReplyError:
    """Say that an agent returned nothing."""
    error = BadReplyError("no_reply", message)
    error.is_silence = True
    return error


def _checked(trace: Trace) -> Trace:
    if not trace.replies and not trace.tool_calls:
        raise silence("the agent returned an empty trace, without any reply")
    _check_size(sum(map(len, trace.replies)))
    return trace


def _check_size(n_characters: int) -> None:
    if n_characters > MAX_REPLY_LENGTH:
        raise BadReplyError(
            "reply_too_large",
            f"the agent returned {n_characters:,} characters; a reply may have at most "
            f"{MAX_REPLY_LENGTH:,}",
        )
