"""Writing scenarios as YAML that a person reads: block style, comments beside their keys.

Every text that YAML, of any version, could take for something else is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from evalkit.drafting.recorded import Note
from evalkit.ledger import JSON
from evalkit.terminal import one_line, printable

_SHORT: Final = 68
"""Characters of arguments that still stand on one line."""

_WIDTH: Final = 100
_NUMBER: Final = re.compile(r"[-+]?[0-9.][0-9_.]*([eE][-+]?[0-9]+)?|0[xob][0-9a-fA-F_]+")


class _Writer(yaml.SafeDumper):
    """Writes every value where it stands, lists indented below their key."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class's name
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002, RUF100 - the base class's signature
        super().increase_indent(flow, False)

    def write_double_quoted(self, text: str, split: bool = True) -> None:  # noqa: FBT001, FBT002, RUF100 - as above
        """Escape what nobody would see, or what would steer a terminal."""
        before, self.allow_unicode = self.allow_unicode, not _is_hidden(text)
        super().write_double_quoted(text, split)
        self.allow_unicode = before


def _is_hidden(text: str) -> bool:
    """Say whether a text holds characters that are not what one sees."""
    return printable(text) != text


def _text(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write a text: over several lines as a block, in quotes where a break would be lost."""
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    if _is_hidden(text):
        return '"'
    if _NUMBER.fullmatch(text):
        return "'"
    return "|" if "\n" in text.rstrip("\n") else None


def _mapping(writer: yaml.SafeDumper, data: Mapping[str, JSON]) -> yaml.MappingNode:
    node = writer.represent_mapping("tag:yaml.org,2002:map", data.items())
    node.flow_style = _is_short(data)
    return node


def _list(writer: yaml.SafeDumper, data: Sequence[JSON]) -> yaml.SequenceNode:
    node = writer.represent_sequence("tag:yaml.org,2002:seq", data)
    node.flow_style = _is_short(data)
    return node


_Writer.add_representer(str, _text)
_Writer.add_representer(dict, _mapping)
_Writer.add_representer(list, _list)


def _is_short(data: Mapping[str, JSON] | Sequence[JSON]) -> bool:
    """Say whether a mapping or list holds scalars only, and few."""
    inside = data.values() if isinstance(data, Mapping) else data
    if any(isinstance(value, Mapping | list | tuple) and value for value in inside):
        return False
    return "\n" not in (text := json.dumps(data, default=str)) and len(text) <= _SHORT


def key_lines(key: str, value: JSON, *, indent: int) -> list[str]:
    """Write one key with its value as indented lines.

    Examples
    --------
    >>> key_lines("expect", {"tools": [{"book": {"day": "no"}}]}, indent=4)
    ['    expect:', '      tools:', "        - book: {day: 'no'}"]
    """
    if isinstance(value, Mapping) and value and key in _BLOCKS:
        inner = (key_lines(name, part, indent=indent + 2) for name, part in value.items())
        return [f"{' ' * indent}{key}:", *(line for lines in inner for line in lines)]
    if key == "model":
        value = _as_blocks(value)
    return indented(_dumped({key: value}, width=_WIDTH - indent), indent)


_BLOCKS: Final = frozenset({"expect", "forbid"})
"""Keys whose parts always stand below them."""


def _as_blocks(model: JSON) -> JSON:
    """Let every step of a script begin a line of its own, also a short one."""
    if isinstance(model, Mapping):
        return _Outer({name: _as_blocks(script) for name, script in model.items()})
    if not isinstance(model, list):
        return model
    return [_Outer(step) if isinstance(step, Mapping) else step for step in model]


def _dumped(data: Mapping[str, JSON], *, width: int) -> str:
    return yaml.dump_all(
        [_Outer(data)],
        Dumper=_Writer,
        sort_keys=False,
        width=width,
        allow_unicode=True,
        default_flow_style=False,
    )


class _Outer(dict[str, Any]):
    """A mapping that always stands in block style."""


def _outer(writer: yaml.SafeDumper, data: _Outer) -> yaml.MappingNode:
    return writer.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=False)


_Writer.add_representer(_Outer, _outer)


def indented(text: str, indent: int) -> list[str]:
    """Indent the lines of a text; only a newline ends a line."""
    lines = text.removesuffix("\n").split("\n")
    return [f"{' ' * indent}{line}" if line else "" for line in lines]


def comment(text: str, *, indent: int = 0) -> str:
    """Write a comment of one line, whatever the text holds."""
    return f"{' ' * indent}# {one_line(text, limit=400)}"


def scenario_lines(
    data: Mapping[str, JSON], *, about: Iterable[str], notes: Sequence[Note]
) -> list[str]:
    """Write a scenario as an item of the list ``scenarios``, two spaces in.

    Parameters
    ----------
    data
        The scenario; ``id`` comes first.
    about
        Comments above it.
    notes
        Comments beside its keys.
    """
    lines = [comment(text, indent=2) for text in about]
    lines += _noted("", notes, indent=2)
    for number, (key, value) in enumerate(data.items()):
        lines += _noted(key, notes, indent=4)
        written = _turn_lines(value) if key == "turns" else key_lines(key, value, indent=4)
        if number == 0:
            written[0] = f"  - {written[0].lstrip()}"
        lines += written
    return lines


def _turn_lines(turns: JSON) -> list[str]:
    """Write the turns, each as a block."""
    lines = ["    turns:"]
    for turn in turns:
        written = [line for key, value in turn.items() for line in key_lines(key, value, indent=8)]
        lines += [f"      - {written[0].lstrip()}", *written[1:]]
    return lines


def _noted(key: str, notes: Iterable[Note], *, indent: int) -> Iterator[str]:
    for note in notes:
        if note.key == key:
            word = "REVIEW: " if note.needs_review else ""
            yield comment(f"{word}{note.text}", indent=indent)
