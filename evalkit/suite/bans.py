"""What must not happen: ``forbid``, of a scenario or of one turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, field_validator, model_validator

from evalkit.suite.call_order import references
from evalkit.suite.fields import (
    Json,
    Name,
    NonEmpty,
    Pattern,
    Regexes,
    RelativePath,
    Request,
    SeveralProblems,
    SuiteModel,
    Texts,
    as_tuple,
    named,
)


class ForbiddenCall(SuiteModel):
    """A tool call that must not be attempted; short forms as for expected calls."""

    tool: Name
    args: Mapping[str, Pattern] = {}
    """Only calls whose arguments match; ``{}``: all calls."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return named(data, name="tool", body="args", keys=("tool", "args"))

    @field_validator("args")
    @classmethod
    def _no_reference(cls, args: Mapping[str, Json]) -> Mapping[str, Json]:
        """Refuse ``$ref``: where it has no value the ban would never fire."""
        found = [path for path, _ in references(args)]
        if found:
            raise SeveralProblems((path, "a ban cannot refer to a result") for path in found)
        return args


class ForbiddenText(NonEmpty):
    """Texts of which none may occur; a text or a list is short for ``{contains: ...}``."""

    contains: Texts = ()
    regex: Regexes = ()

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"contains": data} if isinstance(data, str | list | tuple) else data


def _listed_calls(value: Any) -> Any:
    """Turn one name, or a mapping of names to arguments, into a list of calls."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, dict) and "tool" not in value:
        return tuple({"tool": name, "args": args} for name, args in value.items())
    return value


class Forbid(NonEmpty):
    """What must not happen; it covers attempts that failed, and always wins."""

    tools: Annotated[tuple[ForbiddenCall, ...], BeforeValidator(_listed_calls)] = ()
    reply: ForbiddenText | None = None
    """In any reply, not only the last."""
    prompt: ForbiddenText | None = None
    log: ForbiddenText | None = None
    errors: ForbiddenText | None = None
    http: Annotated[tuple[Request, ...], BeforeValidator(as_tuple)] = ()
    files: Annotated[tuple[RelativePath, ...], BeforeValidator(as_tuple)] = ()
    """Files that must not be written, changed or removed; ``*`` stands for anything."""
