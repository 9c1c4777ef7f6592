"""A rehearsal in the server: the way that every trial goes, gone before the fork.

What a forked process touches for the first time it must copy first, page by page;
that is most of what a short trial costs. So the server holds some conversations of
its own with the SDKs that it finds loaded, on a stage like a trial's and never through
the user's agent, and tidies up before it freezes its memory. Nothing depends on
it: what fails here costs each trial some milliseconds.
"""

from __future__ import annotations

import gc
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final, cast

from evalkit.recording import Recorder
from evalkit.sandbox.connections import NOBODY, Refused
from evalkit.sandbox.environment import GATEWAY_PORT
from evalkit.sandbox.folders import Places
from evalkit.sandbox.room import Entered, Room
from evalkit.trial.order import Staging, TrialOrder
from evalkit.trial.outbox import ACKNOWLEDGE, ACKNOWLEDGED, Outbox
from evalkit.trial.stage import Stage
from evalkit.trial.worker import converse

Talk = Callable[[Any, str], str]

_ROUNDS: Final = 15
_TIMEOUT_S: Final = 5.0
_TRACING: Final = "opentelemetry.sdk.trace"
_TOOL: Final = {"tool": "look", "args": {"city": "Oslo"}}
_STEPS: Final = [{"tools": [_TOOL]}, {"tools": [_TOOL]}, {"text": "It is dry."}]
_SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
_ORDER: Final = TrialOrder(
    "rehearsal",
    0,
    ("Is it dry in Oslo?",),
    lane="contract",
    staging=Staging(({"": {"when": None, "steps": _STEPS}},), Room(), GATEWAY_PORT),
)


def rehearse() -> None:
    """Hold conversations with every SDK that is loaded; never raises.

    Only for a server with a network of its own: there the scripted model's port is free.
    """
    if _TRACING in sys.modules:  # the agent's tracer would take part
        return
    for name, talk in _TALKS.items():
        if name in sys.modules:
            with suppress(Exception), _controller() as outbox:
                _converse(partial(talk, sys.modules[name]), outbox)
    gc.collect()


def _converse(talk: Callable[[str], str], outbox: Outbox) -> None:
    def agent(text: str) -> str:
        return talk(text)

    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_ROUNDS):
            with ExitStack() as stack:
                surround = partial(_staged, folder=folder, outbox=outbox, stack=stack)
                ending = converse(_ORDER, agent, emit=outbox.put, surround=surround)
            if ending.status != "passed":  # and so would be the other rounds
                return


def _staged(recorder: Recorder, *, folder: str, outbox: Outbox, stack: ExitStack) -> Stage:
    assert _ORDER.staging is not None
    entered = cast("Entered", _Anywhere(folder))
    stage = Stage(_ORDER.staging, entered, recorder=recorder, outbox=outbox)
    stack.callback(stage.close)
    return stage


class _Anywhere:
    """Stands for a room, of which a stage needs no more than this."""

    clock = None

    def __init__(self, folder: str) -> None:
        self.places = Places(folder, folder, folder, folder)

    def refused(self) -> Refused:
        """Say that nothing was."""
        return NOBODY


@contextmanager
def _controller() -> Iterator[Outbox]:
    """Give the way to somebody who acknowledges what a trial tells."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = threading.Thread(target=_acknowledge, args=(theirs,), daemon=True)
        reader.start()
        ours.settimeout(_TIMEOUT_S)  # a server that hangs here would begin no trial
        try:
            yield Outbox(ours)
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            reader.join(_TIMEOUT_S)


def _acknowledge(channel: socket.socket) -> None:
    """Answer like the controller."""
    rest = b""
    with suppress(OSError):
        while data := channel.recv(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            channel.sendall(ACKNOWLEDGED * lines.count(ACKNOWLEDGE))


def _talk_anthropic(sdk: Any, text: str) -> str:
    tools = [{"name": "look", "description": "look", "input_schema": _SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": text}]
    with sdk.Anthropic(max_retries=0, timeout=sdk.Timeout(_TIMEOUT_S)) as client:
        for _ in _STEPS:
            reply = client.messages.create(
                model="rehearsal", max_tokens=99, messages=messages, tools=tools
            )
            uses = [block for block in reply.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": u.id, "content": "dry"} for u in uses]
            messages.append({"role": "assistant", "content": reply.content})
            messages.append({"role": "user", "content": results})
    return "".join(block.text for block in reply.content if block.type == "text")


def _talk_openai(sdk: Any, text: str) -> str:
    function = {"name": "look", "description": "look", "parameters": _SCHEMA}
    messages: list[Any] = [{"role": "user", "content": text}]
    with sdk.OpenAI(max_retries=0, timeout=sdk.Timeout(_TIMEOUT_S)) as client:
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
    return said.content or ""


_TALKS: Final[Mapping[str, Talk]] = {"anthropic": _talk_anthropic, "openai": _talk_openai}
