"""Expected tool calls, one at a time: which call fits which expectation, and why not.

Which calls are given to which expectations is decided in
:mod:`evalkit.matching.assignment`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalkit.matching.compiling import Pattern, compile_arguments
from evalkit.matching.nodes import ABSENT, Difference, Object, Refs
from evalkit.matching.values import show

FAILED = frozenset({"error", "denied", "timeout"})
"""Statuses of a call that is known to have failed."""


class MadeCall(Protocol):
    """What is read of a tool call that was made."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def args(self) -> Mapping[str, Any] | None: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def result(self) -> Any: ...  # noqa: D102
    @property
    def turn(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One expected tool call, in one form whatever the suite wrote.

    Examples
    --------
    >>> ExpectedCall("book", {"flight_id": "AA123"}).n_required
    1
    """

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    """Patterns by argument: those listed must match, others are free."""
    id: str | None = None
    after: tuple[str, ...] = ()
    """Ids of expected calls whose calls must come before."""
    times: tuple[int, int | None] | None = None
    """At least and at most how many calls; ``None``: one, and more of them are extra calls."""
    status: str | None = None
    """``None``: any but a known failure; ``"any"``: whatever became of the call."""
    extra_args_allowed: bool = True
    turn: int | None = None
    """Turn of the call, counted as the calls count it."""

    @property
    def n_required(self) -> int:
        """How many calls must match."""
        return 1 if self.times is None else self.times[0]

    @property
    def n_at_most(self) -> int | None:
        """How many calls may match, ``None`` for no limit or none written."""
        return None if self.times is None else self.times[1]

    def n_places(self, n_fitting: int) -> int:
        """How many calls it can take, given how many fit."""
        if self.times is None:
            return 1
        most = n_fitting if self.times[1] is None else min(self.times[1], n_fitting)
        return max(most, self.times[0])


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expected call, compiled."""

    call: ExpectedCall
    names: tuple[str, ...]
    """Arguments as the suite lists them."""
    plain: Object
    """Arguments that need no other call."""
    referring: Mapping[str, Pattern]
    """Arguments with a ``$ref`` inside."""
    needs: tuple[str, ...]
    """Ids that the referring arguments name."""

    @classmethod
    def of(cls, call: ExpectedCall) -> Expectation:
        """Compile the arguments.

        Raises
        ------
        UsageError
            If a pattern is wrong.
        """
        patterns = compile_arguments(call.args)
        plain = {key: one.node for key, one in patterns.items() if not one.refs}
        referring = {key: one for key, one in patterns.items() if one.refs}
        needs = sorted({ref for one in referring.values() for ref in one.refs})
        return cls(call, tuple(patterns), Object(plain, open=True), referring, tuple(needs))

    def fits(self, made: MadeCall) -> bool:
        """Tell whether a call fits, arguments that refer to other calls apart."""
        return (
            made.name == self.call.tool
            and self._status_fits(made.status)
            and self.call.turn in (None, made.turn)
            and self._arguments_fit(made.args)
        )

    def fits_refs(self, made: MadeCall, refs: Refs) -> bool:
        """Tell whether the arguments that refer to other calls match."""
        args = {} if made.args is None else made.args
        return all(
            pattern.matches(args[key], refs) if key in args else pattern.node.optional
            for key, pattern in self.referring.items()
        )

    def differences(self, made: MadeCall, refs: Refs) -> list[Difference]:
        """List what keeps a call of the same tool from fitting."""
        return list(self._differences(made, refs))

    def _status_fits(self, status: str) -> bool:
        """Compare the status, or refuse known failures."""
        wanted = self.call.status
        return status not in FAILED if wanted is None else wanted in ("any", status)

    def _arguments_fit(self, args: Mapping[str, Any] | None) -> bool:
        """Compare the arguments; unreadable ones fit only where nothing is asked of them."""
        if args is None:
            return not self.call.args and self.call.extra_args_allowed
        return self.plain.matches(args, {}) and not self._extra(args)

    def _extra(self, args: Mapping[str, Any]) -> list[str]:
        """List arguments that should not be there."""
        allowed = self.call.extra_args_allowed
        return [] if allowed else [key for key in args if key not in self.names]

    def _differences(self, made: MadeCall, refs: Refs) -> Iterator[Difference]:
        if not self._status_fits(made.status):
            yield Difference("status", self.call.status or "ok", made.status)
        if self.call.turn not in (None, made.turn):
            yield Difference("turn", str((self.call.turn or 0) + 1), str(made.turn + 1))
        if made.args is None:
            if not self._arguments_fit(None):
                yield Difference("arguments", "a JSON object", "text that is none")
            return
        nodes = {**self.plain.items, **{key: one.node for key, one in self.referring.items()}}
        inside = Object({key: nodes[key] for key in self.names}, open=True)
        yield from inside.differences(made.args, refs, path="")
        for key in self._extra(made.args):
            yield Difference(key, ABSENT, show(made.args[key]))


def view(made: MadeCall) -> dict[str, Any]:
    """Give what a ``$ref`` may read of a call."""
    return {"args": made.args, "result": made.result}
