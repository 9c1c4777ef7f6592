"""What an agent tells of its state, in any form that agents have."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from evalkit.agents import BadReplyError, Conversation
from evalkit.agents.command import CommandAgent
from evalkit.trial.states import MAX_STATE_BYTES, state_told

PROGRAM = """
import json, sys
print(json.dumps({"type": "hello", "state": HELLO}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)["type"]
    told = {"type": "state", "state": {"n": 1}} if asked == "state" else {"text": "ok"}
    print(json.dumps(told), flush=True)
"""


class Agent:
    """Gives any state."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def reply(self, text: str) -> str:
        """Answer."""
        return text

    def state(self) -> Any:
        """Give it, or raise it."""
        if isinstance(self._state, BaseException):
            raise self._state
        return self._state


def nested(depth: int) -> Any:
    """Make lists in lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def doubled(times: int) -> Any:
    """Make a small thing that is large when it is written."""
    value: Any = 1
    for _ in range(times):
        value = [value, value]
    return value


def own() -> Any:
    """Make what contains itself."""
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("state", [{}, {"a": [1, 0.5, None, True, "x"]}, None, [1], 2**70])
def test_json_is_told_as_it_is(state: Any) -> None:
    """Of whatever kind."""
    with Conversation(Agent(state)) as conversation:
        assert conversation.has_state
        assert state_told(conversation) == {"state": state}


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"a": {1}}, "state() gave no JSON: it.a is a set"),
        ({"a": [b"x"]}, "it.a[0] is a bytes"),
        ({1: 2}, "it has the key 1, and keys are texts"),
        (float("nan"), "it is nan"),
        (nested(300), "nested more than 254 levels deep"),
        (own(), "contains itself"),
        (doubled(100), "more than 500,000 values"),
        ("x" * (MAX_STATE_BYTES + 1), "at most 1,000,000 are kept"),
        (ValueError("no\nstate"), "state() raised ValueError: no\nstate"),
    ],
)
def test_what_is_no_state_is_a_problem(state: Any, problem: str) -> None:
    """It is told in words, and ends no trial."""
    with Conversation(Agent(state)) as conversation:
        assert problem in state_told(conversation)["problem"]


def test_async_state_is_waited_for() -> None:
    """On the conversation's own loop."""

    class Late(Agent):
        async def state(self) -> Any:
            return self._state

    with Conversation(Late({"a": 1})) as conversation:
        assert state_told(conversation) == {"state": {"a": 1}}


def test_what_is_no_state_function_is_left_alone() -> None:
    """An attribute of that name, a method that wants arguments, a function's attribute."""

    class Held(Agent):
        state: Any = ("a", 1)

    class Wanting(Agent):
        def state(self, key: str) -> Any:  # type: ignore[override]
            raise AssertionError(key)

    for agent in (Held(0), Wanting(0), lambda text: text):
        with Conversation(agent) as conversation:
            assert not conversation.has_state


@pytest.mark.parametrize("tells", [True, False])
def test_program_tells_its_state_if_it_says_so(tells: bool) -> None:
    """It says so in its first line."""
    program = PROGRAM.replace("HELLO", str(tells))
    with Conversation(CommandAgent((sys.executable, "-c", program), "/")) as conversation:
        conversation.reply("hi")
        assert conversation.has_state is tells
        assert state_told(conversation) == {"state": {"n": 1} if tells else None}


def test_program_that_breaks_off_over_it_ends_the_trial() -> None:
    """That is no state, but the end of the conversation."""
    program = PROGRAM.replace("HELLO", "True").replace('"type": "state"', '"type": "stat"')
    with Conversation(CommandAgent((sys.executable, "-c", program), "/")) as conversation:
        conversation.reply("hi")
        with pytest.raises(BadReplyError, match="unknown type"):
            state_told(conversation)
