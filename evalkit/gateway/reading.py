"""Reading what an agent sent: strict only where nothing could be answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from evalkit.gateway.canonical import Asked, BadRequest, Returned, Tool, ToolChoice
from evalkit.ledger import JSON
from evalkit.serving.jsontext import parse

_MUST: Final = ("any", "required", "tool", "function", "custom")
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


def paired(
    parts: Iterable[Asked | Returned | None], *, is_kept: bool = False
) -> tuple[Asked | Returned, ...]:
    """Give a request's tool calls and results, each call with its result and the reverse.

    Providers refuse anything else, so an agent that skips its tools, or cuts its history
    in the middle of a call, would not work with a real model either.

    Parameters
    ----------
    parts
        In the order of the request; ``None`` stands for anything else, where the
        provider wants all results before it.
    is_kept
        Whether the provider keeps the history, so that results may come alone.

    Raises
    ------
    BadRequest
        If a call has no result after it, or not before something else, or a result
        answers no call before it. An id that several calls share has a result for each.
    """
    history: list[Asked | Returned] = []
    waiting: dict[str, list[str]] = {}
    for part in parts:
        if part is None:
            _refuse_waiting(waiting)
            continue
        history.append(part)
        if isinstance(part, Asked):
            waiting.setdefault(part.id, []).append(part.name)
        elif part.id in waiting:
            del waiting[part.id][:1]
        elif not is_kept:
            raise BadRequest(
                f"the request holds the result of a tool call {part.id!r} that it does not hold "
                "before; a provider refuses that: keep each call together with its result"
            )
    _refuse_waiting(waiting)
    return tuple(history)


def _refuse_waiting(waiting: Mapping[str, Sequence[str]]) -> None:
    """Refuse calls, by id, whose results are due."""
    for id_, tools in waiting.items():
        if tools:
            raise BadRequest(
                f"the request holds a call of the tool {tools[0]!r} ({id_!r}) without its result "
                "right after it; a provider refuses that: send a result for every tool call, "
                "under its own id, before anything else"
            )


def arguments_of(text: JSON) -> JSON:
    """Read arguments that travel as JSON text; the text itself where it is none."""
    try:
        return parse(as_text(text).encode("utf-8", "surrogatepass"))
    except ValueError:
        return text


def role_of(message: Mapping[str, JSON], known: Sequence[str]) -> str:
    """Give the role of a message.

    Raises
    ------
    BadRequest
        If it is none that the provider knows.
    """
    role = message.get("role")
    if role not in known:
        raise BadRequest(f"a message has the role {role!r}; a provider takes {', '.join(known)}")
    return as_text(role)


def tool_choice_of(choice: JSON) -> ToolChoice:
    """Say whether the model may, must or must not use a tool."""
    kind = choice if isinstance(choice, str) else as_object(choice).get("type")
    if kind == "none":
        return "none"
    return "required" if kind in _MUST else "auto"


def is_parallel(body: Mapping[str, JSON]) -> bool:
    """Say whether the model may ask for several tools at once."""
    serial = as_object(body.get("tool_choice")).get("disable_parallel_tool_use") is True
    return not serial and body.get("parallel_tool_calls") is not False


def stops_of(value: JSON) -> tuple[str, ...]:
    """Give the texts at which the model stops: one, or a list of them."""
    texts = value if isinstance(value, list) else [value]
    return tuple(text for text in texts if isinstance(text, str) and text)


def forced(name: JSON, *, must: bool, tools: Sequence[Tool]) -> str:
    """Name the tool that a request forces: by name, or as the only one that there is."""
    if isinstance(name, str) and name:
        return name
    return tools[0].name if must and len(tools) == 1 else ""
