"""The suite and its scenarios, as frozen models of the suite file.

The models hold the *normalised* form: short forms are spelt out, ``input`` is one
user turn, durations are seconds, ``strict`` and ``defaults`` are resolved. They
check what one value can tell; what needs the whole scenario or the whole suite is
checked in :mod:`evalkit.suite.checks`, and reading files is :mod:`evalkit.suite.loading`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from evalkit.suite.bans import Forbid
from evalkit.suite.delivery import Delivery, ReplySource
from evalkit.suite.expectations import Expect
from evalkit.suite.fields import (
    Amount,
    Duration,
    Flag,
    Json,
    Name,
    Names,
    NonEmpty,
    Number,
    Rate,
    SuiteModel,
    named,
    suggestion,
)
from evalkit.suite.fixtures import (
    Canary,
    Clock,
    Fixtures,
    LiveFault,
    Network,
)
from evalkit.suite.journey import DeliverTurn, Turn, UserTurn

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_ENTRY = re.compile(rf"{_DOTTED}:{_DOTTED}")


def _check_id(text: str) -> str:
    if not _ID.fullmatch(text) or text.endswith("."):
        raise ValueError(
            "is also a file name: use up to 100 letters, digits, `-`, `_` and `.`, "
            f"starting with a letter or digit, not {text!r}"
        )
    return text


def _check_variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(f"a name may have letters, digits and `_` only, not {text!r}")
    return text


def _check_entry(text: str) -> str:
    if not _ENTRY.fullmatch(text):
        raise ValueError(f"must be module:name, such as my_agent.app:agent, not {text!r}")
    return text


Id = Annotated[str, AfterValidator(_check_id)]
Variable = Annotated[str, AfterValidator(_check_variable)]


class GraderUse(SuiteModel):
    """A grader by name, with its parameters; short forms ``name``, ``{name: {...}}``."""

    name: Name
    params: Mapping[str, Json] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return named(data, name="name", body="params", keys=("name", "params"))


class Budget(NonEmpty):
    """What a trial may use in the live and quality lanes; exceeding is ``incomplete``."""

    model_calls: Amount | None = None
    tokens: Amount | None = None
    usd: Number | None = None
    seconds: Number | None = None


class Quality(NonEmpty):
    """Which rubrics a judge scores, or why the scenario is out of quality scope."""

    rubrics: Names = ()
    skip: Name | None = None
    """The reason."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Quality:
        if bool(self.rubrics) == bool(self.skip):
            raise ValueError("write either `rubrics` (at least one) or `skip` with a reason")
        return self


def _turns_from_input(data: dict[str, Any]) -> dict[str, Any]:
    """Spell ``input`` and the scenario's ``model`` out as turns, where that can be done.

    What cannot be is left in place, and so reported as a key that does not belong there.
    """
    if "turns" not in data and "input" in data:
        rest = {key: value for key, value in data.items() if key not in ("input", "model")}
        turn = {"user": data["input"]}
        if "model" in data:
            turn["model"] = data["model"]
        return {**rest, "turns": (turn,)}
    if data.get("model") == [] and isinstance(data.get("turns"), list | tuple):
        rest = {key: value for key, value in data.items() if key != "model"}
        turns = (_silent(turn) if isinstance(turn, dict) else turn for turn in data["turns"])
        return {**rest, "turns": tuple(turns)}
    return data


def _silent(turn: dict[str, Any]) -> dict[str, Any]:
    return {"model": [], **turn}


