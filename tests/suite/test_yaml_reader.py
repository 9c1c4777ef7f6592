"""Reading YAML: the scalars of the JSON schema, lines, refusals, limits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from evalkit.errors import SuiteError
from evalkit.suite.yaml_reader import MAX_BYTES, MAX_DEPTH, parse_yaml, read_yaml


def parsed(text: str) -> object:
    """Parse text."""
    return parse_yaml(text.encode(), where="f").data


def refusal(text: str | bytes) -> str:
    """Parse what is wrong and give the message."""
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(SuiteError) as caught:
        parse_yaml(content, where="f")
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("0", 0),
        ("-12", -12),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("-2E-2", -0.02),
        (str(2**70), 2**70),
        ("'5'", "5"),
        ('"null"', "null"),
        *(
            (text, text)
            for text in [
                "True",
                "no",
                "on",
                "off",
                "yes",
                "~",
                "NULL",
                "12:30",
                "0123",
                "2026-01-05",
                "2026-01-05T09:00:00Z",
                ".5",
                "5.",
                "0x1f",
                "0o17",
                "1_000",
                "+1",
                ".nan",
                ".inf",
                "-.inf",
                "1e",
                "1.e3",
                "01",
                "--",
                "Friday",
            ]
        ),
    ],
)
def test_scalar_follows_the_json_schema(written: str, value: object) -> None:
    """Only true, false, null and JSON numbers are special; all else is text."""
    found = parsed(f"a: {written}")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "start", "words"),
    [
        ("a:\nb: 1", "f:1: a: ", "has no value"),
        ("b: 1\na:\n  - x\n  -\n", "f:4: a[1]: ", "has no value"),
        ("{a, b}", "f:1: a: ", "quote the text"),
        ("a: {text: Hello, world}", "f:1: a.world: ", "`world` has no value"),
        ("x: 1\nuser: {url}", "f:2: user.url: ", "quote the text"),
        ("user: {{url}}", "f:1: user: ", "quote the text"),
        ("? [a, b]\n: c", "f:1: ", "quote the text"),
        ("text: {name} booked", "f:1: text.name: ", "quote the text"),
        ("a: 1\nb: 2\na: 3", "f:3: a: ", "given twice"),
        ("a:\n  b: {c: 1, c: 2}", "f:2: a.b.c: ", "given twice"),
        ("a: !!python/object/apply:os.system [ls]", "f:1: a: ", "tags are refused"),
        ("a: !x y", "f:1: a: ", "tags are refused, here !x"),
        ("a: !!str 5", "f:1: a: ", "tags are refused, here !!str"),
        ("b: &b {x: 1}\na:\n  <<: *b", "f:3: a: ", "merge keys"),
        ("a: *nobody", "f:1: ", "*nobody stands for nothing"),
        ("a: &a [*a]", "f:1: ", "stands for nothing, or for what it is part of"),
        ("k: &k x\n*k : 1", "f:2: ", "cannot be a key"),
        ("a:\n\t- b", "f:2: ", "use spaces"),
        ("a: 1\n---\nb: 2", "f:2: ", "a second document"),
        ("a: b: c", "f:1: ", "must be quoted"),
        ("a: @x", "f:1: ", "must be quoted"),
        ("a: [1, 2", "f:2: ", "not closed"),
        ("a: 'x", "f:", "no YAML"),
        ("a: x\nb: \x07", "f:2: ", "control character '\\x07'"),
        ("a: 1e999", "f:1: a: ", "too large"),
        ("a: " + "9" * 5000, "f:1: a: ", "too large"),
        ('a: "\\ud800"', "f:1: ", "escape"),
        ("", "f:1: ", "is empty"),
        ("# only a comment", "f:1: ", "is empty"),
        (b"a: 1\nb: \xe9", "f:2: ", "save the file as UTF-8"),
        ("a: 1".encode("utf-16"), "f:1: ", "save the file as UTF-8"),
    ],
)
def test_yaml_is_refused_with_line_and_reason(text: str | bytes, start: str, words: str) -> None:
    """What YAML would silently turn into something else is an error at its line."""
    message = refusal(text)
    assert message.startswith(start)
    assert words in message


def test_problems_of_one_file_come_together() -> None:
    """Problems that leave YAML readable are collected, not only the first."""
    assert len(refusal("a:\nb: 1\nb: 2\nc: {d}\n").splitlines()) == 3


def test_byte_order_mark_is_skipped() -> None:
    """A file saved with a byte order mark reads like one without."""
    assert parsed("\ufeffa: 1") == {"a": 1}


def test_keys_stay_text() -> None:
    """A key is what was written, even where the same scalar as a value is special."""
    assert parsed("{null: 1, true: 2, 3: 4}") == {"null": 1, "true": 2, "3": 4}


def test_line_is_that_of_the_nearest_key() -> None:
    """A path that was not written has the line of the nearest path above it."""
    document = parse_yaml(b"a:\n  - b: 1\n    c: [x,\n        y]\n", where="f")
    assert document.line(("a", 0, "c")) == 3
    assert document.line(("a", 0, "c", 1)) == 4
    assert document.line(("a", 0, "nope", 7)) == 2


def test_alias_is_followed() -> None:
    """A small alias is ordinary YAML and works."""
    assert parsed("a: &x [1]\nb: *x") == {"a": [1], "b": [1]}


def bomb(*, levels: int) -> str:
    """Write aliases of aliases, ten at each level."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)
    ]
    return "\n".join(lines)


def test_yaml_bomb_is_refused_quickly() -> None:
    """Aliases that multiply to billions of values are refused before they are followed."""
    start = time.process_time()
    assert "grows to more than" in refusal(bomb(levels=30))
    assert time.process_time() - start < 1


@pytest.mark.parametrize("opening", ["[", "- ", "{a: "])
def test_deep_nesting_is_refused(opening: str) -> None:
    """A hundred thousand levels give an error and no crash."""
    assert "nest" in refusal(opening * 100_000)


def test_depth_limit_is_exact() -> None:
    """The deepest allowed level is read, one more is refused."""
    assert parsed("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert "deeper" in refusal("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


def test_line_of_100_megabytes_is_refused_by_size(tmp_path: Path) -> None:
    """A huge file is refused by its size, without being read."""
    path = tmp_path / "suite.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    start = time.process_time()
    with pytest.raises(SuiteError, match=f"100,000,000 bytes, at most {MAX_BYTES:,}"):
        read_yaml(path)
    assert time.process_time() - start < 0.1


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder, a pipe or a missing file gives a sentence, and nothing hangs."""
    os.mkfifo(tmp_path / "pipe")
    for name, words in [("pipe", "no regular file"), (".", "no regular file"), ("x", "no such")]:
        with pytest.raises(SuiteError, match=words):
            read_yaml(tmp_path / name)
