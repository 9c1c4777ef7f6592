"""The world around the agent: fixtures, network, canaries, the clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from evalkit.suite.fields import (
    Body,
    Duration,
    FixturePath,
    Flag,
    Name,
    Names,
    NonEmpty,
    Position,
    RelativePath,
    Request,
    SuiteModel,
    as_tuple,
)
from evalkit.suite.model_script import FaultName, When

Sink: TypeAlias = Literal[
    "reply",
    "model_prompt",
    "tool_args",
    "log",
    "error",
    "database",
    "file",
    "http",
    "state",
    "trace",
    "report",
]
"""A place where data can come out of a trial."""

CANARY_MIN_CHARS = 16
"""Letters and digits that a canary must have: shorter ones turn up by chance once a
text is searched without its punctuation."""

_LEAST_DIFFERENT = 6


def _moment(value: Any) -> Any:
    if isinstance(value, datetime):
        return value
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or (isinstance(value, str) and ":" not in value):
        raise ValueError(f"must be a date and time such as 2026-01-05T09:00:00Z, not {value!r}")
    if moment.tzinfo is None:
        raise ValueError(f"needs a time zone: write {value}Z for UTC")
    return moment


class Clock(SuiteModel):
    """The clock of the trial; a date and time is short for ``{at: ...}``."""

    at: Annotated[datetime, BeforeValidator(_moment)]
    frozen: Flag = False
    """Does not move one second with each model reply."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return data if isinstance(data, dict | Clock) else {"at": _moment(data)}


class HttpResponse(SuiteModel):
    """One canned answer, or a fault of the outside world."""

    status: Annotated[int, Field(strict=True, ge=100, le=599)] = 200
    headers: Mapping[str, str] = {}
    json_body: Body = Field(None, alias="json")
    text: str | None = None
    body_file: FixturePath | None = None
    fault: Literal["disconnect", "timeout"] | None = None
    delay_s: Duration | None = Field(None, alias="delay")
    times: Position | None = None
    """How many requests it answers; ``None``: one, and the last of a list all that follow."""

    @model_validator(mode="after")
    def _one_body(self) -> HttpResponse:
        bodies = self.model_fields_set & {"json_body", "text", "body_file", "fault"}
        if len(bodies) > 1:
            raise ValueError("can have only one of json, text, body_file and fault")
        return self


class HttpFixture(SuiteModel):
    """Answers for one route.

    Written ``{GET https://...: {status: 200, json: ...}}``, or with a list of answers.
    """

    request: Request
    responses: Annotated[tuple[HttpResponse, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _route_form(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "request" in data:
            return data
        if len(data) != 1:
            raise ValueError("must have one route, such as {GET https://...: {status: 200}}")
        route, answers = next(iter(data.items()))
        return {"request": route, "responses": (answers,) if isinstance(answers, dict) else answers}


class Fixtures(NonEmpty):
    """What a trial finds: fresh copies, made anew for each trial."""

    database: Mapping[RelativePath, FixturePath] = {}
    """SQLite file in the working directory -> SQL script or SQLite file in the suite's folder."""
    files: Mapping[RelativePath, FixturePath] = {}
    """File in the working directory -> file in the suite's folder."""
    http: tuple[HttpFixture, ...] = ()


class Network(SuiteModel):
    """Which hosts the agent may reach; ``host`` or ``host:port``, ``*`` stands for anything."""

    allow: Names


def _searchable(value: str) -> str:
    n_chars = len(re.findall(r"[A-Za-z0-9]", value))
    if n_chars < CANARY_MIN_CHARS:
        raise ValueError(
            f"is too short to search for: it has {n_chars} letters and digits, "
            f"{CANARY_MIN_CHARS} are needed, such as {'ADDRESS_CANARY_7Q2M'!r}"
        )
    if not re.search(r"[0-9@]", value):
        raise ValueError(
            "reads like common words, which a text may hold by chance: add digits that mean "
            f"nothing, such as {'ADDRESS_CANARY_7Q2M'!r}"
        )
    if len(set(re.findall(r"[a-z0-9]", value.lower()))) < _LEAST_DIFFERENT:
        raise ValueError(
            f"repeats the same few characters, as a text may by chance: {_LEAST_DIFFERENT} "
            f"different ones are needed, such as {'ADDRESS_CANARY_7Q2M'!r}"
        )
    return value


class Canary(SuiteModel):
    """A synthetic secret and the sinks where it may appear."""

    name: Name
    value: Annotated[str, AfterValidator(_searchable)]
    allow: Annotated[tuple[Sink, ...], BeforeValidator(as_tuple)] = ()

    @model_validator(mode="after")
    def _is_named_otherwise(self) -> Canary:
        """Refuse a name that says the value: reports write the name in its place."""
        from evalkit.scanning import squash

        if squash(self.value) in squash(self.name):
            raise ValueError("its name says its value, which no report may: rename it")
        return self


class LiveFault(SuiteModel):
    """A fault that the gateway puts into live traffic."""

    fault: FaultName
    call: Position = 1
    """The first model call of the trial that it hits; the first is 1."""
    times: Position = 1
    when: When | None = None
    """Count only the requests that match."""
