"""A rehearsal in the server: the way that every trial goes, gone before the fork.

What a forked process touches for the first time it must copy first, page by page;
that is most of what a short trial costs. So the server holds some conversations of
its own with the SDKs that it finds loaded, against a real gateway on loopback and
never through the user's agent, and tidies up before it freezes its memory. Nothing
depends on it: what fails here costs each trial some milliseconds.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from evalkit.gateway import Endpoint, GatewayServer
from evalkit.ledger import Event, event_line
from evalkit.recording import Recorder
from evalkit.sandbox.environment import DUMMY_KEY

_ROUNDS: Final = 15
_TIMEOUT_S: Final = 5.0
_CLIENT: Final = {"api_key": DUMMY_KEY, "max_retries": 0, "timeout": _TIMEOUT_S}
_TOOL: Final = {"tool": "look", "args": {"city": "Oslo"}}
_STEPS: Final = [{"tools": [_TOOL]}, {"tools": [_TOOL]}, {"text": "It is dry."}]
_SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
_WISH: Final[Any] = {"role": "user", "content": "Is it dry in Oslo?"}


def rehearse() -> None:
    """Hold conversations with every SDK that is loaded; never raises."""
    for name, talk in _TALKS.items():
        if name in sys.modules:
            with suppress(Exception):
                for _ in range(_ROUNDS):
                    _converse(partial(talk, sys.modules[name]))
    gc.collect()


def _converse(talk: Callable[[str], object]) -> None:
    recorder = Recorder(_forget)
    endpoint = Endpoint([{"": {"when": None, "steps": _STEPS}}], recorder.event)
    with GatewayServer(endpoint) as server:
        endpoint.begin_turn(0)
        talk(f"http://127.0.0.1:{server.port}")
        endpoint.finish()


def _forget(event: Event) -> None:
    """Do all that is done with an event, but for sending it."""
    event_line(event)


def _talk_anthropic(sdk: Any, url: str) -> None:
    tools = [{"name": "look", "description": "look", "input_schema": _SCHEMA}]
    messages = [_WISH]
    with sdk.Anthropic(base_url=url, **_CLIENT) as client:
        for _ in _STEPS:
            reply = client.messages.create(
                model="rehearsal", max_tokens=99, messages=messages, tools=tools
            )
            uses = [block for block in reply.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": u.id, "content": "dry"} for u in uses]
            messages.append({"role": "assistant", "content": reply.content})
            messages.append({"role": "user", "content": results})


def _talk_openai(sdk: Any, url: str) -> None:
    function = {"name": "look", "description": "look", "parameters": _SCHEMA}
    messages = [_WISH]
    with sdk.OpenAI(base_url=f"{url}/v1", **_CLIENT) as client:
        for _ in _STEPS:
            reply = client.chat.completions.create(
                model="rehearsal",
                messages=messages,
                tools=[{"type": "function", "function": function}],
            )
            said = reply.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": "dry"}
                for call in said.tool_calls or ()
            ]


_TALKS: Final[Mapping[str, Callable[[Any, str], None]]] = {
    "anthropic": _talk_anthropic,
    "openai": _talk_openai,
}
