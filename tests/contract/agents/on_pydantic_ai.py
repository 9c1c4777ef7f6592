"""Agents on pydantic-ai."""

from __future__ import annotations

import tools
from pydantic_ai import Agent

_TOOLS = list(tools.TOOLS.values())


def with_anthropic(text: str) -> str:
    """Have the anthropic SDK call the model."""
    return _reply(f"anthropic:{tools.MODEL['anthropic']}", text)


def with_openai_chat(text: str) -> str:
    """Have the openai SDK call the model by Chat Completions."""
    return _reply(f"openai-chat:{tools.MODEL['openai']}", text)


def with_openai_responses(text: str) -> str:
    """Have the openai SDK call the model by Responses."""
    return _reply(f"openai-responses:{tools.MODEL['openai']}", text)


def with_gemini(text: str) -> str:
    """Have the google-genai SDK call the model."""
    return _reply(f"google:{tools.MODEL['gemini']}", text)


async def streaming(text: str) -> str:
    """Stream the answer, on the trial's own event loop."""
    agent = Agent(f"anthropic:{tools.MODEL['anthropic']}", tools=_TOOLS)
    async with agent.run_stream(text) as result:
        return str(await result.get_output())


def _reply(model: str, text: str) -> str:
    agent = Agent(model, instructions=tools.SYSTEM, tools=_TOOLS)
    return str(agent.run_sync(text).output)
