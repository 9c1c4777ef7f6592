"""Reading what an agent sent: strict only where nothing could be answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evalkit.gateway.canonical import BadRequest, Tool
from evalkit.gateway.jsontext import parse
from evalkit.ledger import JSON

_TEXTS: Final = ("text", "input_text", "output_text")


def model_of(body: Mapping[str, JSON]) -> str:
    """Give the model's name.

    Raises
    ------
    BadRequest
        If there is none.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest("`model` must be the name of a model")
    return model


def listed(body: Mapping[str, JSON], key: str) -> list[Mapping[str, JSON]]:
    """Give a list of objects that a request cannot do without.

    Raises
    ------
    BadRequest
        If it is missing, empty, or holds anything else.
    """
    items = body.get(key)
    if not isinstance(items, list) or not items:
        raise BadRequest(f"`{key}` must be a list with at least one item")
    for number, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise BadRequest(f"`{key}[{number}]` must be an object")
    return items


def objects(value: JSON) -> Iterator[Mapping[str, Any]]:
    """Give the objects of a list; nothing if it is no list."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, Mapping))


def as_object(value: JSON) -> Mapping[str, Any]:
    """Give an object; an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def as_text(value: JSON) -> str:
    """Give a string; an empty one in place of anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: JSON) -> int | None:
    """Give a whole number; ``None`` in place of anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_of(content: JSON, *, separator: str = "\n") -> str:
    r"""Join the text of some content: a string, or a list of parts.

    Examples
    --------
    >>> text_of([{"type": "text", "text": "Look:"}, {"type": "image"}])
    'Look:\n[image]'
    """
    if isinstance(content, str):
        return content
    return separator.join(_text_of_part(part) for part in objects(content))


def _text_of_part(part: Mapping[str, JSON]) -> str:
    kind = part.get("type")
    return as_text(part.get("text")) if kind in _TEXTS else f"[{kind}]"


def result_of(content: JSON) -> JSON:
    """Give a tool's result: text where it is nothing but text, else as it stands."""
    if isinstance(content, list) and all(as_object(part).get("type") in _TEXTS for part in content):
        return text_of(content)
    return content


def arguments_of(text: JSON) -> JSON:
    """Read arguments that travel as JSON text; the text itself where it is none."""
    try:
        return parse(as_text(text).encode("utf-8", "surrogatepass"))
    except ValueError:
        return text


def forced(name: JSON, *, must: bool, tools: Sequence[Tool]) -> str:
    """Name the tool that a request forces: by name, or as the only one that there is."""
    if isinstance(name, str) and name:
        return name
    return tools[0].name if must and len(tools) == 1 else ""
