"""The tools that the model may ask for, and running one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .world import NotPossible, World


def _tool(name: str, description: str, **arguments: str) -> dict[str, Any]:
    """Describe a tool; all of its arguments are texts, and required."""
    properties = {key: {"type": "string", "description": what} for key, what in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS: Final = (
    _tool(
        "search",
        "Find flights, cheapest first.",
        destination="A city, or coast for all cities on the coast.",
    ),
    _tool("get_weather", "Look up the weather.", city="Name of the city."),
    _tool(
        "book",
        "Book a flight. This cannot be taken back.",
        flight_id="Id of the flight, such as AA123.",
        date="Day of the flight, in the user's words.",
    ),
)


def run_tool(world: World, name: str, args: Mapping[str, object]) -> str:
    """Run a tool that the model asks for.

    Raises
    ------
    NotPossible
        If there is no such tool, arguments are missing (what is left of an answer
        that was cut off), or the tool cannot do what it should.
    """
    texts = required_texts(name, args)
    match name:
        case "search":
            return world.search(texts["destination"])
        case "get_weather":
            return world.get_weather(texts["city"])
        case _:
            return world.book(texts["flight_id"], texts["date"])


def required_texts(name: str, args: Mapping[str, object]) -> dict[str, str]:
    """Give the arguments that a tool needs."""
    tool = next((tool for tool in TOOLS if tool["name"] == name), None)
    if tool is None:
        known = ", ".join(tool["name"] for tool in TOOLS)
        raise NotPossible(f"There is no tool {name}; there are {known}. Nothing was done.")
    needed = tool["input_schema"]["required"]
    missing = [key for key in needed if not isinstance(args.get(key), str) or not args[key]]
    if missing:
        raise NotPossible(f"The tool {name} was not run: missing {', '.join(missing)}.")
    return {key: str(args[key]) for key in needed}
