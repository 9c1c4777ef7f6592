"""The tools of an agent, as a run tells them."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.mutation.toolset import Toolset, declared_in, stand_in
from evalkit.trace import ModelCall, ToolCall, Trace

SCHEMA = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
DECLARED: dict[str, Any] = {
    "anthropic": {"name": "look", "input_schema": SCHEMA},
    "openai chat": {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
    "openai responses": {"type": "function", "name": "look", "parameters": SCHEMA},
    "gemini": {"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]},
}


@pytest.mark.parametrize("tool", DECLARED.values(), ids=DECLARED)
def test_declared_tools_are_read_from_each_format(tool: Any) -> None:
    """Whatever the provider, a request tells which tools there are."""
    assert list(declared_in({"tools": [tool]})) == [("look", SCHEMA)]


@pytest.mark.parametrize("prompt", [None, "text", {}, {"tools": "x"}, {"tools": [1, {"n": 2}]}])
def test_a_prompt_without_tools_declares_none(prompt: Any) -> None:
    """What is no list of tools is passed over."""
    assert list(declared_in(prompt)) == []


def test_arguments_are_those_of_a_call_else_what_the_schema_needs() -> None:
    """A made-up call looks like the real ones where there are any."""
    declared = Trace(model_calls=(ModelCall(prompt={"tools": [DECLARED["anthropic"]]}),))
    assert Toolset.seen_in([declared]).arguments("look") == {"city": "anything"}
    called = Trace.from_calls([ToolCall("look", {"city": "Rome"})])
    assert Toolset.seen_in([declared, called]).arguments("look") == {"city": "Rome"}
    assert Toolset.seen_in([]).arguments("look") == {}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1), ({"type": "boolean"}, True), ({"enum": ["a"]}, "a"),
        ({"type": ["string", "null"]}, "anything"), (None, "anything"), ({"type": "array"}, []),
    ],
)  # fmt: skip
def test_stand_in_fits_its_schema(schema: Any, value: Any) -> None:
    """A value is made up by type."""
    assert stand_in(schema) == value
