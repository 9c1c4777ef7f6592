"""The scripted model: what it answers, step by step, and which faults it has.

A script is a list of steps, consumed one a request. ``model: []`` says that the
agent calls no model. A mapping holds several scripts by name; ``when`` tells
which requests a script answers, and one script may do without it and take the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from evalkit.suite.fields import (
    Json,
    Name,
    Pattern,
    Position,
    SeveralProblems,
    SuiteModel,
    named,
    one_of_words,
    suggestion,
)
from evalkit.when_keys import WHEN_KEYS

FaultName: TypeAlias = Literal[
    "rate_limited",
    "overloaded",
    "server_error",
    "malformed_json",
    "truncated_stream",
    "clean_early_end",
    "truncated_tool_json",
    "disconnect",
    "timeout",
    "wrong_tool",
]
"""What can go wrong with a model's answer."""


class ToolUse(SuiteModel):
    """One tool that the scripted model asks for; short forms ``name``, ``{name: args}``."""

    tool: Name
    args: Mapping[str, Json] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return named(data, name="tool", body="args", keys=("tool", "args"))


class TextStep(SuiteModel):
    """The model answers with text."""

    text: str
    thinking: str | None = None
    """What it thinks before, for wire formats that tell."""


class ToolsStep(SuiteModel):
    """The model asks for one or several tools, with or without text before them.

    Written ``{tool: name, args: {...}}`` for one, ``{tools: [...]}`` for several.
    """

    tools: Annotated[tuple[ToolUse, ...], Field(min_length=1)]
    text: str = ""
    thinking: str | None = None
    """What it thinks before, for wire formats that tell."""

    @model_validator(mode="before")
    @classmethod
    def _single_tool(cls, data: Any) -> Any:
        if isinstance(data, dict) and "tool" in data and "tools" not in data:
            use = {key: data[key] for key in ("tool", "args") if key in data}
            rest = {key: value for key, value in data.items() if key not in use}
            return {**rest, "tools": (use,)}
        return data


class JsonStep(SuiteModel):
    """The model answers with JSON, for agents that ask for structured output."""

    null_keys = frozenset({"json"})

    json_value: Json = Field(alias="json")


class RefusalStep(SuiteModel):
    """The model refuses, in the way of the provider, with this text."""

    refusal: str


class FaultStep(SuiteModel):
    """The answer goes wrong, ``times`` requests in a row.

    ``text``, ``tool`` and ``args`` say what is cut off or, for ``wrong_tool``,
    which tool the model asks for although the agent has none of that name.
    """

    fault: FaultName
    times: Position = 1
    text: str | None = None
    tool: Name | None = None
    args: Mapping[str, Json] | None = None


STEP_KEYS = ("fault", "refusal", "json", "tools", "tool", "text")


def _step_kind(step: Any) -> str | None:
    """Tell which kind of step a mapping or a built step is."""
    if not isinstance(step, dict):
        return _STEP_KINDS.get(type(step))
    key = next((key for key in STEP_KEYS if key in step), None)
    return "<tools>" if key == "tool" else key and f"<{key}>"


_STEP_KINDS: dict[type, str] = {
    TextStep: "<text>",
    ToolsStep: "<tools>",
    JsonStep: "<json>",
    RefusalStep: "<refusal>",
    FaultStep: "<fault>",
}

Step = Annotated[
    Annotated[TextStep, Tag("<text>")]
    | Annotated[ToolsStep, Tag("<tools>")]
    | Annotated[JsonStep, Tag("<json>")]
    | Annotated[RefusalStep, Tag("<refusal>")]
    | Annotated[FaultStep, Tag("<fault>")],
    Discriminator(
        _step_kind,
        custom_error_type="no_step",
        custom_error_message=f"a step is a mapping with one of the keys {one_of_words(STEP_KEYS)}",
    ),
]


def _check_when(when: Mapping[str, Json]) -> Mapping[str, Json]:
    """Refuse a pattern on what no request has: it would end each trial."""
    known = f" It may look at {one_of_words(WHEN_KEYS)}."
    unknown = [
        ((key,), f"`when` cannot look at `{key}`.{suggestion(key, WHEN_KEYS) or known}")
        for key in when
        if key not in WHEN_KEYS
    ]
    if unknown:
        raise SeveralProblems(unknown)
    return when


When = Annotated[
    Mapping[str, Pattern],
    AfterValidator(_check_when),
    Field(json_schema_extra={"propertyNames": {"enum": list(WHEN_KEYS)}}),
]
"""Patterns on a request to the model, by what they look at."""


class Script(SuiteModel):
    """The steps for the requests that ``when`` matches (all, if it is ``None``)."""

    when: When | None = None
    """Patterns on the request, such as ``{system: {$contains: analyst}}``."""
    steps: tuple[Step, ...]

    @model_validator(mode="before")
    @classmethod
    def _bare_steps(cls, data: Any) -> Any:
        return {"steps": data} if isinstance(data, list | tuple) else data


class ModelScript(SuiteModel):
    """What the model answers in one turn, as scripts by name.

    The plain list form is one script named ``""``. No script at all (``[]``)
    says that the agent calls no model.
    """

    scripts: Mapping[str, Script] = {}

    @model_validator(mode="before")
    @classmethod
    def _written_form(cls, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, list | tuple):
            return {"scripts": {"": {"steps": data}} if data else {}}
        if isinstance(data, dict) and (
            "scripts" not in data or (info.context or {}).get("authored")
        ):
            return {"scripts": _named_scripts(data)}
        return data

    @field_validator("scripts")
    @classmethod
    def _one_takes_the_rest(cls, scripts: Mapping[str, Script]) -> Mapping[str, Script]:
        without = [name for name, script in scripts.items() if script.when is None]
        if len(without) > 1:
            raise ValueError(
                f"the scripts {' and '.join(f'`{name}`' for name in without)} have no `when`: "
                "only one may do without and take the rest"
            )
        return scripts

    @property
    def is_silent(self) -> bool:
        """Tell whether the agent must not call a model at all."""
        return not self.scripts


def _named_scripts(data: dict[str, Any]) -> dict[str, Any]:
    if not data:
        raise ValueError("is empty: write [] if the agent calls no model")
    if "steps" in data or "when" in data:
        raise ValueError(
            "a script with `when` needs a name: {analysis: {when: {...}, steps: [...]}}"
        )
    return data
