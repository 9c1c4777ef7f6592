"""Matchers that look elsewhere: ``$schema`` in a JSON Schema, ``$ref`` in an earlier call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalkit.matching.nodes import (
    Builder,
    Difference,
    Node,
    Predicate,
    Refs,
    Scope,
    Unresolved,
)
from evalkit.matching.values import equal, is_list, show

_SHORT_REF = re.compile(r"(?P<call>.+?)\.(?P<field>result|args)(\.(?P<path>.+))?", re.DOTALL)
_INDEX = re.compile(r"\[(\d+)\]", re.ASCII)
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)


def _schema(raw: Any, scope: Scope) -> Node:
    """Build ``$schema: {type: object, ...}``: valid under the JSON Schema, read as it stands."""
    if not isinstance(raw, bool | Mapping):
        return scope.complain(f"takes a JSON Schema, not {show(raw)}")
    if (dialect := _dialect(raw)) is None:
        return scope.complain("names a dialect of JSON Schema that is not known: see its $schema")
    if (problem := _schema_problem(raw, dialect)) is not None:
        return scope.complain(problem)
    return Predicate(_validator(raw, dialect), f"a value valid under the schema {show(raw)}")


def _dialect(raw: Any) -> Any:
    """Find the library's class for a schema; the newest dialect unless the schema names one."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    if isinstance(raw, bool) or "$schema" not in raw:
        return Draft202012Validator
    unknown: Any = None
    return validator_for(raw, default=unknown)


def _schema_problem(raw: Any, dialect: Any) -> str | None:
    """Say what is wrong with a schema."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        dialect.check_schema(raw)
        _follow_refs(raw)
    except SchemaError as error:
        return f"is no valid JSON Schema: {error.message}"
    except (Unresolvable, ValueError) as error:
        return f"has a $ref that leads nowhere inside it: {error}"
    return None


def _validator(raw: Any, dialect: Any) -> Callable[[Any], bool]:
    """Make the test of a value."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry, or the library fetches foreign schemas from the network.
    validator = dialect(raw, registry=Registry())

    def accepts(value: Any) -> bool:
        try:
            return bool(validator.is_valid(value))
        except (RecursionError, Unresolvable):  # not shown to be valid
            return False

    return accepts


def _follow_refs(schema: Any) -> None:
    """Look up every ``$ref`` of a schema, so that none can fail during matching."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resource = DRAFT202012.create_resource(schema)
    resolver = Registry().with_resource("", resource).resolver()
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("$ref"), str):
                resolver.lookup(part["$ref"])
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _ref(raw: Any, scope: Scope) -> Node:
    """``$ref: w.result.flight.id`` or ``{call: w, path: flight.id}``: equal to that value."""
    target = _read_ref(raw)
    if target is None:
        return scope.complain(
            f"takes <call id>.result.<path> or {{call: <id>, path: <path>}}, not {show(raw)}; "
            "write $$ref for a key that is really called $ref"
        )
    scope.refer(target.call)
    return target


def _read_ref(raw: Any) -> Ref | None:
    """Read both spellings."""
    if isinstance(raw, str):
        found = _SHORT_REF.fullmatch(raw)
        return Ref(found["call"], found["field"], _steps(found["path"])) if found else None
    if not isinstance(raw, Mapping) or "call" not in raw or raw.keys() - {"call", "path"}:
        return None
    call, path = raw["call"], raw.get("path")
    if not isinstance(call, str) or not isinstance(path, str | list | None):
        return None
    return Ref(call, "result", _steps(path))


def _steps(path: str | list[Any] | None) -> tuple[str, ...]:
    """Split a dotted path; a list keeps keys that contain dots."""
    if isinstance(path, list):
        return tuple(map(str, path))
    return tuple(_INDEX.sub(r".\1", path).strip(".").split(".")) if path else ()


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """Equal to a value from an earlier call."""

    call: str
    field: str
    steps: tuple[str, ...]

    def matches(self, value: Any, refs: Refs) -> bool:
        """Compare with the value in any of the calls; raise ``Unresolved`` if there is none."""
        return any(equal(found, value) for found in self._found(refs))

    def describe(self) -> str:
        """Name the place."""
        return f"the value of {'.'.join((self.call, self.field, *self.steps))}"

    def differences(self, value: Any, refs: Refs, *, path: str) -> Iterator[Difference]:
        """Show what the place held, or that it held nothing."""
        try:
            found = self._found(refs)
        except Unresolved:
            yield Difference(path, f"{self.describe()}, which is not there", show(value))
            return
        if not any(equal(one, value) for one in found):
            yield Difference(path, f"{self.describe()}, {show(found[0])}", show(value))

    def _found(self, refs: Refs) -> list[Any]:
        """Collect the value from every call that has it."""
        known = refs.get(self.call, ())
        views = [known] if isinstance(known, Mapping) else known
        found = [value for view in views for value in _walk(view, (self.field, *self.steps))]
        if not found:
            raise Unresolved(self.describe().removeprefix("the "))
        return found


def _walk(value: Any, steps: tuple[str, ...]) -> Iterator[Any]:
    """Give the value at the end of a path, if the path leads anywhere."""
    for step in steps:
        held = _parsed(value)
        if isinstance(held, Mapping) and step in held:
            value = held[step]
        elif is_list(held) and _DIGITS.fullmatch(step) and int(step) < len(held):
            value = held[int(step)]
        else:
            return
    yield value


def _parsed(value: Any) -> Any:
    """Read a result that is JSON text: most tools answer with one."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


BUILDERS: Mapping[str, Builder] = {"$ref": _ref, "$schema": _schema}
"""Matchers of this module by key."""
