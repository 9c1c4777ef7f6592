"""Every form that an agent may have, and everything that it may return."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest

from evalkit.agents import BadReplyError, Conversation
from evalkit.agents.conversation import MAX_REPLY_LENGTH, check_agent
from evalkit.errors import AgentError
from evalkit.trace import ToolCall, Trace, Turn


def plain(text: str) -> str:
    """Answer at once."""
    return text.upper()


async def async_plain(text: str) -> str:
    """Answer after a moment."""
    await asyncio.sleep(0)
    return text.upper()


class WithReply:
    def reply(self, text: str) -> str:
        return text.upper()


class WithAsyncReply:
    async def reply(self, text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()


class Callable1:
    def __call__(self, text: str) -> str:
        return text.upper()


class Optional:
    def __init__(self, greeting: str = "") -> None:
        self.greeting = greeting

    def reply(self, text: str) -> str:
        return self.greeting + text.upper()


class Maker:
    def __call__(self) -> WithReply:
        return WithReply()


def make_object() -> WithReply:
    """Make an object."""
    return WithReply()


async def make_async() -> WithAsyncReply:
    """Make an object after a moment."""
    await asyncio.sleep(0)
    return WithAsyncReply()


def make_function() -> Any:
    """Make a function."""
    return plain


def with_default(text: str = "nothing") -> str:
    """Answer, also where nothing was said."""
    return text.upper()


def with_more(text: str, *rest: str, **options: str) -> str:
    """Answer and pass over all else."""
    return text.upper()


FORMS = [
    plain, async_plain, WithReply(), WithAsyncReply(), Callable1(), WithReply, WithAsyncReply,
    Callable1, Optional, Maker(), make_object, make_async, make_function, with_default, with_more,
    WithReply().reply, functools.partial(with_more, extra="x"), str.upper,
    lambda text: text.upper(),
]  # fmt: skip


@pytest.mark.parametrize(
    "agent", FORMS, ids=lambda agent: getattr(agent, "__name__", repr(agent))[:40]
)
def test_every_form_of_agent_is_talked_to_in_the_same_way(agent: Any) -> None:
    """Sync or async, function, factory, class or object: what it says is the reply."""
    check_agent(agent)
    with Conversation(agent) as conversation:
        for text in ("one", "two"):
            trace = conversation.reply(text)
            assert trace.reply == text.upper()
            assert trace.turns == (Turn(text, (text.upper(),)),)
            assert not trace.tools_observed
            assert not trace.models_observed


class NeedsArguments:
    def __init__(self, key: str) -> None:
        self.key = key

    def reply(self, text: str) -> str:
        return text


def two_arguments(text: str, history: list[str]) -> str:
    """Need more than a text."""
    return text


@pytest.mark.parametrize(
    "agent",
    [None, 3, "text", {"a": 1}, object(), NeedsArguments, two_arguments],
    ids=lambda agent: getattr(agent, "__name__", type(agent).__name__),
)
def test_what_is_no_agent_is_refused_before_anything_runs(agent: Any) -> None:
    """The error lists the forms that an agent may have."""
    with pytest.raises(AgentError, match=r"is no agent: give a callable agent\(text\) -> reply"):
        check_agent(agent)


@pytest.mark.parametrize("made", [None, 3, WithReply, NeedsArguments])
def test_a_factory_of_what_is_no_agent_is_refused(made: Any) -> None:
    """A factory is called once, and must give an agent then."""
    with pytest.raises(AgentError, match="is no agent"):
        Conversation(lambda: made)


def test_a_graph_is_pointed_to_its_adapter() -> None:
    """Handing over a bare graph says how to do it."""

    class Graph:
        async def ainvoke(self, state: Any) -> Any: ...

    with pytest.raises(AgentError, match=r"evalkit.agents.langgraph\(graph\)"):
        check_agent(Graph())


class Client:
    """Like a real async client: of no use on any other event loop, or without one."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.closed = 0

    async def reply(self, text: str) -> str:
        running = asyncio.get_running_loop()
        self.loop = self.loop or running
        assert running is self.loop, "bound to a different event loop"
        return f"{text} {id(running)}"

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.closed += 1


def test_all_turns_share_one_event_loop() -> None:
    """A client that is bound to a loop works over all turns, and is closed on it."""
    client = Client()
    with Conversation(client) as conversation:
        said = {conversation.reply("a").reply for _ in range(3)}
    assert len(said) == 1
    assert client.closed == 1
    assert client.loop is not None
    assert client.loop.is_closed()


