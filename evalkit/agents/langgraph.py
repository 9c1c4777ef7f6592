"""A LangGraph graph as an agent: one thread id a trial, every tool call seen."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.agents.continuing import next_talk
from evalkit.errors import AgentError, TraceError
from evalkit.messages.langchain import trace_of_messages
from evalkit.trace import Trace


def langgraph(graph: Any, *, config: Mapping[str, Any] | None = None) -> LangGraphAgent:
    """Make an agent of a compiled graph whose state has ``messages``.

    Parameters
    ----------
    graph
        A compiled graph, or a zero-argument factory of one (needed where the
        graph holds what cannot be pickled, such as a client).
    config
        Further configuration for each ``invoke``; ``thread_id`` is evalkit's.

    Returns
    -------
    LangGraphAgent
        To be given to ``run_suite(agent=...)``. Each trial is a thread of its
        own, so a checkpointer remembers turns but nothing between trials.

    Examples
    --------
    ::

        run_suite(suite, agent=ek.agents.langgraph(graph), lane="live")
    """
    return LangGraphAgent(graph, config or {})


class LangGraphAgent:
    """See :func:`langgraph`."""

    def __init__(self, graph: Any, config: Mapping[str, Any]) -> None:
        self._graph = graph
        self._config = dict(config)

    def __call__(self) -> LangGraphThread:
        """Start a new thread, for one trial."""
        graph = self._graph if hasattr(self._graph, "ainvoke") else self._graph()
        return LangGraphThread(graph, self._config)


class LangGraphThread:
    """One trial's conversation with a graph."""

    def __init__(self, graph: Any, config: Mapping[str, Any]) -> None:
        self._graph = graph
        self._messages: list[Any] = []
        self.conversation_id = next_talk(lambda: str(uuid.uuid4())).id
        configurable = {**config.get("configurable", {}), "thread_id": self.conversation_id}
        self._config = {**config, "configurable": configurable}

    async def reply(self, text: str) -> Trace:
        """Run the graph on what the user says and give the messages that it added."""
        said = {"role": "user", "content": text}
        has_memory = getattr(self._graph, "checkpointer", None) not in (None, False)
        sent = [said] if has_memory else [*self._messages, said]
        state = await self._graph.ainvoke({"messages": sent}, config=self._config)
        if not isinstance(state, Mapping) or "messages" not in state:
            raise AgentError("the graph's state has no 'messages'; evalkit reads what it did there")
        added = [message for message in self._added(state["messages"]) if message != said]
        self._messages = list(state["messages"])
        try:
            return trace_of_messages(added)
        except TraceError as error:
            raise AgentError(f"cannot read what the graph did: {error}") from error

    def _added(self, messages: Sequence[Any]) -> list[Any]:
        """Give the messages that are new; a graph that trims them keeps their ids."""
        known = {_id(message) for message in self._messages} - {None}
        return [
            message
            for index, message in enumerate(messages)
            if (index >= len(self._messages) if _id(message) is None else _id(message) not in known)
        ]


def _id(message: object) -> object:
    """Give a message's id; only a state that keeps messages as they come has none."""
    return message.get("id") if isinstance(message, Mapping) else getattr(message, "id", None)
