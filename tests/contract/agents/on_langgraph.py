"""Agents on LangGraph, by way of LangChain's clients."""

from __future__ import annotations

from typing import Any

import tools
from langchain.agents import create_agent

_TOOLS = list(tools.TOOLS.values())


def with_anthropic(text: str) -> str:
    """Have langchain-anthropic call the model."""
    return _reply("anthropic", text)


def with_openai(text: str) -> str:
    """Have langchain-openai call the model."""
    return _reply("openai", text)


def streaming(text: str) -> str:
    """Stream the messages of the graph."""
    graph: Any = create_agent(f"anthropic:{tools.MODEL['anthropic']}", _TOOLS)
    pieces: list[str] = []
    for piece, told in graph.stream(_said(text), stream_mode="messages"):
        if told["langgraph_node"] != "model":
            pieces.clear()
        else:
            pieces.append(str(piece.text))
    return "".join(pieces)


def _reply(provider: str, text: str) -> str:
    graph: Any = create_agent(
        f"{provider}:{tools.MODEL[provider]}", _TOOLS, system_prompt=tools.SYSTEM
    )
    return str(graph.invoke(_said(text))["messages"][-1].text)


def _said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}
