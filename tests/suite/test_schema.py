"""The JSON Schema for editors accepts what loads and refuses what cannot."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from evalkit.errors import SuiteError
from evalkit.suite import suite_from_data, suite_json_schema

VALIDATOR = jsonschema.Draft202012Validator(suite_json_schema())


def suite_of(**keys: Any) -> dict[str, Any]:
    """Give the data of a suite of one scenario."""
    return {
        "suite": "s",
        "scenarios": [{"id": "a", "input": "x", "expect": {"replies": 1}, **keys}],
    }


def test_schema_is_a_valid_schema() -> None:
    """Editors refuse a schema that is none."""
    jsonschema.Draft202012Validator.check_schema(suite_json_schema())


@pytest.mark.parametrize(
    "keys",
    [
        {"expect": {"tools": ["book"]}},
        {"expect": {"tools": []}},
        {"expect": {"tools": [{"book": {"a": 1}}, {"tool": "x", "times": 2}]}},
        {"expect": {"tools": {"order": "exact", "extra_calls": {"allow": ["s"]}, "calls": ["a"]}}},
        {"expect": {"reply": {"contains": "a", "regex": ["b"], "max_chars": 3}}},
        {"expect": {"path": False}},
        {"expect": {"path": {"poll": "status"}}},
        {"expect": {"errors": 0, "replies": {"min": 1}}},
        {"expect": {"files": {"a": True, "b": {"contains": "x"}}}},
        {"expect": {"http": ["GET /x", {"POST /y": {"json": [1]}}, {"request": "PUT /z"}]}},
        {"forbid": {"tools": "book"}},
        {"forbid": {"tools": {"book": {"a": {"$gt": 1}}}, "reply": ["a"], "http": "POST *"}},
        {"model": []},
        {"model": [{"text": "a"}, {"tool": "b"}, {"tools": ["c", {"d": {}}]}, {"json": None}]},
        {"model": {"a": [{"refusal": "no"}], "b": {"when": {"model": "m"}, "steps": []}}},
        {"model": [{"fault": "timeout", "times": 2}]},
        {"clock": "2026-01-05T09:00:00Z"},
        {"clock": {"at": "2026-01-05T09:00:00Z", "frozen": True}},
        {"deadline": 20},
        {"deadline": "1h30m", "tags": "one", "must_pass": True},
        {"graders": ["a", {"b": {"c": 1}}, {"name": "d", "params": {}}]},
        {"fixtures": {"http": [{"GET */x": {"text": "a"}}, {"GET */y": [{"status": 500}, {}]}]}},
        {"canaries": [{"name": "a", "value": "canary@example.test", "allow": "log"}]},
        {"quality": {"skip": "why"}},
        {"expect": {"component": {"retriever": {"relevant": "d1", "k": 3}}}},
    ],
)
def test_short_and_long_forms_are_accepted(keys: dict[str, Any]) -> None:
    """What the loader accepts, short form or long, the schema accepts as well."""
    suite_from_data(suite_of(**keys))
    assert [error.message for error in VALIDATOR.iter_errors(suite_of(**keys))] == []


@pytest.mark.parametrize(
    "data",
    [
        suite_of(inputt="x"),
        suite_of(turns=[{"user": "x"}]),
        suite_of(expect={}),
        suite_of(expect=None),
        suite_of(expect={"tool": []}),
        suite_of(expect={"reply": "booked"}),
        suite_of(expect={"reply": {"contians": "x"}}),
        suite_of(expect={"tools": [{"book": {}, "times": 2}]}),
        suite_of(expect={"tools": [{"tool": "book", "status": "okay"}]}),
        suite_of(model=[{"txt": "a"}]),
        suite_of(model={"a": {"when": {"sytem": "x"}, "steps": []}}),
        suite_of(model=[{"fault": "overload"}]),
        suite_of(deadline="soon"),
        suite_of(min_pass_rate=2),
        suite_of(hash="x"),
        suite_of(canaries=[{"name": "a", "value": "canary@example.test", "allow": ["logs"]}]),
        {**suite_of(), "agnet": "a:b"},
        {**suite_of(), "defaults": {"id": "x"}},
        {**suite_of(), "defaults": {"deadlin": 1}},
        {"suite": "s", "scenarios": []},
        {"scenarios": [{"id": "a", "input": "x"}]},
    ],
)
def test_what_does_not_load_is_refused(data: dict[str, Any]) -> None:
    """A typing slip is underlined by the editor, as it is refused by the loader."""
    with pytest.raises(SuiteError):
        suite_from_data(data)
    assert list(VALIDATOR.iter_errors(data))