def test_a_conversation_works_inside_a_running_event_loop() -> None:
    """In a notebook a loop runs already: nothing needs await, and both loops stay usable."""

    async def cell() -> None:
        client = Client()
        with Conversation(client) as conversation:
            assert len({conversation.reply("a").reply for _ in range(3)}) == 1
        assert client.closed == 1
        with Conversation(make_async) as conversation:
            assert conversation.reply("hi").reply == "HI"
        with Conversation(plain) as conversation:
            assert conversation.reply("hi").reply == "HI"
        await asyncio.sleep(0)

    before = threading.active_count()
    asyncio.run(cell())
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "kind", [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError]
)
def test_what_an_async_agent_raises_comes_out_in_a_running_loop_too(kind: type) -> None:
    """An exit or interrupt of the agent does not leave the caller waiting for ever."""

    async def agent(text: str) -> str:
        raise kind("x")

    async def cell() -> None:
        with pytest.raises(kind), Conversation(agent) as conversation:
            conversation.reply("a")

    asyncio.run(cell())


class Closing:
    def __init__(
        self, *, reply: BaseException | None = None, close: Exception | None = None
    ) -> None:
        self._reply, self._close, self.closed = reply, close, 0

    def reply(self, text: str) -> str:
        if self._reply:
            raise self._reply
        return text

    def close(self) -> None:
        self.closed += 1
        if self._close:
            raise self._close


def test_close_is_called_once() -> None:
    """An agent is closed at the end of a trial, however often that is asked for."""
    agent = Closing()
    with Conversation(agent) as conversation:
        conversation.reply("a")
        conversation.close()
    assert agent.closed == 1


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_close_is_called_after_an_error(kind: type[BaseException]) -> None:
    """What an agent holds is given back even if it raised; its own error comes out."""
    agent = Closing(reply=kind("first"), close=RuntimeError("second"))
    with pytest.raises(kind, match="first"), Conversation(agent) as conversation:
        conversation.reply("a")
    assert agent.closed == 1


def test_an_error_in_close_alone_is_the_agents() -> None:
    """Nothing else went wrong, so this is what is told."""
    agent = Closing(close=RuntimeError("second"))
    with pytest.raises(RuntimeError, match="second"), Conversation(agent) as conversation:
        conversation.reply("a")


def test_a_file_like_function_is_not_closed() -> None:
    """Only objects with reply() promise a close() of that meaning."""

    class Tool:
        def __call__(self, text: str) -> str:
            return text

        def close(self) -> None:
            raise AssertionError("not ours to close")

    with Conversation(Tool()) as conversation:
        assert conversation.reply("a").reply == "a"


@pytest.mark.parametrize(
    ("returned", "code", "message"),
    [
        (None, "no_reply", "returned None instead of a reply"),
        (b"bytes", "bad_reply", "the agent returned bytes; return text or an evalkit Trace"),
        (3, "bad_reply", "returned int"),
        ({"reply": "x"}, "bad_reply", "returned dict"),
        (["a"], "bad_reply", "returned list"),
        (Trace(), "no_reply", "an empty trace"),
        (Trace(turns=(Turn("a"),)), "no_reply", "an empty trace"),
        ("x" * (MAX_REPLY_LENGTH + 1), "reply_too_large", "10,000,001 characters"),
        ("x" * 50_000_000, "reply_too_large", "50,000,000 characters; .* at most 10,000,000"),
        (Trace.from_calls(reply="x" * 50_000_000), "reply_too_large", "50,000,000 characters"),
    ],
    ids=["none", "bytes", "int", "dict", "list", "empty", "silent", "large", "50MB", "50MB-trace"],
)
def test_what_is_no_reply_is_told_apart(returned: Any, code: str, message: str) -> None:
    """Nothing, the wrong thing and too much are different faults of the agent."""
    with Conversation(lambda _: returned) as conversation:
        with pytest.raises(BadReplyError, match=message) as caught:
            conversation.reply("a")
        assert caught.value.code == code


@pytest.mark.parametrize(
    "returned",
    ["", "\ud800\x00", "x" * MAX_REPLY_LENGTH, type("Text", (str,), {})("sub")],
    ids=["empty", "odd", "largest", "subclass"],
)
def test_any_text_is_a_reply(returned: str) -> None:
    """Empty text is an answer too; graders say whether it is a good one."""
    with Conversation(lambda _: returned) as conversation:
        assert conversation.reply("a").reply == returned


@pytest.mark.parametrize(
    "trace",
    [
        Trace.from_calls([("book", {"id": 1})], reply="Done."),
        Trace(tool_calls=(ToolCall("book"),)),
        Trace(turns=(Turn("a", ("b", "c")),), models_observed=True),
    ],
    ids=["calls", "no-turn", "turn"],
)
def test_a_trace_is_taken_as_it_is(trace: Trace) -> None:
    """What an agent tells of itself is not touched."""
    with Conversation(lambda _: trace) as conversation:
        assert conversation.reply("a") is trace
