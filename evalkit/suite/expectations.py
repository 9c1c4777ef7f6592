"""What must happen: ``expect``, of a scenario or of one turn.

Each short form is turned into the one long form, so a grader meets only tuples,
mappings and records. Texts under ``contains`` and ``not_contains`` ignore case;
``equals`` and ``regex`` (searched anywhere) do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from evalkit.suite.call_order import order_problems
from evalkit.suite.fields import (
    Amount,
    FixturePath,
    Flag,
    Json,
    Name,
    Names,
    NonEmpty,
    Number,
    Pattern,
    Position,
    Rate,
    Regexes,
    RelativePath,
    Request,
    SeveralProblems,
    SuiteModel,
    Texts,
    named,
)

Freedom: TypeAlias = Literal["free", "forbid"]
CallOrder: TypeAlias = Literal["any", "in_order", "exact"]
ExpectedStatus: TypeAlias = Literal["ok", "error", "denied", "timeout", "any"]


class Count(SuiteModel):
    """How many: ``n`` is written for exactly n, ``{min, max}`` for a range."""

    min: Amount = 0
    max: Amount | None = None
    """``None``: no upper bound."""

    @model_validator(mode="before")
    @classmethod
    def _exact_number(cls, data: Any) -> Any:
        if isinstance(data, int) and not isinstance(data, bool):
            return {"min": data, "max": data}
        if data == {}:
            raise ValueError("is empty: write a number, or {min: 1, max: 3}")
        return data

    @field_validator("max")
    @classmethod
    def _in_order(cls, most: int | None, info: ValidationInfo) -> int | None:
        least = info.data.get("min")
        if most is not None and least is not None and most < least:
            raise ValueError(f"max ({most}) must be at least min ({least})")
        return most


class Times(Count):
    """How often an expected call may be matched; ``min`` is 1 unless given."""

    min: Amount = 1

    @field_validator("max")
    @classmethod
    def _at_least_once(cls, most: int | None) -> int | None:
        if most == 0:
            raise ValueError("an expected call that may never happen: write it under `forbid`")
        return most


class CallExpect(SuiteModel):
    """One expected tool call.

    Written ``name``, ``{name: {argument: value}}`` or in the long form with the
    keys below.
    """

    id: Name | None = None
    """For ``after`` and ``$ref``."""
    tool: Name
    args: Mapping[str, Pattern] = {}
    """Arguments that must match; ``{}`` means "called at all"."""
    after: Names = ()
    """Ids of expected calls that must have been made before this one."""
    times: Times | None = None
    """``None``: one call, and further equal calls count as extra calls."""
    status: ExpectedStatus | None = None
    """``None``: the file does not say."""
    extra_args: Freedom = "free"
    turn: Position | None = None
    """Position in the scenario's ``turns``; the first is 1."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any, info: ValidationInfo) -> Any:
        data = named(data, name="tool", body="args", keys=cls.written_keys())
        if isinstance(data, dict) and (info.context or {}).get("strict"):
            return {"extra_args": "forbid", **data}
        return data

    @property
    def times_min(self) -> int:
        """How many calls must match."""
        return 1 if self.times is None else self.times.min

    @property
    def times_max(self) -> int | None:
        """How many calls may match; ``None`` for any number."""
        return None if self.times is None else self.times.max


def _allowed_tools(value: Any) -> Any:
    """Turn ``{allow: [names]}`` into the tuple of names."""
    if isinstance(value, str) and value not in ("free", "forbid"):
        raise ValueError(f"must be free, forbid or {{allow: [tools]}}, not {value!r}")
    if isinstance(value, dict):
        if set(value) != {"allow"}:
            raise ValueError("must be free, forbid or {allow: [tools]}")
        allowed = value["allow"]
        return (allowed,) if isinstance(allowed, str) else allowed
    return value


def _freedom_kind(value: Any) -> str:
    return "<names>" if isinstance(value, list | tuple) else "<word>"


ExtraCalls = Annotated[
    Annotated[Freedom, Tag("<word>")] | Annotated[tuple[Name, ...], Tag("<names>")],
    Discriminator(_freedom_kind),
    BeforeValidator(_allowed_tools),
]


class ToolsExpect(SuiteModel):
    """The expected tool calls; no calls and ``extra_calls: forbid`` mean "no tool at all".

    Written as a list of calls or in the long form with the keys below. ``[]`` and
    ``strict`` are resolved into ``extra_calls`` and ``extra_args`` here.
    """

    order: CallOrder = "any"
    extra_calls: ExtraCalls = "free"
    """``free``, ``forbid``, or the names of the tools that may be called besides."""
    calls: tuple[CallExpect, ...]

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, list | tuple):
            data = {"calls": data}
        if not isinstance(data, dict) or "extra_calls" in data:
            return data
        strict = (info.context or {}).get("strict")
        if strict or data.get("calls") in ([], ()):
            return {**data, "extra_calls": "forbid"}
        return data

    @field_validator("calls")
    @classmethod
    def _consistent(cls, calls: tuple[CallExpect, ...]) -> tuple[CallExpect, ...]:
        found = list(order_problems(calls))
        if found:
            raise SeveralProblems(found)
        return calls


class TextExpect(NonEmpty):
    """Checks of a text."""

    contains: Texts = ()
    """All of these, whatever their case."""
    not_contains: Texts = ()
    """None of these, whatever their case."""
    regex: Regexes = ()
    """All of these are found somewhere in the text."""
    equals: str | None = None