class Scenario(SuiteModel):
    """One user journey: turns, fixtures and expectations."""

    id: Id
    tags: Names = ()
    vars: Mapping[Variable, str] = {}
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]
    clock: Clock | None = None
    env: Mapping[Variable, str] = {}
    deadline_s: Duration = Field(60.0, alias="deadline")
    """The agent's own time; waits for a live model are not counted."""
    fixtures: Fixtures | None = None
    network: Network | None = None
    canaries: tuple[Canary, ...] = ()
    deliver: Delivery | None = None
    reply_from: ReplySource | None = None
    faults: tuple[LiveFault, ...] = ()
    expect: Expect | None = None
    forbid: Forbid | None = None
    graders: tuple[GraderUse, ...] = ()
    must_pass: Flag = False
    min_pass_rate: Rate | None = None
    budget: Budget | None = None
    quality: Quality | None = None
    cluster: Name | None = None
    """Scenarios of one cluster are not independent of each other."""
    hash: str = ""
    """SHA-256 over everything in it that can change a result."""
    shape: Literal["suite", "record"] = "suite"
    """``record``: it came from an older golden-set record."""

    hidden_keys = frozenset({"hash", "shape"})

    @model_validator(mode="before")
    @classmethod
    def _written_form(cls, data: Any) -> Any:
        return _turns_from_input(data) if isinstance(data, dict) else data

    @classmethod
    def written_keys(cls) -> tuple[str, ...]:
        """Give the keys as they are written: ``input`` and ``model`` become turns."""
        return (*super().written_keys(), "input", "model")

    @property
    def input(self) -> str:
        """What the user says first; empty if nobody says anything."""
        return next((turn.user for turn in self.turns if isinstance(turn, UserTurn)), "")

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """Every way in which a turn reaches the agent without a call."""
        own = (turn.deliver for turn in self.turns if isinstance(turn, DeliverTurn))
        shared = () if self.deliver is None else (self.deliver,)
        return (*shared, *own)

    @property
    def is_scripted(self) -> bool:
        """Tell whether every user turn and delivery has a model script."""
        return all(
            turn.model is not None
            for turn in self.turns
            if isinstance(turn, UserTurn | DeliverTurn)
        )


class Price(SuiteModel):
    """US dollars for a million tokens of one model."""

    input: Number
    output: Number
    cache_read: Number | None = None
    cache_write: Number | None = None


class HttpAgent(SuiteModel):
    """An agent that is reached over HTTP: started inside, or (live lane) at a ``url``."""

    command: tuple[str, ...] = ()
    serve: Annotated[str, AfterValidator(_check_entry)] | None = None
    """``module:function`` that serves until the trial ends, in the trial's own process."""
    port: Annotated[int, Field(strict=True, ge=1, le=65535)] | None = None
    """Where it listens; an agent that only polls does without."""
    path: str = "/"
    url: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"url": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _reachable(self) -> HttpAgent:
        ways = (bool(self.command), self.serve is not None, self.url is not None)
        if sum(ways) != 1 or (self.url is not None and self.port is not None):
            raise ValueError("write `command` or `serve`, each with `port`, or `url` alone")
        return self


class AgentEntry(SuiteModel):
    """How the agent is reached; ``module:name`` is short for ``{python: module:name}``."""

    python: Annotated[str, AfterValidator(_check_entry)] | None = None
    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    http: HttpAgent | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"python": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _one_way(self) -> AgentEntry:
        if len(self.model_fields_set) != 1:
            raise ValueError("write module:name, {command: [...]} or {http: ...}")
        return self


class Suite(SuiteModel):
    """Named scenarios with what they share."""

    name: Id = Field(alias="suite")
    agent: AgentEntry | None = None
    model_family: Name | None = None
    """Family of the agent's model: the judge must be of another one."""
    prices: Mapping[str, Price] = {}
    """Own prices by model id."""
    defaults: Mapping[str, Json] = {}
    """As written; already merged into the scenarios."""
    cluster: Variable | None = None
    """The variable in ``vars`` that tells the cluster of a scenario which names none."""
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1)]
    path: Path | None = None
    """The suite file."""
    hash: str = ""
    """SHA-256 over everything that can change a result, fixtures included."""

    hidden_keys = frozenset({"path", "hash"})

    @property
    def agent_path(self) -> str | None:
        """``module:name`` of the agent, if it is a Python object."""
        return self.agent.python if self.agent else None

    def scenario(self, id: str) -> Scenario:  # noqa: A002 - the key's name in the file
        """Give the scenario of this id.

        Raises
        ------
        KeyError
            If there is none; the message names the nearest id.
        """
        for scenario in self.scenarios:
            if scenario.id == id:
                return scenario
        hint = suggestion(id, (scenario.id for scenario in self.scenarios))
        raise KeyError(f"suite {self.name!r} has no scenario {id!r}.{hint}")

    def __len__(self) -> int:
        return len(self.scenarios)

    def __iter__(self) -> Iterator[Scenario]:  # type: ignore[override]
        """Iterate over the scenarios, not over the fields as pydantic does."""
        return iter(self.scenarios)
