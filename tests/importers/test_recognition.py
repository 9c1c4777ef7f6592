"""Telling formats apart, and refusing the wrong one with a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.errors import TraceError, UsageError
from evalkit.importers import FORMATS, find_format, read
from evalkit.importers.recognition import recognise, refuse_other

_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_SAID = {"role": "user", "content": "hi"}
_USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"resourceSpans": []}, "otel"),
        ({"resource_spans": []}, "otel"),
        ([{"spanContext": {}, "attributes": {}}], "otel"),
        ([{"context": {}, "attributes": {}, "name": "x"}], "otel"),
        ([{"task_id": 0, "traj": []}], "tau-bench"),
        ([_SAID, {"role": "assistant", "tool_calls": [_CALL]}], "openai"),
        ([{"messages": [_SAID, {"role": "tool", "content": "x"}]}], "openai"),
        ({"request": {"messages": [_SAID]}, "response": {"choices": []}}, "openai"),
        ({"request": {"messages": [_SAID]}, "response": {"stop_reason": "x"}}, "anthropic"),
        ([_SAID, {"role": "assistant", "content": [_USE]}], "anthropic"),
        ([{"type": "human", "content": "x"}], "langchain"),
        ([{"type": "ai", "data": {}}], "langchain"),
        ([{"lc": 1, "type": "constructor", "id": [], "kwargs": {}}], "langchain"),
        ([{"type": "function_call", "call_id": "c"}], "openai"),
    ],
)
def test_recognition_names_the_importer(value: Any, name: str) -> None:
    """Each shape that evalkit reads is recognised as its importer's, and as no other's."""
    kind = recognise(value)
    assert kind is not None
    assert kind.format == name
    refuse_other(value, format=name, where="a")
    for other in set(FORMATS) - {name}:
        with pytest.raises(TraceError, match=f"not like {other}; use: evalkit import {name}"):
            refuse_other(value, format=other, where="a")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"$defs": {}, "type": "array"}, "a JSON Schema"),
        ({"simulations": [], "tasks": []}, "tau2-bench"),
        ({"eval": {}, "status": "success", "version": 2}, "Inspect AI"),
        ({"post": [], "patch": []}, "LangSmith"),
        ({"evalId": "x", "results": {}}, "promptfoo"),
        ({"eval_set_id": "x", "eval_cases": []}, "ADK"),
        ([{"query": "x", "expected_tool_use": []}], "ADK"),
        ({"trajectory": [], "history": []}, "SWE-agent"),
        ({"uuid": "x", "sessionId": "y", "type": "user"}, "Claude Code"),
        (["send", {"type": "agent.message"}], "managed agents"),
        ({"resourceLogs": []}, "logs"),
    ],
)
def test_recognition_says_what_a_foreign_file_is(value: Any, sentence: str) -> None:
    """A format that evalkit knows but cannot import is named, with that there is no importer."""
    with pytest.raises(TraceError, match=f"{sentence}.*no importer"):
        refuse_other(value, format="openai", where="a")


@pytest.mark.parametrize("value", [7, "x", None, [], {}, {"criteria": {}}, [1, 2], [[1]]])
def test_recognition_refuses_what_nobody_knows(value: Any) -> None:
    """A document of no known shape is refused with its shape, never imported as empty."""
    for name in FORMATS:
        with pytest.raises(TraceError, match=f"looks like no {name} file"):
            refuse_other(value, format=name, where="a")


def test_recognition_plain_chat_is_either_vendors() -> None:
    """Messages of nothing but text are read by both vendors' importers, and by no other."""
    refuse_other([_SAID], format="openai", where="a")
    refuse_other([_SAID], format="anthropic", where="a")
    with pytest.raises(TraceError, match="openai, or evalkit import anthropic"):
        refuse_other([_SAID], format="otel", where="a")


def test_formats_unknown_name_is_met_with_the_nearest() -> None:
    """An unknown format names the nearest one, or all of them."""
    with pytest.raises(UsageError, match="did you mean 'tau-bench'"):
        find_format("taubench")
    with pytest.raises(UsageError, match="known: tau-bench, openai"):
        find_format("spreadsheet")


def test_formats_unknown_option_is_wrong_usage(tmp_path: Any) -> None:
    """An option that a format does not take is a usage error that names it."""
    with pytest.raises(UsageError, match=r"'openai'.*'write_tools'"):
        read("openai", tmp_path, write_tools=["x"])


def test_formats_each_have_one_line_of_description() -> None:
    """Every format can be listed with a line of its own."""
    assert all(found.description and "\n" not in found.description for found in FORMATS.values())
