"""What an agent says of its tools is read whole, or not at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import evalkit as ek
from evalkit import observing
from evalkit.agents.declared import declared_tools


def book(flight_id: str, date: str = "today") -> None:
    """Book."""


def free(*names: str, **more: Any) -> None:
    """Take anything."""


SCHEMA = {"type": "object", "properties": {"city": {}}}
OPEN = {**SCHEMA, "additionalProperties": True}


@pytest.mark.parametrize(
    ("entry", "name", "args"),
    [
        (book, "book", ["flight_id", "date"]),
        (free, "free", None),
        ("weather", "weather", None),
        ({"name": "weather", "input_schema": SCHEMA}, "weather", ["city"]),
        ({"name": "weather", "input_schema": OPEN}, "weather", None),
        ({"name": "weather"}, "weather", None),
        (
            {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}},
            "weather",
            ["city"],
        ),
        ({"type": "function", "name": "weather", "parameters": SCHEMA}, "weather", ["city"]),
        (SimpleNamespace(name="weather", params_json_schema=SCHEMA), "weather", ["city"]),
        (SimpleNamespace(name="weather"), "weather", None),
    ],
)
def test_tool_is_read_in_the_forms_that_agents_have(
    entry: Any, name: str, args: list[str] | None
) -> None:
    """Functions, names, schemas and tool objects; a name by which the model knows it wins."""
    assert declared_tools(SimpleNamespace(tools=[entry])) == {name: args}


def test_name_by_which_the_model_knows_a_wrapped_tool_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrapped tool may be called otherwise than its function; its parameters stay."""
    monkeypatch.setattr(observing, "_names", set())  # it is wrapped in this test only

    @ek.tool(name="search")
    def look(destination: str) -> None:
        """Look."""

    assert declared_tools(SimpleNamespace(tools=[look])) == {"search": ["destination"]}


@pytest.mark.parametrize(
    "said",
    [None, [], "book", 3, [book, 3], [{"type": "web_search"}, book], lambda: [book]],
)
def test_what_cannot_be_read_whole_says_nothing(said: Any) -> None:
    """One entry that is not understood could be any tool."""
    assert declared_tools(SimpleNamespace(tools=said)) is None


def test_agent_that_says_nothing_has_said_nothing() -> None:
    """A plain function has no such attribute."""
    assert declared_tools(book) is None
