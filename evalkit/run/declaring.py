"""Whether the tools that a suite names are those that its agent says that it has.

Known is only what the agent says itself, in its attribute ``tools``; that is asked in a
process that has loaded it, behind the barrier of the contract lane. An agent that says
nothing, another program, and an agent that cannot be loaded are not asked any further.
"""

from __future__ import annotations

from dataclasses import replace

from evalkit.agents.declared import DeclaredTools
from evalkit.errors import AgentError, Problem, SandboxError, SuiteError, UsageError
from evalkit.results import Manifest
from evalkit.run.orders import Orders
from evalkit.run.reaching import agent_of
from evalkit.suite import Suite, names_tools, tool_problems
from evalkit.trial import ProcessTrials


def check_tools(suite: Suite, declared: DeclaredTools | None) -> None:
    """Refuse a suite that names tools or arguments that its agent does not have.

    Raises
    ------
    SuiteError
        With every problem at once.
    """
    problems = tool_problems(suite, declared) if declared else []
    if problems:
        raise SuiteError(problems)


def find_tool_problems(suite: Suite) -> list[Problem]:
    """Load a suite's agent, and list the tools and arguments that it does not have."""
    if not names_tools(suite):
        return []
    try:
        agent = agent_of(suite, None, lane="contract")
        if agent.is_program:
            return []
        told = Manifest("", suite.name, "contract", (), barrier="namespace")
        surroundings = Orders(suite, told).surroundings
        brief = None if surroundings is None else replace(surroundings, rehearses=False)
        with ProcessTrials(agent, n_parallel=1, surroundings=brief) as trials:
            declared = trials.declared_tools()
    except (AgentError, SandboxError, UsageError):
        return []  # whoever runs it is told
    return tool_problems(suite, declared) if declared else []
