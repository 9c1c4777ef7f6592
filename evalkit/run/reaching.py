"""Which agent a run is about: the one given, or the suite's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalkit.agents import AgentRef, refer_to
from evalkit.agents.command import CommandAgent
from evalkit.agents.http import HttpAgentSpec
from evalkit.agents.served import ServedAgent
from evalkit.errors import UsageError
from evalkit.suite import AgentEntry, Suite


def agent_of(suite: Suite, agent: Any, *, lane: str) -> AgentRef:
    """Refer to the agent of a run.

    Parameters
    ----------
    suite
        Names an agent, unless one is given.
    agent
        ``"module:name"``, an agent of any form, or ``None`` for the suite's. Where the
        suite's is a function that serves, a name stands for another such function.
    lane
        An agent that runs already can only be run live.

    Raises
    ------
    UsageError
        If there is none.
    AgentError
        If it cannot be found or sent to a trial's process.
    """
    folder = suite.path.parent.resolve() if suite.path is not None else Path.cwd()
    path = tuple(dict.fromkeys((str(folder), str(Path.cwd()))))
    if isinstance(agent, str | None):
        agent = _served(suite, agent, path) or agent
    given = agent if agent is not None else _suites_own(suite, str(folder), lane=lane)
    return refer_to(given, path=path)


def _served(suite: Suite, name: str | None, path: tuple[str, ...]) -> ServedAgent | None:
    """Give the function that serves, where the suite is for such an agent."""
    http = suite.agent.http if suite.agent is not None else None
    if http is None or http.serve is None:
        return None
    return ServedAgent(name or http.serve, http.port, http.path, path)


def _suites_own(suite: Suite, folder: str, *, lane: str) -> Any:
    match suite.agent:
        case AgentEntry(python=str(reference)):
            return reference
        case AgentEntry(command=tuple(command)):
            return CommandAgent(command, folder)
        case AgentEntry(http=http) if http is not None:
            spec = HttpAgentSpec(
                http.command,
                folder,
                port=http.port,
                path=http.path,
                url=http.url,
                listens=http.port is not None,
            )
            spec.check_lane(lane)
            return spec
    raise UsageError(
        f"suite {suite.name!r} names no agent; give one: --agent module:name (agent=...)"
    )
