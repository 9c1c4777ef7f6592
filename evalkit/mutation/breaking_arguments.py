"""Operators on arguments: changed by what they look like, left out, made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evalkit.matching import show
from evalkit.mutation.altering import with_changed_call
from evalkit.mutation.records import Mutant, Subject
from evalkit.mutation.toolset import stand_in
from evalkit.mutation.values import Look, changed_value, look_of


def change(look: Look) -> Callable[[Subject], Iterator[Mutant]]:
    """Make the operator that changes each argument of one look."""

    def breaks(subject: Subject) -> Iterator[Mutant]:
        for position, call in enumerate(subject.trace.tool_calls):
            known = subject.tools.properties(call.name)
            for name, value in (call.args or {}).items():
                if look_of(name, value) == look:
                    new = changed_value(name, value, schema=known.get(name))
                    what = f"{call.name} with {name} {show(new)} instead of {show(value)}"
                    args = {**(call.args or {}), name: new}
                    yield _with_args(subject, position, args=args, what=what, argument=name)

    return breaks


def drop_argument(subject: Subject) -> Iterator[Mutant]:
    """Leave out each argument in turn."""
    for position, call in enumerate(subject.trace.tool_calls):
        for name in call.args or {}:
            args = {key: value for key, value in (call.args or {}).items() if key != name}
            what = f"{call.name} without {name}"
            yield _with_args(subject, position, args=args, what=what, argument=name)


def add_argument(subject: Subject) -> Iterator[Mutant]:
    """Give each argument that the tool declares and the call did not use."""
    for position, call in enumerate(subject.trace.tool_calls):
        if call.args is None:
            continue
        for name, schema in subject.tools.properties(call.name).items():
            # What a call lacks that failed is what it failed of.
            if name not in call.args and call.status in ("ok", "unknown"):
                value = stand_in(schema)
                what = f"{call.name} with {name} {show(value)} besides"
                args = {**call.args, name: value}
                yield _with_args(subject, position, args=args, what=what)


def _with_args(
    subject: Subject, position: int, *, args: dict[str, object], what: str, argument: str = ""
) -> Mutant:
    trace = with_changed_call(subject.trace, position, args=args)
    turn = subject.trace.tool_calls[position].turn
    return Mutant(what, trace, turn, position, argument=argument)
