"""The kinds of agent that a project can start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of agent."""

    name: str
    about: str
    """What it is, as the end of a sentence."""
    agent: str
    """What the suite says under ``agent``."""
    has_model: bool
    """Whether it asks a model, so that its scenarios have scripts and the live lane costs money."""
    packages: tuple[str, ...]
    """What it needs besides evalkit, as pip reads it."""
    break_it: str
    """A change that the suite must notice, as the end of a sentence."""


_RULE: Final = (
    'delete the two lines that begin with `if order["status"] != "delivered"` in '
    "`support_agent.py`, and `no-refund-on-its-way` fails with `called forbidden tool: refund`."
)
_RETRIES: Final = (
    "write `max_retries=0` in `support_agent.py`, so that it no longer waits for an overloaded "
    "model, and `refund-while-overloaded` fails."
)

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "callable",
            "a support agent that is a Python function.",
            "support_agent:agent",
            has_model=False,
            packages=(),
            break_it=_RULE,
        ),
        Kind(
            "anthropic",
            "a support agent on the anthropic SDK.",
            "support_agent:SupportAgent",
            has_model=True,
            packages=("anthropic>=2.14",),
            break_it=_RETRIES,
        ),
        Kind(
            "langgraph",
            "a support agent as a LangGraph graph.",
            "support_agent:agent",
            has_model=True,
            packages=("langgraph>=1.0", "langchain-anthropic>=1.7"),
            break_it=_RETRIES,
        ),
        Kind(
            "command",
            "a support agent that is a program, in any language.",
            # A path in a suite is looked for from the suite's folder.
            "{command: [python3, ../../support_agent.py]}",
            has_model=False,
            packages=(),
            break_it=_RULE,
        ),
    )
}
"""By name, the simplest first."""
