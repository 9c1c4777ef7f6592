"""The tools of every agent here, and what they say of themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

MODEL: Final = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6-mini",
    "gemini": "gemini-3.8-flash",
}
SYSTEM: Final = "You are a travel agent. Use your tools."


def get_weather(city: str) -> str:
    """Look up the weather in a city."""
    return f"It is clear in {city}."


def search(destination: str) -> str:
    """Find flights to a destination."""
    return f"AA123 to {destination} for $129"


def book(flight_id: str, date: str) -> str:
    """Book a flight."""
    return f"{flight_id} is booked for {date}."


TOOLS: Final = {function.__name__: function for function in (get_weather, search, book)}


def parameters(name: str) -> dict[str, Any]:
    """Give the JSON schema of a tool's arguments."""
    arguments = {"get_weather": ["city"], "search": ["destination"], "book": ["flight_id", "date"]}
    names = arguments[name]
    return {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in names},
        "required": names,
        "additionalProperties": False,
    }


def run(name: str, arguments: str | Mapping[str, Any]) -> str:
    """Run a tool, whose arguments may still be JSON text."""
    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    return str(TOOLS[name](**given))
