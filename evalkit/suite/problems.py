"""From what the models refuse to problems with a place and a plain sentence.

The models see normalised data, so a place is first found again in what was
written: ``turns[0].user`` is the key ``input`` of a short scenario.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from evalkit.suite.fields import NULL, KeyPath, SeveralProblems, one_of_words, suggestion

KnownKeys = Mapping[tuple[str, int], tuple[str, ...]]

_TOGETHER = {
    "input": "`input` and `turns` exclude each other: keep one",
    "model": "with `turns`, each turn has its own `model`: move it there",
}
_MISSING = {
    "turns": "nothing happens: write `input` (what the user says) or `turns`",
    "suite": "`suite` is missing: give the suite a name",
    "scenarios": "`scenarios` is missing: a suite needs at least one",
}
_WRONG_TYPE = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}
_FORMS = {
    "CallExpect": "must be a tool's name, or {name: {argument: value}}",
    "Clock": "must be a date and time, or a mapping with `at`",
    "Count": "must be a whole number, or {min: ..., max: ...}",
    "ErrorsExpect": "must be a whole number, or a mapping such as {contains: ...}",
    "FileExpect": "must be true, false, or a mapping such as {contains: ...}",
    "ForbiddenCall": "must be a tool's name, or {name: {argument: value}}",
    "GraderUse": "must be a grader's name, or {name: {parameter: value}}",
    "ModelScript": "must be a list of steps, or scripts by name",
    "PathExpect": "must be a mapping of limits, or false",
    "ReplyExpect": "must be a mapping such as {contains: ...}",
    "Script": "must be a list of steps, or a mapping with `when` and `steps`",
    "TextExpect": "must be a mapping such as {contains: ...}",
    "Times": "must be a whole number, or {min: ..., max: ...}",
    "ToolUse": "must be a tool's name, or {name: {argument: value}}",
    "ToolsExpect": "must be a list of calls, or a mapping with `calls`",
}
"""What the models with short forms accept, by class."""
_BOUNDS = {
    "greater_than_equal": ("ge", "must be at least"),
    "less_than_equal": ("le", "must be at most"),
    "greater_than": ("gt", "must be more than"),
    "less_than": ("lt", "must be less than"),
}


def sentences(
    error: ValidationError, known_keys: KnownKeys | None = None
) -> Iterator[tuple[KeyPath, str]]:
    """Give each thing that a model refused, as its place in the model and a sentence."""
    for details in error.errors(include_url=False):
        path = tuple(step for step in details["loc"] if not _is_marker(step))
        cause = details.get("ctx", {}).get("error")
        if details["type"] == "too_short" and details["input"]:
            continue  # its items were refused, and each of them said so
        if isinstance(cause, SeveralProblems):
            yield from (((*path, *inner), message) for inner, message in cause.problems)
        elif details["type"] == "missing":
            key = str(path[-1])
            yield path[:-1], _MISSING.get(key, f"`{key}` is missing")
        elif details["type"] == "extra_forbidden":
            yield path, _unknown_key(details, known_keys or {})
        else:
            yield path, _sentence(details)


def _is_marker(step: str | int) -> bool:
    """Tell the steps that pydantic adds: which kind of a union, and "the key itself"."""
    return isinstance(step, str) and (step.startswith("<") or step == "[key]")


def _unknown_key(details: ErrorDetails, known_keys: KnownKeys) -> str:
    key = str(details["loc"][-1])
    known = known_keys.get((key, id(details["input"])), ())
    if key in known:
        return _TOGETHER[key]
    return f"unknown key.{suggestion(key, known) or _choices(known)}"


def _choices(known: tuple[str, ...]) -> str:
    return f" There is {', '.join(sorted(known))}." if known else ""


def _sentence(details: ErrorDetails) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if details["input"] is NULL:
        return "null means nothing here: write a value or remove the key"
    if "error" in context:
        return str(context["error"])
    if kind in _WRONG_TYPE:
        expected = _FORMS.get(context.get("class_name", ""), _WRONG_TYPE[kind])
        return _wrong_type(kind, details["input"], expected)
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{words} {context[name]:g}, not {shown(details['input'])}"
    writer = _SENTENCES.get(kind)
    return writer(details) if writer else details["msg"].replace("Input should be", "must be")


def _wrong_type(kind: str, value: Any, expected: str) -> str:
    hint = ""
    if kind == "string_type" and (value is None or isinstance(value, bool | int | float)):
        hint = f': quote it, "{shown(value)}"'
    return f"{expected}, not {shown(value)}{hint}"


def _literal(details: ErrorDetails) -> str:
    expected = str(details["ctx"]["expected"])
    words = [word.strip(" '") for word in expected.replace(" or ", ", ").split(",")]
    hint = suggestion(details["input"], words)
    return f"must be {one_of_words(words)}, not {shown(details['input'])}.{hint}"


_SENTENCES: Mapping[str, Callable[[ErrorDetails], str]] = {
    "literal_error": _literal,
    "too_short": lambda _: "is empty: write at least one, or remove the key",
    "string_unicode": lambda _: "holds half of a character (a lone surrogate): write it whole",
}


def shown(value: Any) -> str:
    """Show a value as JSON, cut to what fits in a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def written_path(path: KeyPath, data: Any) -> KeyPath:
    """Find a place of the normalised form again in the data as it was written.

    Steps that only the normalised form has are left out, so the result is the
    place itself or the nearest one above it.

    Examples
    --------
    >>> written_path(("turns", 0, "user"), {"id": "a", "input": 5})
    ('input',)
    >>> written_path(("tools", "calls", 0, "args", "on"), {"tools": [{"book": {"on": 1}}]})
    ('tools', 0, 'book', 'on')
    """
    written: list[str | int] = []
    for step in path:
        for taken in _taken_steps(step, data):
            written.append(taken)
            data = data[taken]
    return tuple(written)


def _taken_steps(step: str | int, data: Any) -> KeyPath:
    """Tell which steps in the written data one normalised step stands for."""
    if isinstance(data, list | tuple):
        return (step,) if isinstance(step, int) and step < len(data) else ()
    if not isinstance(data, dict):
        return ()
    if step in data:
        return (step,)
    if step == "user" and "input" in data:
        return ("input",)
    return _short_form_steps(step, data)


def _short_form_steps(step: str | int, data: dict[str, Any]) -> KeyPath:
    """Look into ``{name: body}``, the short form of a call, a grader or a route."""
    if len(data) != 1:
        return ()
    name, body = next(iter(data.items()))
    if step in ("args", "params", "responses"):
        return (name,)
    return (name, step) if isinstance(body, dict) and step in body else ()
