"""Requests that no model could answer as the script says fail the trial, in every wire format."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.gateway.canonical import ModelRequest, Tool
from evalkit.gateway.possible import why_impossible


def schema(*required: str) -> Tool:
    """Describe the tool `book`."""
    properties = {name: {"type": "string"} for name in required}
    return Tool("book", {"type": "object", "properties": properties, "required": list(required)})


TEXT = {"text": "It is dry in Denver."}
BOOK = {"tools": [{"tool": "book", "args": {"flight_id": "AA123", "date": "Friday"}}]}
BOTH = {"tools": [{"tool": "book", "args": {}}, {"tool": "book", "args": {}}]}
OTHER = {"tools": [{"tool": "search", "args": {}}]}
JSON = {"json": {"fit": 4}}
REFUSAL = {"refusal": "I can't help with that, whoever asks."}
FAULT = {"fault": "truncated_stream", "text": "It is dry in Denver."}


@pytest.mark.parametrize(
    ("step", "asked", "why"),
    [
        pytest.param(TEXT, {}, "", id="free"),
        pytest.param(TEXT, {"tool_choice": "none", "max_tokens": 5}, "", id="just-enough"),
        pytest.param(TEXT, {"max_tokens": 4}, "allows 4 token(s)", id="text-too-long"),
        pytest.param(TEXT, {"max_tokens": 0}, "allows 0 token(s)", id="no-room"),
        pytest.param({"text": ""}, {"max_tokens": 0}, "", id="nothing-fits"),
        pytest.param(BOOK, {"max_tokens": 2}, "has at least 3", id="tool-too-long"),
        pytest.param(JSON, {"max_tokens": 0}, "has at least 1", id="json-too-long"),
        pytest.param(TEXT, {"stops": ("\n", "dry")}, "has the text 'dry'", id="stopped"),
        pytest.param(TEXT, {"stops": ("wet",)}, "", id="not-stopped"),
        pytest.param(BOOK, {"tool_choice": "none"}, "forbids that", id="tools-off"),
        pytest.param(TEXT, {"tool_choice": "required"}, "demands a tool", id="tool-demanded"),
        pytest.param(BOOK, {"tool_choice": "required"}, "", id="tool-given"),
        pytest.param(
            OTHER,
            {"tool_choice": "required", "forced_tool": "book"},
            "asks for the tool `search`, but the request demands `book`",
            id="other-tool",
        ),
        pytest.param(JSON, {"tool_choice": "required", "forced_tool": "fit"}, "", id="json-tool"),
        pytest.param(BOTH, {"parallel": False}, "one at a time", id="not-parallel"),
        pytest.param(BOOK, {"parallel": False}, "", id="one-at-a-time"),
        pytest.param(TEXT, {"wants_json": True}, "is no JSON", id="prose-for-json"),
        pytest.param({"text": "[1]"}, {"wants_json": True}, "", id="json-as-text"),
        pytest.param(JSON, {"wants_json": True}, "", id="json"),
        pytest.param(BOOK, {"wants_json": True}, "", id="tool-before-json"),
        pytest.param(BOOK, {"tools": (schema("flight", "date"),)}, "describes `flight`", id="name"),
        pytest.param(BOOK, {"tools": (schema("date", "flight_id", "seat"),)}, "", id="left-out"),
        pytest.param(BOOK, {"tools": (schema("date"),)}, "", id="made-up"),
        pytest.param(BOOK, {"tools": (Tool("book", "?"),)}, "", id="no-schema"),
        pytest.param(REFUSAL, {"tool_choice": "required", "max_tokens": 1}, "", id="refusal"),
        pytest.param(FAULT, {"tool_choice": "required", "max_tokens": 1}, "", id="fault"),
    ],
)
def test_a_step_must_be_an_answer_to_its_request(step: Any, asked: Any, why: str) -> None:
    """What the request rules out is named; what a model may always do is not."""
    said = why_impossible(step, ModelRequest("anthropic", "m", **asked))
    assert (why in said) if why else not said


TOOL = {"name": "book", "description": "Book.", "input_schema": {"type": "object"}}
CHAT_TOOL = {"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}
RESPONSES_TOOL = {"type": "function", "name": "book", "parameters": {"type": "object"}}
MESSAGES, CHAT, RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"
HELLO = [{"role": "user", "content": "Hello."}]


def body_of(path: str, **more: Any) -> dict[str, Any]:
    """Ask politely, in one of the wire formats."""
    tools = {MESSAGES: TOOL, CHAT: CHAT_TOOL, RESPONSES: RESPONSES_TOOL}
    key = "input" if path == RESPONSES else "messages"
    return {"model": "m", key: HELLO, "tools": [tools[path]]} | more


@pytest.mark.parametrize(
    ("path", "step", "more"),
    [
        (MESSAGES, TEXT, {"max_tokens": 1}),
        (CHAT, TEXT, {"max_tokens": 1}),
        (CHAT, TEXT, {"max_completion_tokens": 1}),
        (RESPONSES, TEXT, {"max_output_tokens": 1}),
        (MESSAGES, TEXT, {"stop_sequences": ["Denver"]}),
        (CHAT, TEXT, {"stop": "Denver"}),
        (CHAT, TEXT, {"stop": ["Boston", "Denver"]}),
        (MESSAGES, BOOK, {"tool_choice": {"type": "none"}}),
        (CHAT, BOOK, {"tool_choice": "none"}),
        (RESPONSES, BOOK, {"tool_choice": "none"}),
        (MESSAGES, BOTH, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        (CHAT, BOTH, {"parallel_tool_calls": False}),
        (RESPONSES, BOTH, {"parallel_tool_calls": False}),
        (CHAT, TEXT, {"response_format": {"type": "json_object"}}),
        (MESSAGES, TEXT, {"tool_choice": {"type": "any"}}),
        (MESSAGES, TEXT, {"tool_choice": {"type": "tool", "name": "book"}}),
        (CHAT, TEXT, {"tool_choice": "required"}),
        (CHAT, TEXT, {"tool_choice": {"type": "function", "function": {"name": "book"}}}),
        (RESPONSES, TEXT, {"tool_choice": "required"}),
        (RESPONSES, TEXT, {"tool_choice": {"type": "function", "name": "book"}}),
    ],
)
def test_an_impossible_answer_is_refused_on_every_wire(
    serve, path: str, step: Any, more: dict[str, Any]
) -> None:
    """The agent gets no answer, and the step that it did not get is left over."""
    gateway = serve([step])
    assert gateway.post(path, body_of(path, **more)).status == 400
    codes = [finding.code for finding in gateway.endpoint.finish()]
    assert codes == ["unscripted_call", "left_over_steps"]
    gateway = serve([step])
    assert gateway.post(path, body_of(path)).status == 200


@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES])
@pytest.mark.parametrize("role", ["assistent", "tool_result", None])
def test_a_role_that_no_provider_knows_is_refused(serve, path: str, role: Any) -> None:
    """A misspelt role is an error at the provider, so it is one here."""
    gateway = serve([TEXT])
    key = "input" if path == RESPONSES else "messages"
    answer = gateway.post(path, body_of(path, **{key: [*HELLO, {"role": role, "content": "Hm."}]}))
    assert answer.status == 400
    assert f"a message has the role {role!r}" in answer.body.decode()
