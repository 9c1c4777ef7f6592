"""The scripted model's state: which step answers which request.

Scripts stand by turn and by name. A request takes the next step of the one
script that fits it: a script whose ``when`` matches, else the one without
``when``. Nothing is ever answered by default.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.errors import UsageError
from evalkit.gateway.canonical import ModelRequest
from evalkit.gateway.faults import FAULTS
from evalkit.gateway.possible import why_impossible
from evalkit.ledger import JSON, Event
from evalkit.when_keys import WHEN_KEYS

if TYPE_CHECKING:
    from evalkit.matching import Pattern


class Unscripted(Exception):
    """No step answers a request; the text says what was expected."""

    def __init__(self, message: str, *, code: str = "unscripted_call") -> None:
        super().__init__(message)
        self.code = code


class Taken(NamedTuple):
    """A step that a request has taken."""

    script: str
    position: int
    """From 0, every attempt of ``times`` counted."""
    step: Mapping[str, Any]


class LeftOver(NamedTuple):
    """Steps that no request took."""

    turn: int
    script: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        named = f" of the script `{self.script}`" if self.script else ""
        steps = ", ".join(self.steps)
        return (
            f"turn {self.turn + 1}: {len(self.steps)} step(s){named} were never asked for: {steps}"
        )


class _Steps:
    """One script of one turn, and how far it was read."""

    def __init__(self, name: str, script: Mapping[str, Any]) -> None:
        self.name = name
        self.when = _compiled(name, script.get("when"))
        self.steps = tuple(step for given in script["steps"] for step in _repeated(given))
        self.position = 0

    @property
    def rest(self) -> tuple[Mapping[str, Any], ...]:
        """Steps that no request has taken yet."""
        return self.steps[self.position :]

    def fits(self, request: ModelRequest) -> bool:
        """Tell whether every pattern of ``when`` matches."""
        return all(pattern.matches(seen(request, key)) for key, pattern in self.when.items())

    def mismatch(self, request: ModelRequest) -> str:
        """Say why a request does not fit."""
        found = (
            str(difference)
            for key, pattern in self.when.items()
            for difference in pattern.differences(seen(request, key), path=key)
        )
        return f"`{self.name}` does not match ({next(found, '')})"

    def take(self) -> Taken:
        """Take the next step."""
        taken = Taken(self.name, self.position, self.steps[self.position])
        self.position += 1
        return taken


def _repeated(step: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give a step once for each request that it answers."""
    fault = step.get("fault")
    if fault is not None and fault not in FAULTS:
        close = difflib.get_close_matches(str(fault), FAULTS, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(FAULTS)}"
        raise UsageError(f"there is no fault `{fault}`; {hint}")
    return repeat(step, step.get("times") or 1)


def _compiled(name: str, when: Mapping[str, Any] | None) -> dict[str, Pattern]:
    if not when:
        return {}
    from evalkit.matching import compile_pattern

    for key in when:
        if key not in WHEN_KEYS:
            close = difflib.get_close_matches(key, WHEN_KEYS, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(WHEN_KEYS)}"
            raise UsageError(f"script `{name}`: `when` cannot look at `{key}`; {hint}")
    return {key: compile_pattern(pattern) for key, pattern in when.items()}


def seen(request: ModelRequest, key: str) -> JSON:
    """Give the part of a request that a pattern looks at."""
    if key == "messages":
        return [{"role": one.role, "content": one.text} for one in request.messages]
    if key == "tools":
        return [tool.name for tool in request.tools]
    return getattr(request, key)


