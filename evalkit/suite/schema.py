"""The JSON Schema of the suite file, for editors: made from the models, plus their short forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evalkit.suite.models import Scenario, Suite

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_DURATION: Schema = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^(\d+(\.\d+)?(ms|min|s|m|h|d|w))+$"},
    ],
    "description": "Seconds, or text such as 20s, 500ms, 1h30m or 2d.",
}


def suite_json_schema() -> Schema:
    """Give the JSON Schema (2020-12) of a suite file, with short and long forms.

    Examples
    --------
    >>> suite_json_schema()["properties"]["suite"]["type"]
    'string'
    """
    schema = Suite.model_json_schema(by_alias=True, mode="validation")
    definitions: dict[str, Schema] = schema["$defs"]
    for name, adapt in _SHORT_FORMS.items():
        definitions[name] = adapt(definitions[name])
    definitions["Scenario"] = _scenario(definitions["Scenario"])
    definitions["Defaults"] = _defaults(definitions["Scenario"])
    for key in Suite.hidden_keys:
        del schema["properties"][key]
    schema["properties"]["defaults"] = {"$ref": "#/$defs/Defaults"}
    schema = dict(_authored(schema))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "evalkit suite"
    return schema


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _or_short(*short: Schema) -> Callable[[Schema], Schema]:
    """Make the change that accepts short forms beside the long one."""
    return lambda long: {"anyOf": [*short, long]}


def _pair(body: Schema, *, reserved: tuple[str, ...] = (), name: str = ".*") -> Schema:
    """Give a mapping with exactly one key, which is none of the long form's."""
    names: Schema = {"pattern": f"^{name}$"}
    if reserved:
        names["not"] = {"enum": list(reserved)}
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": names,
        "additionalProperties": body,
    }


def _named(long: Schema) -> Schema:
    """Accept ``name`` and ``{name: {...}}``."""
    short = _pair({"type": "object"}, reserved=tuple(long["properties"]))
    return {"anyOf": [_TEXT, short, long]}


def _tools(long: Schema) -> Schema:
    allow = {
        "type": "object",
        "properties": {"allow": {"type": "array", "items": _TEXT}},
        "required": ["allow"],
        "additionalProperties": False,
    }
    long["properties"]["extra_calls"] = {"anyOf": [{"enum": ["free", "forbid"]}, allow]}
    return {"anyOf": [long["properties"]["calls"], long]}


def _tools_step(long: Schema) -> Schema:
    """Accept one tool, ``{tool, args}``, beside a list of them."""
    properties = long["properties"]
    single = {
        **long,
        "properties": {"tool": _TEXT, "args": {"type": "object"}, "text": properties["text"]},
        "required": ["tool"],
    }
    return {"anyOf": [single, long]}


def _script(long: Schema) -> Schema:
    return {"anyOf": [long["properties"]["steps"], long]}


def _model_script(_: Schema) -> Schema:
    steps = {"type": "array", "items": _STEP}
    scripts = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"not": {"enum": ["steps", "when"]}},
        "additionalProperties": _ref("Script"),
    }
    return {"description": "What the model answers.", "anyOf": [steps, scripts]}


def _request(long: Schema) -> Schema:
    short = _pair({"type": "object"}, name="([A-Z]+|[*]) .+")
    return {"anyOf": [_TEXT, short, long]}


def _http_fixture(long: Schema) -> Schema:
    answers = {"anyOf": [_ref("HttpResponse"), long["properties"]["responses"]]}
    return {"anyOf": [_pair(answers, name="([A-Z]+|[*]) .+"), long]}


def _forbid(long: Schema) -> Schema:
    by_name = {"type": "object", "additionalProperties": {"type": "object"}}
    calls = long["properties"]["tools"]
    long["properties"]["tools"] = {"anyOf": [_TEXT, by_name, calls]}
    return {**long, "minProperties": 1}


def _non_empty(long: Schema) -> Schema:
    return {**long, "minProperties": 1}


def _with_duration(key: str) -> Callable[[Schema], Schema]:
    def change(long: Schema) -> Schema:
        long["properties"][key] = _DURATION
        return long

    return change


def _scenario(long: Schema) -> Schema:
    """Accept ``input`` and ``model`` in the place of ``turns``; leave out what evalkit sets."""
    hidden = Scenario.hidden_keys
    properties = {key: value for key, value in long["properties"].items() if key not in hidden}
    properties |= {"deadline": _DURATION, "input": _TEXT, "model": _ref("ModelScript")}
    return {
        **long,
        "properties": properties,
        "required": ["id"],
        "oneOf": [{"required": ["input"]}, {"required": ["turns"]}],
    }


def _defaults(scenario: Schema) -> Schema:
    """Accept each key of a scenario but its id, and ``strict``."""
    properties = {key: value for key, value in scenario["properties"].items() if key != "id"}
    return {
        "type": "object",
        "description": "What the scenarios share, merged below each of them.",
        "properties": {**properties, "strict": {"type": "boolean"}},
        "additionalProperties": False,
    }


def _authored(schema: Any, *, key: str = "") -> Any:
    """Take out the nulls that nobody may write, and let one text stand for a list of one."""
    if isinstance(schema, list):
        return [_authored(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {name: _authored(value, key=name) for name, value in schema.items()}
    if changed.get("type") == "array" and key not in _LISTS_ONLY and _is_text(changed["items"]):
        kept = {name: changed.pop(name) for name in ("title", "default") if name in changed}
        return {**kept, "anyOf": [changed["items"], changed]}
    choices = changed.get("anyOf", [])
    if {"type": "null"} in choices:
        changed["anyOf"] = [choice for choice in choices if choice != {"type": "null"}]
        changed.pop("default", None)
    return changed


def _is_text(items: Mapping[str, Any]) -> bool:
    return bool(items.get("type") == "string")


_LISTS_ONLY = frozenset({"command", "steps"})
_STEP: Schema = {
    "anyOf": [
        _ref(name) for name in ("TextStep", "ToolsStep", "JsonStep", "RefusalStep", "FaultStep")
    ]
}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_SHORT_FORMS: Mapping[str, Callable[[Schema], Schema]] = {
    "AdvanceTurn": _with_duration("advance"),
    "AgentEntry": _or_short({"type": "string", "pattern": "^[^:]+:[^:]+$"}),
    "Budget": _non_empty,
    "CallExpect": _named,
    "Clock": _or_short({"type": "string", "format": "date-time"}),
    "Count": _or_short(_NUMBER),
    "ErrorsExpect": _or_short(_NUMBER),
    "Expect": _non_empty,
    "FileExpect": _or_short({"type": "boolean"}),
    "Fixtures": _non_empty,
    "Forbid": _forbid,
    "ForbiddenCall": _named,
    "ForbiddenText": _or_short(_TEXT, {"type": "array", "items": _TEXT}),
    "GraderUse": _named,
    "HttpAgent": _or_short(_TEXT),
    "HttpExpect": _request,
    "HttpFixture": _http_fixture,
    "HttpResponse": _with_duration("delay"),
    "ModelScript": _model_script,
    "ReplyExpect": _non_empty,
    "Script": _script,
    "TextExpect": _non_empty,
    "Times": _or_short(_NUMBER),
    "ToolUse": _named,
    "ToolsExpect": _tools,
    "ToolsStep": _tools_step,
}
