"""What a grader is: the trial that it sees, what it may return, and the registry.

A grader is a function of one :class:`Trial`. It returns ``bool``, a number in
[0, 1], ``(value, reason)`` or a :class:`~evalkit.grade.Grade`; everything is
brought into a ``Grade`` here, in one place. A grader that raises makes the trial
``incomplete``, with its traceback as the reason: it never counts as a pass or a
zero.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, overload

from evalkit.errors import GraderError
from evalkit.grade import Grade
from evalkit.ledger import JSON
from evalkit.suite import Scenario
from evalkit.trace import Trace

Outcome = Mapping[str, JSON]
"""State of the world after the trial: database, files, agent state."""

GraderFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial as graders see it.

    Examples
    --------
    A grader reads ``trial.reply``, ``trial.trace.tool_calls``,
    ``trial.scenario.vars`` and so on.
    """

    scenario: Scenario
    trace: Trace
    outcome: Outcome = field(default_factory=dict)
    trial: int = 0
    lane: str = "live"
    whole: bool = True
    """Whether the trial ran to its end; a fault seen before that still counts."""
    duration_s: float | None = None
    """How long the trial took; ``None`` where nobody measured it."""

    @property
    def reply(self) -> str:
        """The last reply of the trial."""
        return self.trace.reply


def _never(_: Trial) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Grader:
    """A registered grader."""

    name: str
    function: GraderFunction
    version: str
    """Changes with what the grader decides; part of a run's manifest."""
    applies: Callable[[Trial], bool] = _never
    """Whether a trial is graded by it though nobody named it."""
    reads_partial: bool = False
    """Whether it can tell, in a trial cut short, what is a fault already."""

    def __call__(self, trial: Trial, **params: Any) -> Grade:
        """Grade one trial; never raises for what the grader does."""
        try:
            grade = as_grade(self.name, self.function(trial, **params))
        except (Exception, SystemExit):  # a grader must not end the run either
            return Grade.incomplete(
                self.name,
                f"the grader raised:\n{traceback.format_exc(limit=-8)}",
                reason_code="grader_raised",
            )
        if trial.whole or self.reads_partial or grade.status == "incomplete":
            return grade
        return Grade.incomplete(self.name, "the trial did not run to its end")


def as_grade(grader: str, returned: object) -> Grade:
    """Bring what a grader returned into a grade.

    Raises
    ------
    GraderError
        If it is none of ``bool``, number in [0, 1], ``(value, reason)``, ``Grade``.

    Examples
    --------
    >>> as_grade("polite", (0.5, "no greeting")).passed
    False
    """
    if type(returned).__module__ == "numpy" and hasattr(returned, "item"):
        returned = returned.item()  # numpy's own bool is none of Python's
    match returned:
        case Grade():
            return returned if returned.grader == grader else replace(returned, grader=grader)
        case bool() | int() | float():
            return Grade(grader, float(returned))
        case (bool() | int() | float() as value, str(reason)):
            return Grade(grader, float(value), reason=reason)
    raise GraderError(
        f"grader {grader!r} returned {returned!r}; "
        "return a bool, a number in [0, 1], (value, reason) or a Grade"
    )


_registry: Final[dict[str, Grader]] = {}


@overload
def grader(function: GraderFunction, /) -> GraderFunction: ...


@overload
def grader(
    *, name: str | None = None, version: str | None = None
) -> Callable[[GraderFunction], GraderFunction]: ...


def grader(
    function: GraderFunction | None = None,
    /,
    *,
    name: str | None = None,
    version: str | None = None,
) -> GraderFunction | Callable[[GraderFunction], GraderFunction]:
    """Register a function of one trial as a grader.

    A suite names it under ``graders:``; its further parameters are given there.
    Defining it again in the same place (a notebook cell run twice) replaces it.

    Parameters
    ----------
    function
        Takes a :class:`Trial` and returns ``bool``, a number in [0, 1],
        ``(value, reason)`` or a :class:`~evalkit.grade.Grade`.
    name
        Defaults to the function's name.
    version
        Recorded with every run; defaults to a hash of the source.

    Returns
    -------
    callable
        The function itself.

    Raises
    ------
    GraderError
        If another grader has the name.

    Examples
    --------
    >>> @grader
    ... def says_please(trial):
    ...     "The reply says please."
    ...     return "please" in trial.reply.casefold()
    >>> find_grader("says_please").name
    'says_please'
    """

    def register(function: GraderFunction) -> GraderFunction:
        own_name = name or str(getattr(function, "__name__", ""))
        add_grader(Grader(own_name, function, version or _source_version(function)))
        return function

    return register if function is None else register(function)


def add_grader(new: Grader) -> None:
    """Put a grader into the registry.

    Raises
    ------
    GraderError
        If a grader from another place has its name already.
    """
    known = _registry.get(new.name)
    if known is not None and _place(known.function) != _place(new.function):
        raise GraderError(
            f"grader {new.name!r} is registered twice: by {_place(known.function)} and by "
            f"{_place(new.function)}; give one of them another name: @grader(name=...)"
        )
    _registry[new.name] = new


def _place(function: GraderFunction) -> str:
    module = getattr(function, "__module__", "?")
    return f"{module}.{getattr(function, '__qualname__', repr(function))}"


def _source_version(function: GraderFunction) -> str:
    """Hash what the function does: its source where there is one, else its code."""
    try:
        text = inspect.getsource(function).encode()
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = (
            repr(function).encode()
            if code is None
            else code.co_code + repr(code.co_consts).encode()
        )
    return hashlib.sha256(text).hexdigest()[:12]


def known_graders() -> tuple[str, ...]:
    """Name every registered grader."""
    return tuple(_registry)


def find_grader(name: str) -> Grader:
    """Find a grader by name.

    Raises
    ------
    GraderError
        If there is none, with the nearest name.
    """
    if name in _registry:
        return _registry[name]
    near = difflib.get_close_matches(name, _registry, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_registry)}"
    raise GraderError(f"unknown grader {name!r}; {hint}")


def graders_for(trial: Trial, *, more: Sequence[str] = ()) -> dict[str, Mapping[str, JSON]]:
    """Name the graders that a trial calls for, with their parameters.

    Parameters
    ----------
    trial
        Its scenario may name graders; built-in ones apply by its expectations.
    more
        Names of further graders.

    Returns
    -------
    dict
        Built-in graders first, in a fixed order, then ``more``, then those that
        the scenario names.
    """
    implied: dict[str, Mapping[str, JSON]] = {
        name: {} for name, registered in _registry.items() if registered.applies(trial)
    }
    named = {use.name: use.params for use in trial.scenario.graders}
    return implied | {name: {} for name in more} | named


def grade_trial(trial: Trial, *, more: Sequence[str] = ()) -> tuple[Grade, ...]:
    """Apply every grader that a trial calls for (see :func:`graders_for`)."""
    called_for = graders_for(trial, more=more)
    return tuple(find_grader(name)(trial, **params) for name, params in called_for.items())
