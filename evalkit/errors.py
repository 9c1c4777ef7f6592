"""The errors that evalkit raises, as one tree.

::

    EvalkitError
    ├── SuiteError          a suite file is wrong; lists every problem
    ├── TraceError          a trace or an export of another tool cannot be read
    ├── LedgerError         a ledger or run directory is broken
    ├── AgentError          the agent cannot be reached at all (before a run)
    ├── SandboxError        a worker could not be started or was lost
    ├── GraderError         a grader is unknown, registered twice or misused
    ├── ReportError         a notebook or its rendering failed
    ├── BaselineError       a baseline cannot be pinned or used; lists every reason
    ├── UsageError          a call or command line that cannot mean anything
    └── MissingDependency   an optional package is not installed (also an ImportError)

During a run nothing of this is raised for one trial: an agent's fault makes it
``failed``, everybody else's ``incomplete``, with the message as its reason.
Plain misuse of a function in :mod:`evalkit.stats` is a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class EvalkitError(Exception):
    """Base of every error that evalkit raises on purpose."""


class Problem(NamedTuple):
    """One thing that is wrong with a suite, and where.

    ``str(problem)`` reads ``file:line: key.path: what is wrong``.
    """

    where: str
    """File name, or a word such as ``records`` for what came from memory."""
    line: int | None
    """1-based line, ``None`` where there is no file."""
    key: str
    """Key path such as ``scenarios[2].expect.reply``; empty for the whole file."""
    message: str
    """What is wrong and what would be right."""

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class SuiteError(EvalkitError):
    """A suite cannot be used; ``problems`` lists everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


class TraceError(EvalkitError):
    """A trace, or an export of another tool, cannot be read."""


class LedgerError(EvalkitError):
    """A ledger or a run directory is broken or was written by something else."""


class AgentError(EvalkitError):
    """The agent cannot be imported, built or sent to a worker."""


class SandboxError(EvalkitError):
    """A worker process could not be started, or was lost; never the agent's fault."""


class GraderError(EvalkitError):
    """A grader is unknown, registered twice, or returned what is no grade."""


class ReportError(EvalkitError):
    """A notebook failed, or its report could not be rendered."""


class BaselineError(EvalkitError):
    """A baseline cannot be pinned from these runs, or used; ``reasons`` lists every why."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(reasons)
        self.reasons = tuple(reasons)

    def __str__(self) -> str:
        return "\n".join(self.reasons)


class UsageError(EvalkitError):
    """A call or a command line that cannot mean anything; exit code 3."""


class MissingDependency(EvalkitError, ImportError):
    """An optional package is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return (
            f"{self.package} is not installed. "
            f'Install it with: pip install "evalkit-lab[{self.extra}]"'
        )
