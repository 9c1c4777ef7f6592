"""YAML for people: any data comes back, and comments stay comments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.drafting.recorded import Note
from evalkit.drafting.yaml_text import key_lines, scenario_lines
from evalkit.ledger import encode
from evalkit.suite.yaml_reader import parse_yaml
from evalkit.terminal import printable

_words = st.sampled_from(["no", "on", "~", "null", "1e5", ".5", "0x1F", "1_000", "=", "<<", "a: b"])
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | _words
_data = st.recursive(
    st.none() | st.booleans() | st.integers() | _texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(_texts, _data, min_size=1, max_size=3), _texts)
def test_any_data_comes_back(expect: dict[str, Any], remark: str) -> None:
    """What is written is read back equal, whatever stands in texts, keys and comments."""
    data = {"id": "a", "input": remark, "model": [{"text": remark, "tool": "x", "args": expect}]}
    notes = [Note("", remark), Note("model", remark, needs_review=False)]
    text = "\n".join(["scenarios:", *scenario_lines(data, about=[remark], notes=notes), ""])
    assert encode(parse_yaml(text.encode(), where="x").data) == encode({"scenarios": [data]})
    assert printable(text) == text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("no", "'no'"),
        ("1e5", "'1e5'"),
        ("2024-05-20", "'2024-05-20'"),
        ("plain words", "plain words"),
        ("a: b", "'a: b'"),
        ("one\ntwo", "|-\n  one\n  two"),
        ({"city": "Denver"}, "{city: Denver}"),
        ([], "[]"),
        (1e16, "1.0e+16"),
    ],
)
def test_values_are_written_as_people_write_them(value: Any, written: str) -> None:
    """Words that YAML takes for something else are quoted, and nothing else is."""
    assert key_lines("k", value, indent=0) == f"k: {written}".split("\n")


def test_steps_begin_lines_of_their_own() -> None:
    """A step is never hidden in braces, a short argument is never spread out."""
    steps = [{"tool": "book", "args": {"day": "Friday"}}, {"text": "Done."}]
    assert key_lines("model", steps, indent=0) == [
        "model:",
        "  - tool: book",
        "    args: {day: Friday}",
        "  - text: Done.",
    ]
