"""From the bytes of a YAML file to plain data, and the line of each key.

The scalars are those of YAML 1.2's JSON schema: ``true``, ``false``, ``null`` and
JSON numbers; every other plain scalar is text (``no``, ``on``, ``12:30``, ``0123``,
dates). Refused with a sentence: what YAML makes of an unquoted comma or brace, empty
values, keys given twice, tags, merge keys, several documents, and files that are
too large, too deep or that grow when their aliases are followed.

The data is built from YAML's events, not from its nodes: that needs no recursion
in the parser, so depth is refused before it can hurt.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from evalkit.errors import Problem, SuiteError
from evalkit.suite.fields import KeyPath

MAX_BYTES = 5_000_000
MAX_DEPTH = 64
MAX_VALUES = 1_000_000
"""Values after aliases are followed: what a bomb multiplies."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_CONTROL = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_QUOTE = "quote the text"


class Document(NamedTuple):
    """A YAML file as plain data."""

    data: Any
    lines: Mapping[KeyPath, int]
    """1-based line by key path; what came through an alias has none of its own."""

    def line(self, path: KeyPath) -> int | None:
        """Give the line of a key path, or of the nearest one above it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def read_yaml(path: Path) -> Document:
    """Read a suite file.

    Raises
    ------
    SuiteError
        If it cannot be read or is no YAML that a suite can be.
    """
    return parse_yaml(_read_bytes(path), where=str(path))


def parse_yaml(content: bytes, *, where: str) -> Document:
    r"""Parse YAML into plain data and lines.

    Parameters
    ----------
    content
        UTF-8, with or without a byte order mark.
    where
        Name of the file, for messages.

    Raises
    ------
    SuiteError
        With every problem that was found; a break of YAML's own rules ends the list.

    Examples
    --------
    >>> document = parse_yaml(b"on: no\nn: [1, 1.5e1, 012]", where="demo")
    >>> document.data, document.line(("n",))
    ({'on': 'no', 'n': [1, 15.0, '012']}, 2)
    """
    if len(content) > MAX_BYTES:
        raise SuiteError([Problem(where, None, "", _too_large(len(content)))])
    builder = _Builder(where)
    builder.read(_decoded(content, where))
    if builder.problems:
        raise SuiteError(builder.problems)
    return Document(builder.root, builder.lines)


def _read_bytes(path: Path) -> bytes:
    """Read the file unless it is too large or no file; the size is asked first."""
    try:
        size = path.stat().st_size
        if path.is_file() and size <= MAX_BYTES:
            return path.read_bytes()
    except FileNotFoundError:
        reason = "there is no such file"
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    else:
        reason = _too_large(size) if path.is_file() else "is no regular file"
    raise SuiteError([Problem(str(path), None, "", reason)])


def _too_large(n_bytes: int) -> str:
    return (
        f"has {n_bytes:,} bytes, at most {MAX_BYTES:,} are read: "
        "split the suite, or move long texts to fixture files"
    )


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{content[error.start]:02x} is no UTF-8: save the file as UTF-8"
        raise SuiteError([Problem(where, line, "", message)]) from None


@dataclass(slots=True)
class _Container:
    """A mapping or list that is being filled."""

    value: dict[str, Any] | list[Any]
    path: KeyPath
    line: int
    is_flow: bool
    anchor: str | None
    n_values: int = 1
    key: str | None = None
    """The key that waits for its value."""
    key_line: int = 0

    @property
    def wants_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is None

    def next_path(self) -> KeyPath:
        step = len(self.value) if isinstance(self.value, list) else self.key
        return (*self.path, step if step is not None else "")


class _Anchored(NamedTuple):
    value: Any
    n_values: int


@dataclass(slots=True)
class _Builder:
    """Takes YAML's events one by one and builds data, lines and problems."""

    where: str
    root: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _open: list[_Container] = field(default_factory=list)
    _anchors: dict[str, _Anchored] = field(default_factory=dict)
    _n_documents: int = 0

    def read(self, text: str) -> None:
        """Build from a whole file."""
        try:
            for event in _events(text):
                self._take(event)
        except yaml.YAMLError as error:
            self.problems.append(_syntax_problem(error, text, where=self.where))
        if not self._n_documents and not self.problems:
            self._complain("is empty: a suite has at least `suite` and `scenarios`", line=1)

    def _take(self, event: yaml.Event) -> None:
        mark = event.start_mark
        line = mark.line + 1 if mark else 1
        if isinstance(event, yaml.ScalarEvent):
            self._take_scalar(event, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._take_start(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._take_end()
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(event.anchor or "", line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._n_documents += 1
            if self._n_documents == 2:
                self._fail("a second document begins here: a suite file has one", line=line)

    def _take_scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._refuse_tag(event.tag, line)
        is_plain = not event.style
        if self._open and self._open[-1].wants_key:
            self._take_key(event.value, line, is_plain=is_plain)
        else:
            value = self._plain(event.value, line) if is_plain else event.value
            self._place(value, line, anchor=event.anchor)

    def _take_key(self, key: str, line: int, *, is_plain: bool) -> None:
        holder = self._open[-1]
        holder.key, holder.key_line = key, line
        path = (*holder.path, key)
        if is_plain and key == "<<":
            self._complain(
                "merge keys (<<) are not part of YAML 1.2: use `defaults`, or write it out",
                line=line,
                path=holder.path,
            )
        elif is_plain and not key:
            self._complain(f"a key is empty: {_QUOTE}", line=line, path=holder.path)
        elif key in holder.value:
            self._complain("this key is given twice: keep one", line=line, path=path)

    def _plain(self, text: str, line: int) -> Any:
        """Read a plain scalar by the JSON schema."""
        if not text:
            self._complain(self._why_empty(), line=line, path=self._next_path())
            return None
        if text in _WORDS:
            return _WORDS[text]
        number = _NUMBER.fullmatch(text)
        if not number:
            return text
        value = _number(text, is_whole=number[1] is None and number[2] is None)
        if value is None:
            self._complain(
                f"the number is too large: {_QUOTE} if it is one", line=line, path=self._next_path()
            )
        return value

    def _why_empty(self) -> str:
        holder = self._open[-1] if self._open else None
        if holder and holder.is_flow and holder.key is not None:
            return (
                f"`{holder.key}` has no value: YAML ends a text at an unquoted comma or brace, "
                f"so {_QUOTE}"
            )
        return 'has no value: write one (null, "" and [] are values), or remove the key'

    def _take_start(self, event: yaml.CollectionStartEvent, line: int) -> None:
        self._refuse_tag(event.tag, line)
        if len(self._open) >= MAX_DEPTH:
            self._fail(f"is nested deeper than {MAX_DEPTH} levels", line=line)
        holder = self._open[-1] if self._open else None
        if holder and holder.wants_key:
            self._fail(
                f"YAML made a key of the brace or bracket here: {_QUOTE}",
                line=line,
                path=holder.path,
            )
        value: dict[str, Any] | list[Any]
        value = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._open.append(
            _Container(value, self._next_path(), line, bool(event.flow_style), event.anchor)
        )

    def _take_end(self) -> None:
        done = self._open.pop()
        self._place(done.value, done.line, anchor=done.anchor, n_values=done.n_values)

    def _take_alias(self, name: str, line: int) -> None:
        target = self._anchors.get(name)
        if self._open and self._open[-1].wants_key:
            self._fail(f"an alias (*{name}) cannot be a key: {_QUOTE}", line=line)
        if target is None:
            self._fail(f"*{name} stands for nothing, or for what it is part of", line=line)
        else:
            self._count(line, target.n_values)
            self._place(target.value, line, n_values=target.n_values)

    def _place(
        self, value: Any, line: int, *, anchor: str | None = None, n_values: int = 1
    ) -> None:
        """Put a finished value where it belongs."""
        self.lines.setdefault(self._next_path(), self._key_line(line))
        if anchor:
            self._anchors[anchor] = _Anchored(value, n_values)
        if not self._open:
            self.root = value
            return
        holder = self._open[-1]
        holder.n_values += n_values
        if isinstance(holder.value, list):
            holder.value.append(value)
        elif holder.key is not None:
            holder.value.setdefault(holder.key, value)
            holder.key = None

    def _count(self, line: int, n_values: int) -> None:
        """Refuse an alias that makes the file grow too large."""
        held = sum(holder.n_values for holder in self._open)
        if held + n_values > MAX_VALUES:
            self._fail(
                f"grows to more than {MAX_VALUES:,} values when its aliases are followed",
                line=line,
            )

    def _key_line(self, line: int) -> int:
        holder = self._open[-1] if self._open else None
        return holder.key_line if holder and holder.key is not None else line

    def _next_path(self) -> KeyPath:
        return self._open[-1].next_path() if self._open else ()

    def _refuse_tag(self, tag: str | None, line: int) -> None:
        if tag is not None:
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            message = f"tags are refused, here {shown}: write plain data"
            self._complain(message, line=line, path=self._next_path())

    def _complain(self, message: str, *, line: int, path: KeyPath = ()) -> None:
        self.problems.append(Problem(self.where, line, show_path(path), message))

    def _fail(self, message: str, *, line: int, path: KeyPath = ()) -> None:
        """Complain, and read no further."""
        self._complain(message, line=line, path=path)
        raise SuiteError(self.problems)


def _number(text: str, *, is_whole: bool) -> int | float | None:
    """Read a JSON number; ``None`` if Python cannot hold it."""
    try:
        value = int(text) if is_whole else float(text)
    except ValueError:
        return None
    return None if math.isinf(value) else value


def _events(text: str) -> Iterator[yaml.Event]:
    """Give the parser's events; asked for directly, which is much cheaper than ``yaml.parse``."""
    loader = _LOADER(text)
    try:
        while (event := loader.get_event()) is not None:
            yield event
            if isinstance(event, yaml.StreamEndEvent):
                return
    finally:
        loader.dispose()


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _syntax_problem(error: yaml.YAMLError, text: str, *, where: str) -> Problem:
    """Say in a sentence what YAML's own parser found."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark else None
    control = _CONTROL.search(text) if isinstance(error, yaml.reader.ReaderError) else None
    if control:
        line = text.count("\n", 0, control.start()) + 1
        what = f"the control character {control[0]!r} is not allowed"
    else:
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return Problem(where, line, "", f"this is no YAML: {what}{_syntax_hint(what, text, line)}")


def _syntax_hint(what: str, text: str, line: int | None) -> str:
    lines = text.split("\n")
    written = lines[line - 1] if line and line <= len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return " (a tab is used for indentation: use spaces)"
    if "mapping values" in what or "block end" in what or "block mapping" in what:
        return " (a text that holds `: `, or begins with a brace, bracket or quote, must be quoted)"
    if "flow" in what or "',' or" in what:
        return " (a brace or bracket is not closed, or a text with a comma or brace is not quoted)"
    if "control character" in what:
        return ' (write it as an escape in double quotes, such as "\\x07")'
    if "start any token" in what:
        return " (a text that begins with @, ` or % must be quoted)"
    if "escape code" in what:
        return " (write characters beyond \\uffff as themselves or as \\U and eight digits)"
    return ""


def show_path(path: KeyPath) -> str:
    """Write a key path as it is read: ``scenarios[2].expect.reply``."""
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return shown.removeprefix(".")
