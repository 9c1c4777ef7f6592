"""Values are found however they are written, and nothing else is."""

from __future__ import annotations

import base64
import json
import random
import string
import time
import uuid
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.scanning import Hit, Scanner, hiding_for, squash

Written = Mapping[str, Callable[[str], str]]
VALUES = ("canary@example.test", "PAGE_INJECTION_CANARY_7Q2M", "aB3dE5gH7jK9mN1pQ2r4T")
LIMIT_S = 0.010
SLACK = 1.3


def names(scanner: Scanner, *texts: str) -> set[str]:
    """Name what is found."""
    return {hit.canary for hit in scanner.scan(texts).hits}


@pytest.mark.parametrize("value", VALUES)
def test_value_is_found_in_every_writing(how: str, value: str, written: Written) -> None:
    """Encodings, disguises and layers hide nothing, and a hit does not say the value."""
    text = f"Look: {written[how](value)} - so it is."
    scan = Scanner([("other", "OTHER_CANARY_9X8Y7Z6W"), ("mine", value)]).scan(text)
    assert {hit.canary for hit in scan.hits} == {"mine"}
    assert squash(value).decode() not in squash(repr(scan)).decode()


@pytest.mark.parametrize("n_parts", [2, 3, 7])
def test_value_that_is_split_over_a_stream_is_found(
    how: str, n_parts: int, written: Written
) -> None:
    """Texts of a stream are one; where the value is split, no single text is named."""
    text = written[how](VALUES[1])
    size = -(-len(text) // n_parts)
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert names(Scanner([("mine", VALUES[1])]), "first", *parts, "last") == {"mine"}


def test_hit_names_the_text_that_holds_it() -> None:
    """The first one, if one alone holds it."""
    scanner = Scanner([("mine", VALUES[0])])
    assert scanner.scan(["a", "b", f"c {VALUES[0]}", VALUES[0]]).hits == (Hit("mine", "plain", 2),)
    assert scanner.scan([VALUES[0][:9], VALUES[0][9:]]).hits == (Hit("mine", "plain", None),)


def test_overlapping_values_are_both_found(how: str, written: Written) -> None:
    """Also where one is inside the other, or they share their ends."""
    scanner = Scanner(
        [
            ("whole", "ABCD1234EFGH5678IJKL9012"),
            ("inside", "1234EFGH5678IJKL90"),
            ("behind", "5678IJKL9012MNOPQRST"),
        ]
    )
    text = written[how]("ABCD1234EFGH5678IJKL9012MNOPQRST")
    assert names(scanner, text) == {"whole", "inside", "behind"}


@pytest.mark.parametrize(
    "text",
    [
        "canary@example.tes",
        "canary at an example, to be put to the test",
        base64.b64encode(b"canary@example.tes").decode(),
        "",
        "\x00\ud800",
    ],
)
def test_what_is_not_the_value_is_not_found(text: str) -> None:
    """Nor is a part of it."""
    assert Scanner([("mine", VALUES[0])]).scan(text).hits == ()


def test_bytes_are_searched_as_text() -> None:
    """Whether UTF-8 or, of ASCII, UTF-16, and among what is no text."""
    scanner = Scanner([("mine", VALUES[0])])
    for encoding in ("utf-8", "utf-16", "utf-16-be", "utf-32"):
        assert scanner.scan(b"\xff\x80" + VALUES[0].encode(encoding) + b"\xc3").hits


@pytest.mark.parametrize("value", ["", "tiny", "a" * 15, "-" * 40])
def test_value_that_chance_may_write_is_refused(value: str) -> None:
    """Its message names it, and does not say it."""
    with pytest.raises(ValueError, match="'mine' is too short") as error:
        Scanner([("mine", value)])
    assert not value or value not in str(error.value)


VALUE = st.text(string.ascii_letters + string.digits, min_size=16, max_size=40).filter(
    lambda value: len(set(value.lower())) >= 12  # as random ones have
)
AROUND = st.text(max_size=60)


@settings(deadline=None, max_examples=100)
@given(value=VALUE, before=AROUND, after=AROUND, data=st.data())
def test_any_value_is_found_in_any_writing_and_text(
    value: str, before: str, after: str, data: st.DataObject, written: Written
) -> None:
    """What stands around it changes nothing."""
    how = data.draw(st.sampled_from(sorted(written)))
    text = f"{before} {written[how](value)} {after}"
    assert names(Scanner([("mine", value)]), text) == {"mine"}


@settings(deadline=None, max_examples=50)
@given(text=st.text(max_size=400))
def test_squashed_text_is_squashed_once(text: str) -> None:
    """Squashing again changes nothing, nor does what only disguises."""
    squashed = squash(text)
    assert squash(squashed) == squashed == squash(squashed.decode())
    assert squash(f"\u200b{text}") == squash("- ".join([*text, ""])) or not text.isascii()


def many(n: int = 50) -> Scanner:
    """Make a scanner of many random values."""
    chance = random.Random(7)
    letters = string.ascii_letters + string.digits
    return Scanner((f"c{i}", "".join(chance.choices(letters, k=21))) for i in range(n))


RANDOM: Mapping[str, Callable[[random.Random, int], str]] = {
    "base64": lambda chance, size: base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
    "hex": lambda chance, size: chance.randbytes(size // 2).hex(),
    "characters": lambda chance, size: "".join(chance.choices(string.printable, k=size)),
    "words": lambda chance, size: " ".join(
        chance.choices(("flight", "to", "Denver", "is", "booked,"), k=size // 5)
    ),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_nothing_is_found_in_random_text(kind: str) -> None:
    """Chance writes no value; all of the text is searched."""
    scan = many().scan(RANDOM[kind](random.Random(3), 500_000))
    assert scan == ((), "")


def as_json(chance: random.Random, size: int) -> str:
    """Write a list of messages with ids, as a ledger holds them."""
    messages = [
        {"id": str(uuid.UUID(bytes=chance.randbytes(16))), "content": json.dumps({"n": 'a "b"\n'})}
        for _ in range(size // 80)
    ]
    return json.dumps(messages)[:size]


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", [*RANDOM, "JSON"])
def test_search_takes_ten_milliseconds_for_100_kb(kind: str) -> None:
    """Of CPU time, for fifty values; the best of a few, for a busy machine only adds."""
    write = {**RANDOM, "JSON": as_json}[kind]
    scanner, text = many(50), write(random.Random(3), 100_000)

    def spent() -> float:
        before = time.process_time()
        scanner.scan(text)
        return time.process_time() - before

    assert min(spent() for _ in range(7)) <= LIMIT_S * SLACK


HOSTILE: Mapping[str, str] = {
    "backslashes": "\\" * 300_000,
    "ampersands": "&#" * 150_000,
    "tags": "<" * 300_000,
    "percents": "%25" * 100_000,
    "one letter": "A" * 300_000,
    "streams of zlib": "eJw" * 100_000,
    "terminal": "\x1b[" + "1" * 300_000,
    "long ligatures": "\ufdfa" * 30_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_takes_no_long_time(kind: str) -> None:
    """Time grows with the size of the text, not faster; a value beside it is found."""
    before = time.process_time()
    assert names(many(3), HOSTILE[kind] + " ") == set()
    assert time.process_time() - before < 3.0
    assert names(Scanner([("mine", VALUES[0])]), HOSTILE[kind], VALUES[0]) == {"mine"}


def test_more_than_is_unpacked_is_told() -> None:
    """What a bomb holds was not searched, so nobody says that there is nothing."""
    import gzip

    bomb = gzip.compress(b"a" * 5_000_000)
    scan = Scanner([("mine", VALUES[0])]).scan(base64.b64encode(bomb).decode())
    assert scan.hits == ()
    assert scan.problem


def test_hidden_text_names_the_value(how: str, written: Written) -> None:
    """However it was written, it is gone."""
    hiding = hiding_for((("mine", VALUES[0]),))
    told = hiding.text(f"a {written[how](VALUES[0])} b")
    assert "canary" in told
    assert "mine" in told
    assert not Scanner([("it", VALUES[0])]).scan(told).hits


def test_hidden_markup_stays_markup() -> None:
    """Values go out of texts and attributes; what cannot be hidden is told."""
    hiding = hiding_for((("mine", 'a<b>&"CANARY_1234567890'),))
    page = '<p title="a&lt;b&gt;&amp;&quot;CANARY_1234567890">x</p><b>ok</b>'
    assert hiding.document(page) == ('<p title="[canary mine]">x</p><b>ok</b>', "")
    plain = hiding_for((("mine", VALUES[0]),))
    encoded = base64.b64encode(VALUES[0].encode()).decode()
    told, left = plain.document(f"<p>{encoded}</p><p>fine</p>")
    assert told == "<p>[withheld: it holds canary 'mine' (base64)]</p><p>fine</p>"
    assert left == ""
    assert plain.document(f"<p title={encoded}>x</p>")[1] == "canary 'mine' (base64)"


def test_hidden_json_keeps_its_form() -> None:
    """Texts and keys are searched, numbers and words of JSON stay."""
    hiding = hiding_for((("mine", VALUES[0]),))
    assert hiding.json({"a": [1, None, True, VALUES[0]], VALUES[0]: 2.5}) == {
        "a": [1, None, True, "[canary mine]"],
        "[canary mine]": 2.5,
    }
