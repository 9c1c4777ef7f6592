"""The ways in which a value can be written, by name."""

from __future__ import annotations

import base64
import codecs
import gzip
import html
import json
import quopri
import zlib
from collections.abc import Callable, Mapping
from urllib.parse import quote

import pytest

Write = Callable[[str], str]


def _base64(value: str, *, before: bytes = b"", url: bool = False) -> str:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return encode(before + value.encode() + b" and more").decode()


def _each(pattern: str) -> Write:
    return lambda value: "".join(pattern.format(byte) for byte in value.encode())


def _every(value: str, step: int, between: str) -> str:
    return between.join(value[at : at + step] for at in range(0, len(value), step))


ENCODINGS: Mapping[str, Write] = {
    "plain": str,
    "base64 at 0": _base64,
    "base64 at 1": lambda value: _base64(value, before=b"a"),
    "base64 at 2": lambda value: _base64(value, before=b"ab"),
    "base64url at 0": lambda value: _base64(value, url=True),
    "base64url at 1": lambda value: _base64(value, before=b"\xff", url=True),
    "base64url at 2": lambda value: _base64(value, before=b"\xff\xfe", url=True),
    "base32": lambda value: base64.b32encode(b"xyz" + value.encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "hex in capitals": lambda value: value.encode().hex().upper(),
    "hex parted": lambda value: value.encode().hex(":"),
    "hex escapes": _each("\\x{:02x}"),
    "percent": lambda value: quote(value, safe=""),
    "percent of all": _each("%{:02x}"),
    "percent in capitals": _each("%{:02X}"),
    "percent twice": lambda value: quote(_each("%{:02x}")(value)),
    "html": _each("&#{};"),
    "html in hex": _each("&#x{:x};"),
    "unicode escapes": _each("\\u{:04x}"),
    "decimal": lambda value: ", ".join(map(str, value.encode())),
    "reversed": lambda value: value[::-1],
    "rot13": lambda value: codecs.encode(value, "rot13"),
    "quoted-printable": _each("={:02X}"),
    "quoted-printable as mailed": lambda value: quopri.encodestring(
        f"{'x' * 65} {value}".encode()
    ).decode(),
    "octal": _each("\\{:03o}"),
    "binary": lambda value: " ".join(f"{byte:08b}" for byte in value.encode()),
}

DISGUISES: Mapping[str, Write] = {
    "capitals": str.upper,
    "small": str.lower,
    "swapped": str.swapcase,
    "full width": lambda value: "".join(
        chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in value
    ),
    "mathematical": lambda value: "".join(
        chr(0x1D41A + ord(letter) - ord("a")) if "a" <= letter <= "z" else letter
        for letter in value
    ),
    "zero width": lambda value: _every(value, 1, "\u200b"),
    "soft hyphens": lambda value: _every(value, 3, "\u00ad"),
    "look-alikes": lambda value: value.translate(str.maketrans("aeocpxy", "аеосрху")),
    "accents": lambda value: value.translate(str.maketrans("aeo", "áèö")),
    "tag characters": lambda value: "".join(chr(0xE0000 + ord(letter)) for letter in value),
    "spaced": lambda value: _every(value, 1, " "),
    "dashed": lambda value: _every(value, 4, "-"),
    "lines": lambda value: _every(value, 5, "\n"),
    "markdown": lambda value: _every(value, 6, "**"),
    "tags": lambda value: _every(value, 6, "<b></b>"),
    "terminal colours": lambda value: _every(value, 6, "\x1b[31m"),
    "spelled out": lambda value: value.replace("@", " [at] ").replace(".", " (dot) "),
}

LAYERED: Mapping[str, Write] = {
    "base64 in JSON": lambda value: json.dumps(json.dumps({"a": _base64(value)})),
    "base64 of JSON": lambda value: _base64(json.dumps({"to": [value]})),
    "base64 of capitals": lambda value: _base64(value.upper()),
    "base64 in lines": lambda value: base64.encodebytes(b"-" * 50 + value.encode()).decode(),
    "base64 twice": lambda value: _base64(_base64(value)),
    "base64 three times": lambda value: _base64(_base64(_base64(value))),
    "base64 of hex": lambda value: _base64(value.encode().hex()),
    "hex of base64": lambda value: _base64(value).encode().hex(),
    "base64 of gzip": lambda value: base64.b64encode(gzip.compress(value.encode())).decode(),
    "base64 of zlib": lambda value: base64.b64encode(zlib.compress(value.encode())).decode(),
    "hex of gzip": lambda value: gzip.compress(value.encode()).hex(),
    "base64 of UTF-16": lambda value: base64.b64encode(value.encode("utf-16")).decode(),
    "base64 of UTF-16, big end": lambda v: base64.b64encode(v.encode("utf-16-be")).decode(),
    "hex of UTF-16": lambda value: value.encode("utf-16-le").hex(),
    "percent of base64": lambda value: quote(_base64(value), safe=""),
    "percent three times": lambda v: quote(quote(_each("%{:02x}")(v), safe=""), safe=""),
    "html of percent": lambda value: html.escape(quote(_each("&#{};")(value))),
    "html and unicode escapes": lambda value: "".join(
        f"&#{ord(letter)};" if at % 2 else f"\\u{ord(letter):04x}"
        for at, letter in enumerate(value)
    ),
    "JSON in JSON, in lines": lambda value: json.dumps(json.dumps(_every(value, 5, "\n"))),
    "base64 reversed": lambda value: _base64(value)[::-1],
    "base64 with rot13": lambda value: codecs.encode(_base64(value), "rot13"),
    "base64 behind a word": lambda value: f"attachment/{_base64(_base64(value))}",
}

WRITTEN: Mapping[str, Write] = {**ENCODINGS, **DISGUISES, **LAYERED}


@pytest.fixture(name="written", scope="session")
def written_fixture() -> Mapping[str, Write]:
    """Give :data:`WRITTEN` to tests, which cannot import each other."""
    return WRITTEN


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for ``how`` every way."""
    if "how" in metafunc.fixturenames:
        metafunc.parametrize("how", WRITTEN)
