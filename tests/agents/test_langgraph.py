"""A real LangGraph graph as an agent."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from evalkit.agents import Conversation, langgraph
from evalkit.errors import AgentError
from evalkit.trace import Trace


@tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"clear in {city}"


def decide(state: MessagesState) -> dict[str, Any]:
    """Call the tool for what the user says, then tell what came back, and what was said before."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        n_asked = sum(isinstance(message, HumanMessage) for message in state["messages"])
        return {"messages": [AIMessage(f"{last.content} (question {n_asked})")]}
    call = {"name": "get_weather", "args": {"city": str(last.content)}, "id": "c1"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def wants_tool(state: MessagesState) -> str:
    """Go on to the tools where the model asks for one."""
    return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END


def make_graph(checkpointer: Any = None) -> Any:
    """Build a rule-based graph with a real tool node."""
    builder = StateGraph(MessagesState)
    builder.add_node("decide", decide)
    builder.add_node("tools", ToolNode([get_weather], handle_tool_errors=True))
    builder.add_edge(START, "decide")
    builder.add_conditional_edges("decide", wants_tool)
    builder.add_edge("tools", "decide")
    return builder.compile(checkpointer=checkpointer)


GRAPHS: list[Callable[[], Any]] = [make_graph, lambda: make_graph(InMemorySaver())]


def talk(agent: Any, *texts: str) -> list[Trace]:
    """Hold one trial's conversation."""
    with Conversation(agent) as conversation:
        return [conversation.reply(text) for text in texts]


@pytest.mark.parametrize("make", GRAPHS, ids=["plain", "checkpointer"])
def test_each_turn_shows_what_the_graph_did_in_it(make: Callable[[], Any]) -> None:
    """Tool calls and replies of a turn are told once, and the graph remembers earlier turns."""
    first, second = talk(langgraph(make()), "Denver", "Boston")
    assert [(call.name, call.args, call.status) for call in first.tool_calls] == [
        ("get_weather", {"city": "Denver"}, "ok")
    ]
    assert first.tool_calls[0].result == "clear in Denver"
    assert first.reply == "clear in Denver (question 1)"
    assert [call.args for call in second.tool_calls] == [{"city": "Boston"}]
    assert second.reply == "clear in Boston (question 2)"
    assert second.tools_observed
    assert [turn.user for turn in second.turns] == ["Boston"]


@pytest.mark.parametrize("make", GRAPHS, ids=["plain", "checkpointer"])
def test_nothing_leaks_from_one_trial_to_the_next(make: Callable[[], Any]) -> None:
    """Each trial is a thread of its own: the second starts at question 1 again."""
    agent = langgraph(make())
    for _ in range(2):
        assert talk(agent, "Denver")[-1].reply == "clear in Denver (question 1)"


def test_one_trial_is_one_thread() -> None:
    """All turns of a trial bear one thread id; another trial bears another one."""
    saver = InMemorySaver()
    agent = langgraph(make_graph(saver), config={"recursion_limit": 9, "configurable": {"x": 1}})
    talk(agent, "Denver", "Boston")
    assert len(saver.storage) == 1
    talk(agent, "Denver")
    assert len(saver.storage) == 2


def test_a_factory_of_a_graph_is_called_for_each_trial() -> None:
    """A graph that cannot travel is built where it is used."""
    made = []

    def build() -> Any:
        made.append(make_graph())
        return made[-1]

    agent = langgraph(build)
    assert made == []
    talk(agent, "Denver")
    talk(agent, "Denver")
    assert len(made) == 2


def test_a_tool_that_raises_is_a_call_with_an_error() -> None:
    """What the graph's own tool node reports as an error is no success."""
    (trace,) = talk(langgraph(make_graph()), "Atlantis")
    assert trace.tool_calls[0].status == "error"
    assert "no such city" in str(trace.tool_calls[0].result)


def test_a_model_that_tells_no_usage_is_not_observed() -> None:
    """Rule-based messages do not count as calls of a model, nor as a cost of zero."""
    (trace,) = talk(langgraph(make_graph()), "Denver")
    assert trace.model_calls == ()
    assert not trace.models_observed


def test_a_model_that_tells_its_usage_is_observed() -> None:
    """Messages with model and tokens are calls of a model."""

    def answer(state: MessagesState) -> dict[str, Any]:
        usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
        message = AIMessage("hi", usage_metadata=usage, response_metadata={"model_name": "m1"})
        return {"messages": [message]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    (trace,) = talk(langgraph(builder.compile()), "hello")
    assert trace.models_observed
    assert [(call.model, call.usage.input_tokens) for call in trace.model_calls if call.usage] == [
        ("m1", 3)
    ]


def test_a_graph_that_forgets_still_shows_its_new_messages() -> None:
    """Where memory is trimmed, messages are told apart by their ids, not by their number."""

    def answer(state: MessagesState) -> dict[str, Any]:
        old: list[Any] = [RemoveMessage(id=str(message.id)) for message in state["messages"][:-1]]
        return {"messages": [*old, AIMessage(f"re: {state['messages'][-1].content}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    traces = talk(langgraph(graph), "a", "b", "c")
    assert [trace.replies for trace in traces] == [("re: a",), ("re: b",), ("re: c",)]


class Listed(TypedDict):
    messages: Annotated[list[Any], operator.add]


def test_a_state_of_plain_dictionaries_is_read_too() -> None:
    """A graph need not use LangChain's message objects."""

    def answer(state: Listed) -> dict[str, Any]:
        return {"messages": [{"type": "ai", "content": f"n={len(state['messages'])}"}]}

    builder = StateGraph(Listed)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    first, second = talk(langgraph(graph), "a", "b")
    assert (first.replies, second.replies) == (("n=1",), ("n=3",))


class Other(TypedDict):
    text: str


def test_a_graph_without_messages_is_no_agent_that_can_be_read() -> None:
    """Its state would show nothing: that is an error of the set-up, not of the agent."""
    builder = StateGraph(Other)
    builder.add_node("a", lambda _: {"text": "x"})
    builder.add_edge(START, "a")
    with pytest.raises(AgentError, match="has no 'messages'"):
        talk(langgraph(builder.compile()), "hi")
