"""The building blocks of the suite's models: the base class and the checked field types.

A validator here says what is wrong in one plain sentence and raises it as a
``ValueError``; where it finds several things it raises :class:`SeveralProblems`.
What a key *means* is documented where it is a field, not here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializationInfo,
    Strict,
    ValidationInfo,
    model_validator,
)

from evalkit.matching.compiling import check_pattern

KeyPath: TypeAlias = tuple[str | int, ...]


class SeveralProblems(ValueError):
    """Several things are wrong inside one value, each with the path to it."""

    def __init__(self, problems: Iterable[tuple[KeyPath, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(message for _, message in self.problems))


def suggestion(word: object, known: Iterable[str]) -> str:
    """Give `` Did you mean ...?`` with a leading space, or nothing."""
    near = difflib.get_close_matches(str(word), sorted(known), n=1, cutoff=0.6)
    return f" Did you mean `{near[0]}`?" if near else ""


def one_of_words(words: Iterable[str]) -> str:
    """Join words for a sentence: ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


class WrittenNull:
    """Stands for a ``null`` where none may be written, so that its field refuses it."""

    def __repr__(self) -> str:
        return "null"


NULL = WrittenNull()


class SuiteModel(BaseModel):
    """Base of everything in a suite file: frozen, unknown keys refused.

    The validation context may hold ``authored`` (the data was written by a
    person: keys that only evalkit sets, and a ``null`` that would silently switch
    a check off, are refused), ``strict`` and ``folder``. For each
    unknown key the known ones are noted in ``known_keys``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden_keys: ClassVar[frozenset[str]] = frozenset()
    null_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys for which a written ``null`` means something."""

    @model_validator(mode="before")
    @classmethod
    def _look_at_keys(cls, data: Any, info: ValidationInfo) -> Any:
        context = info.context or {}
        if not isinstance(data, dict) or not context.get("authored"):
            return data
        fields = cls.field_keys()
        for key in data.keys() - fields:
            context["known_keys"][key, id(data[key])] = cls.written_keys()
        hidden = cls.hidden_keys & data.keys()
        if hidden:
            message = "unknown key: evalkit sets this itself"
            raise SeveralProblems(((key,), message) for key in sorted(hidden))
        if None not in data.values():
            return data
        return {
            key: NULL if value is None and key in fields and key not in cls.null_keys else value
            for key, value in data.items()
        }

    @classmethod
    @cache
    def field_keys(cls) -> frozenset[str]:
        """Give the names of the fields as they are written."""
        names = (field.alias or name for name, field in cls.model_fields.items())
        return frozenset(names) - cls.hidden_keys

    @classmethod
    def written_keys(cls) -> tuple[str, ...]:
        """Give the keys that may be written, short forms included."""
        names = (field.alias or name for name, field in cls.model_fields.items())
        return tuple(name for name in names if name not in cls.hidden_keys)


class NonEmpty(SuiteModel):
    """Base of the models that check something: an empty one would pass everything."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_empty(cls, data: Any) -> Any:
        if data == {}:
            keys = one_of_words(cls.written_keys())
            raise ValueError(f"is empty, so it checks nothing: write {keys}, or remove the key")
        return data


def single_pair(data: Any) -> tuple[str, Any] | None:
    """Give the key and value of a mapping that has exactly one."""
    if isinstance(data, dict) and len(data) == 1:
        return next(iter(data.items()))
    return None


def named(data: Any, *, name: str, body: str, keys: Sequence[str]) -> Any:
    """Turn ``x`` and ``{x: body}`` into ``{name: x, body: body}``; leave the long form.

    ``keys`` are those of the long form; ``name`` is the one that it must have.
    """
    if isinstance(data, str):
        return {name: data}
    pair = single_pair(data)
    if pair and pair[0] not in keys:
        return {name: pair[0], body: pair[1]}
    if isinstance(data, dict) and name not in data and set(data) - set(keys):
        first = next(key for key in data if key not in keys)
        raise ValueError(
            f"`{first}` has other keys beside it: write the long form, "
            f"{{{name}: {first}, {body}: {{...}}, ...}}"
        )
    return data


def as_tuple(value: Any) -> Any:
    """Turn one text into a tuple; leave anything else to the field's own check."""
    return (value,) if isinstance(value, str) else value


def _not_empty(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("is an empty list, so it checks nothing: write a text, or remove the key")
    if "" in value:
        raise ValueError("holds an empty text, which is in every text: write what to look for")
    return value


def check_regex(text: str) -> str:
    """Refuse a regular expression that Python cannot compile.

    Raises
    ------
    ValueError
        With what is wrong and at which character.
    """
    try:
        re.compile(text)
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ValueError(
            f"is no regular expression: {error.msg}{place} (put a backslash before a special "
            "character that you mean as itself)"
        ) from None
    except (OverflowError, RecursionError):
        raise ValueError("is a regular expression with too many repeats or levels") from None
    return text


def _refuse_null(value: Any) -> Any:
    if value is NULL:
        raise ValueError("null means nothing here")
    return value


def _check_pattern(value: Any) -> Any:
    _refuse_null(value)
    if isinstance(value, dict | list | tuple):
        found = check_pattern(value)
        if found:
            raise SeveralProblems(found)
    return value


_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|min|s|m|h|d|w))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|min|s|m|h|d|w)")
_LONGEST_S = 100 * 366 * 86400.0