class ReplyExpect(TextExpect):
    """Checks of the agent's reply (the last one, of a scenario or of a turn)."""

    one_of: Texts = ()
    """The reply equals one of these."""
    json_schema: Mapping[str, Json] | None = None
    """The reply is JSON that this JSON Schema accepts."""
    max_chars: Amount | None = None


class RowChanges(NonEmpty):
    """How many rows of one table were inserted, updated and deleted."""

    inserted: Count | None = None
    updated: Count | None = None
    deleted: Count | None = None


class DatabaseExpect(SuiteModel):
    """One look at a database after the trial: a query's rows, or changes against the fixture."""

    database: RelativePath | None = None
    """Which of the scenario's databases; may be left out if there is one."""
    query: Name | None = None
    rows: tuple[Pattern, ...] | None = None
    """Each row a list of values or a mapping by column."""
    order: Literal["exact", "any"] = "exact"
    n_rows: Count | None = None
    changes: Annotated[Mapping[str, RowChanges], Field(min_length=1)] | None = None
    """By table."""

    @model_validator(mode="after")
    def _says_something(self) -> DatabaseExpect:
        looks = self.rows is not None or self.n_rows is not None
        if self.query is not None and not looks:
            raise ValueError("has a query but expects nothing of it: add `rows` or `n_rows`")
        if self.query is None and looks:
            raise ValueError("`rows` and `n_rows` need a `query`")
        if self.query is None and self.changes is None:
            raise ValueError("write `query` with `rows` or `n_rows`, or `changes`")
        return self


class FileExpect(TextExpect):
    """Checks of one file; ``true`` and ``false`` are short for ``{exists: ...}``."""

    exists: Flag = True
    same_as: FixturePath | None = None
    """A fixture with the same bytes."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"exists": data} if isinstance(data, bool) else data

    @model_validator(mode="after")
    def _possible(self) -> FileExpect:
        if not self.exists and self.model_fields_set - {"exists"}:
            raise ValueError("a file that must not exist can have no content: keep one of the two")
        return self


class HttpExpect(SuiteModel):
    """An expected request to the outside.

    Written ``POST https://...``, ``{POST https://...: {json: ...}}`` or in the long form.
    """

    request: Request
    json_body: Pattern | None = Field(None, alias="json")
    body: TextExpect | None = None
    headers: Mapping[str, Pattern] = {}
    times: Times | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return request_form(data, keys=cls.written_keys())


def request_form(data: Any, *, keys: tuple[str, ...]) -> Any:
    """Turn ``METHOD url`` and ``{METHOD url: {...}}`` into a mapping with ``request``."""
    if isinstance(data, str):
        return {"request": data}
    if isinstance(data, dict) and len(data) == 1:
        request, rest = next(iter(data.items()))
        if request not in keys and isinstance(rest, dict):
            return {"request": request, **rest}
    return data


class ErrorsExpect(NonEmpty):
    """Errors that the agent logged or raised; a number is short for ``{count: n}``."""

    count: Count | None = None
    contains: Texts = ()
    not_contains: Texts = ()
    regex: Regexes = ()

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        if isinstance(data, int) and not isinstance(data, bool):
            return {"count": data}
        return data


class PathExpect(SuiteModel):
    """How sane the route must be; attempts count, also failed ones."""

    max_ratio: Annotated[Number, Field(ge=1)] = 2.0
    """Tool calls made over tool calls expected."""
    poll: Names = ()
    """Tools that may be called again with the same arguments."""
    max_model_calls: Amount | None = None
    max_tool_calls: Amount | None = None
    max_tokens: Amount | None = None
    max_usd: Number | None = None
    max_seconds: Number | None = None


class ToolLimits(NonEmpty):
    """Limits for one tool, on its own spans."""

    max_latency_s: Number | None = None
    """For each call."""
    max_error_rate: Rate | None = None
    """Failed calls over all calls."""


class RetrieverExpect(SuiteModel):
    """Which documents a retriever must find."""

    relevant: Annotated[Names, Field(min_length=1)]
    """Ids of the documents that should be found."""
    k: Position | None = None
    """Only the first k documents count; ``None``: all."""
    min_recall: Rate = 1.0
    name: Name | None = None
    """Name of the retriever's span; may be left out if there is one."""


class ComponentExpect(NonEmpty):
    """Limits for single parts of the agent, to localise a failure."""

    tools: Annotated[Mapping[str, ToolLimits], Field(min_length=1)] | None = None
    retriever: RetrieverExpect | None = None


def _path_kind(value: Any) -> str:
    return "<off>" if value is False else "<limits>"


PathChoice = Annotated[
    Annotated[PathExpect, Tag("<limits>")] | Annotated[Literal[False], Tag("<off>")],
    Discriminator(_path_kind),
]


class Expect(NonEmpty):
    """What must have happened; ``None`` means that nothing is said about it."""

    tools: ToolsExpect | None = None
    reply: ReplyExpect | None = None
    replies: Count | None = None
    """How many replies came."""
    database: Annotated[tuple[DatabaseExpect, ...], Field(min_length=1)] | None = None
    files: Annotated[Mapping[RelativePath, FileExpect], Field(min_length=1)] | None = None
    state: Annotated[Mapping[str, Pattern], Field(min_length=1)] | None = None
    """By dotted path into what the agent's ``state()`` gives."""
    http: Annotated[tuple[HttpExpect, ...], Field(min_length=1)] | None = None
    prompt: TextExpect | None = None
    """What the model was sent."""
    log: TextExpect | None = None
    errors: ErrorsExpect | None = None
    path: PathChoice | None = None
    """``None``: the defaults of :class:`PathExpect`; ``False``: the route is not judged."""
    component: ComponentExpect | None = None
