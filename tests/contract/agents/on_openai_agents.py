"""Agents on the OpenAI Agents SDK."""

from __future__ import annotations

import openai
import tools
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool

_TOOLS = [function_tool(function) for function in tools.TOOLS.values()]


def responses(text: str) -> str:
    """Use its default, Responses."""
    return str(Runner.run_sync(_agent(), text).final_output)


async def chat(text: str) -> str:
    """Use Chat Completions."""
    model = OpenAIChatCompletionsModel(tools.MODEL["openai"], openai.AsyncOpenAI())
    return str((await Runner.run(_agent(model), text)).final_output)


async def streaming(text: str) -> str:
    """Stream the events of the run."""
    run = Runner.run_streamed(_agent(), text)
    async for _ in run.stream_events():
        pass
    return str(run.final_output)


def _agent(model: str | OpenAIChatCompletionsModel = tools.MODEL["openai"]) -> Agent[None]:
    return Agent[None]("travel", instructions=tools.SYSTEM, tools=[*_TOOLS], model=model)