class Script:
    """All scripts of a trial, and how far each was read.

    Parameters
    ----------
    turns
        For each turn its scripts by name: ``{"chat": {"when": {...} | None, "steps": [...]}}``.

    Raises
    ------
    UsageError
        If a ``when`` cannot be understood.

    Examples
    --------
    >>> script = Script([{"": {"steps": [{"text": "Hello."}]}}])
    >>> script.take(ModelRequest("anthropic", "m")).step
    {'text': 'Hello.'}
    >>> script.left_over()
    ()
    """

    def __init__(self, turns: Sequence[Mapping[str, Mapping[str, Any]]]) -> None:
        self._turns = [
            [_Steps(name, script) for name, script in scripts.items()] for scripts in turns
        ]
        self.turn = 0

    def advance(self, turn: int) -> tuple[LeftOver, ...]:
        """Go on to a turn, from 0, and list the steps that the one before has left over."""
        left = self.left_over() if turn != self.turn else ()
        self.turn = turn
        return left

    def left_over(self) -> tuple[LeftOver, ...]:
        """List the steps of this turn that no request has taken yet."""
        return tuple(
            LeftOver(self.turn, script.name, tuple(map(describe, script.rest)))
            for script in self._here()
            if script.rest
        )

    def take(self, request: ModelRequest) -> Taken:
        """Take the step that answers a request.

        Raises
        ------
        Unscripted
            If there is none, two scripts claim the request, or no model could answer
            it so: the step asks for a tool that the request does not offer, say.
        """
        script = self._script_for(request)
        if not script.rest:
            named = f" `{script.name}`" if script.name else ""
            raise Unscripted(
                f"all {len(script.steps)} step(s) of the script{named} of turn {self.turn + 1} "
                f"were used before this request ({_told(request)})"
            )
        _check_offered(script.rest[0], request)
        if problem := why_impossible(script.rest[0], request):
            raise Unscripted(problem)
        return script.take()

    def _script_for(self, request: ModelRequest) -> _Steps:
        here = self._here()
        fitting = [script for script in here if script.when and script.fits(request)]
        fitting = fitting or [script for script in here if not script.when]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = " and ".join(f"`{script.name}`" for script in fitting)
            raise Unscripted(
                f"the scripts {names} of turn {self.turn + 1} both match this request "
                f"({_told(request)}); make their `when` exclude each other",
                code="ambiguous_script",
            )
        raise Unscripted(f"{self._why_none(request)} ({_told(request)})")

    def _why_none(self, request: ModelRequest) -> str:
        here = self._here()
        if not here:
            return f"turn {self.turn + 1} has no script: no model call was expected"
        reasons = "; ".join(script.mismatch(request) for script in here)
        return f"no script of turn {self.turn + 1} is for this request: {reasons}"

    def _here(self) -> list[_Steps]:
        return self._turns[self.turn] if self.turn < len(self._turns) else []

    def restore(self, events: Iterable[Event]) -> None:
        """Take again the steps that a ledger says were taken."""
        for turn, name in _taken(events):
            scripts = self._turns[turn] if turn < len(self._turns) else []
            for script in scripts:
                if script.name == name and script.rest:
                    script.take()


def _taken(events: Iterable[Event]) -> Iterator[tuple[int, str]]:
    for event in events:
        if event.kind == "model_call" and event.data.get("script") is not None:
            yield event.data["turn"], event.data["script"]


def describe(step: Mapping[str, Any]) -> str:
    """Write a step in a few words.

    Examples
    --------
    >>> describe({"tools": [{"tool": "book", "args": {"flight_id": "AA123"}}]})
    "tool book {'flight_id': 'AA123'}"
    """
    if "fault" in step:
        return f"fault {step['fault']}"
    uses = [f"{use['tool']} {_shown(use.get('args') or {})}" for use in step.get("tools") or ()]
    if uses:
        return f"tool {' and '.join(uses)}"
    key = next((key for key in ("json", "refusal", "text") if key in step), "text")
    return f"{key} {_shown(step.get(key))}"


def _shown(value: JSON) -> str:
    from evalkit.matching import show

    return show(value)


def _check_offered(step: Mapping[str, Any], request: ModelRequest) -> None:
    offered = [tool.name for tool in request.tools]
    if "" in offered:
        return  # some of the tools are known to the provider alone
    for use in step.get("tools") or ():
        if use["tool"] not in offered:
            close = difflib.get_close_matches(use["tool"], offered, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"it offers: {', '.join(offered)}"
            raise Unscripted(
                f"the next step asks for the tool `{use['tool']}`, but the agent's request does "
                f"not offer it; {hint if offered else 'it offers none'} "
                "(a model that asks for a tool that is not there is `fault: wrong_tool`)"
            )


def _told(request: ModelRequest) -> str:
    """Tell a request in a few words."""
    results = [part for part in request.history[-1:] if hasattr(part, "content")]
    last = "brings a tool result" if results else f"the user says {_shown(request.user)}"
    return f"model {request.model}, {last}"