def seconds(value: Any) -> float:
    """Read a duration: a number of seconds, or text such as ``20s`` or ``1h30m``.

    Raises
    ------
    ValueError
        If it is neither, not positive, or longer than a hundred years.

    Examples
    --------
    >>> seconds("500ms"), seconds("2d"), seconds(20)
    (0.5, 172800.0, 20.0)
    """
    found = _seconds(value)
    if found is None:
        raise ValueError(
            f"must be a duration such as 20s, 500ms, 5m, 1h30m or 2d, or a number of seconds, "
            f"not {value!r}"
        )
    if not 0 < found <= _LONGEST_S:
        raise ValueError(f"must be longer than 0 and at most a hundred years, not {value!r}")
    return found


def _seconds(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(min(value, 2 * _LONGEST_S))
    if isinstance(value, str) and len(value) < 50 and _DURATION.fullmatch(value.strip()):
        return sum(float(number) * _UNIT_S[unit] for number, unit in _DURATION_PART.findall(value))
    return None


_REQUEST = re.compile(r"(?:[A-Z]+|\*) \S+")


def _check_request(text: str) -> str:
    if not _REQUEST.fullmatch(text):
        raise ValueError(
            f"must be a method and an address, such as POST https://api.example.test/*, "
            f"not {text!r}"
        )
    return text


def _check_relative(text: str) -> str:
    """Refuse a path that is absolute, climbs out or cannot be a file name."""
    path = PurePosixPath(text)
    if not text or "\0" in text or "\\" in text or path.is_absolute() or ".." in path.parts:
        raise ValueError(
            f"must be a relative path with forward slashes and without `..`, not {text!r}"
        )
    if path == PurePosixPath():
        raise ValueError(f"must name a file, not {text!r}")
    return text


def _check_fixture(text: str, info: ValidationInfo) -> str:
    """Refuse a fixture that is missing or outside the suite's folder, also by a link."""
    _check_relative(text)
    context = info.context or {}
    folder: Path | None = context.get("folder")
    if folder is None:
        return text
    seen: dict[str, str] = context.setdefault("fixtures", {})
    if text not in seen:
        seen[text] = _fixture_problem(folder, text)
    if seen[text]:
        raise ValueError(seen[text])
    return text


def _fixture_problem(folder: Path, text: str) -> str:
    found = folder / text
    try:
        if not found.resolve().is_relative_to(folder.resolve()):
            return f"{text!r} leads out of the suite's folder: keep fixtures inside it"
        if found.is_file():
            with found.open("rb"):
                return ""
    except (OSError, RuntimeError) as error:
        return f"{text!r} cannot be read: {error}"
    return f"no such file in the suite's folder: {text!r}{_near_file(found)}"


def _fixture_text(text: str, info: SerializationInfo) -> str:
    digest: Callable[[str], str] | None = (info.context or {}).get("digest")
    return digest(text) if digest else text


def _near_file(missing: Path) -> str:
    if not missing.parent.is_dir():
        return f" (there is no folder {missing.parent.name!r})"
    return suggestion(missing.name, (entry.name for entry in missing.parent.iterdir()))


def _check_name(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


Json: TypeAlias = Any
"""Plain JSON data: what a suite file can hold."""

Body = Annotated[Any, AfterValidator(_refuse_null)]
"""JSON data that may be left out, so a written ``null`` would say nothing."""

Flag = Annotated[bool, Strict()]
Amount = Annotated[int, Strict(), Field(ge=0)]
Position = Annotated[int, Strict(), Field(ge=1)]
Number = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Rate = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]
Duration = Annotated[float, BeforeValidator(seconds)]

Name = Annotated[str, AfterValidator(_check_name)]
Names = Annotated[tuple[Name, ...], BeforeValidator(as_tuple)]
"""One name or a list of names."""
Texts = Annotated[tuple[str, ...], BeforeValidator(as_tuple), AfterValidator(_not_empty)]
"""One text or a list of texts, none of them empty."""
Regex = Annotated[str, AfterValidator(check_regex)]
Regexes = Annotated[tuple[Regex, ...], BeforeValidator(as_tuple), AfterValidator(_not_empty)]
Pattern = Annotated[Any, AfterValidator(_check_pattern)]
"""JSON data in which a mapping such as ``{$regex: ...}`` is a matcher."""
Request = Annotated[str, AfterValidator(_check_request)]
"""``METHOD address``, in which ``*`` stands for anything."""
RelativePath = Annotated[str, AfterValidator(_check_relative)]
FixturePath = Annotated[str, AfterValidator(_check_fixture), PlainSerializer(_fixture_text)]
"""A file in the suite's folder; with ``digest`` in the context it is written as that."""
