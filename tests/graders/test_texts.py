"""Texts: the checks that every grader of texts shares."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.graders.findings import Finding
from evalkit.graders.texts import Seen, matched, said, text_findings, text_misses
from evalkit.suite import ForbiddenText, TextExpect

TEXTS = st.text(max_size=12)


def misses(expect: dict[str, Any], *texts: str) -> list[str]:
    """Say what some texts miss."""
    return [miss.text for miss in text_misses(TextExpect.model_validate(expect), texts)]


def findings(
    *texts: str, expect: dict[str, Any] | None = None, forbid: Any = None, **seen: Any
) -> list[Finding]:
    """Judge some texts."""
    wanted = None if expect is None else TextExpect.model_validate(expect)
    banned = None if forbid is None else ForbiddenText.model_validate(forbid)
    return list(text_findings(Seen("the text", texts, **seen), expect=wanted, forbid=banned))


@pytest.mark.parametrize(
    ("expect", "texts", "missed"),
    [
        ({"contains": ["a", "B"]}, ("xA", "b"), []),
        ({"contains": ["a", "c"]}, ("xA", "b"), ["does not contain 'c'"]),
        ({"contains": "ab"}, ("a", "b"), ["does not contain 'ab'"]),
        ({"not_contains": "b"}, ("a", "B"), ["contains 'b'"]),
        ({"regex": ["^a$", "^b$"]}, ("a", "b"), []),
        ({"regex": "^A$"}, ("a", "b"), ["does not match /^A$/"]),
        ({"equals": "b"}, ("a", "b"), []),
        ({"equals": "b"}, ("a", "bb"), ["is not 'b'"]),
        ({"contains": "a"}, (), ["does not contain 'a'"]),
        ({"not_contains": "a"}, (), []),
    ],
)
def test_each_check_is_met_by_any_one_of_the_texts(
    expect: Any, texts: tuple[str, ...], missed: list[str]
) -> None:
    """Several texts are looked at together, but never run into each other."""
    assert misses(expect, *texts) == missed


def test_misses_tell_what_is_lacking_from_what_is_too_much() -> None:
    """Only what is not there can still come, or lie where nobody looked."""
    expect = TextExpect(contains=("a",), not_contains=("b",), regex=("c",), equals="d")
    kinds = [miss.is_lack for miss in text_misses(expect, ["b"])]
    assert kinds == [True, False, True, True]


@settings(deadline=None, max_examples=100)
@given(TEXTS, st.text(min_size=1, max_size=4), TEXTS)
def test_said_finds_a_text_whatever_its_case_and_composition(
    before: str, text: str, after: str
) -> None:
    """What stands in a text is found there, also decomposed."""
    whole = f"{before} {text} {after}"
    assert said([text], [whole]) == [text]
    assert said([text], [unicodedata.normalize("NFD", whole)]) == [text]


def test_matched_gives_each_pattern_once_with_its_surroundings() -> None:
    """A pattern that is found in several texts is one match, of the first of them."""
    found = list(matched(["b+"], ["x" * 50 + "bb" + "y" * 50, "b"]))
    assert [(match.pattern, match.around) for match in found] == [
        ("b+", "x" * 30 + "bb" + "y" * 30)
    ]


@pytest.mark.parametrize(
    ("judged", "faults", "gaps"),
    [
        ({"expect": {"contains": "b"}}, 1, 0),
        ({"expect": {"contains": "a"}}, 0, 0),
        ({"expect": {"not_contains": "a"}}, 1, 0),
        ({"forbid": "a"}, 1, 0),
        ({"forbid": {"regex": "a"}}, 1, 0),
        ({"forbid": "b"}, 0, 0),
        # Not all was seen: what is lacking may be there, and so may what is forbidden.
        ({"expect": {"contains": "b"}, "unseen": "why"}, 0, 1),
        ({"expect": {"contains": "a"}, "unseen": "why"}, 0, 0),
        ({"expect": {"not_contains": "b"}, "unseen": "why"}, 0, 1),
        ({"expect": {"not_contains": "a"}, "unseen": "why"}, 1, 1),
        ({"forbid": "b", "unseen": "why"}, 0, 1),
        ({"forbid": "a", "unseen": "why"}, 1, 1),
        # It may belong elsewhere: what is lacking lacks here too.
        ({"expect": {"contains": "b"}, "foreign": "why"}, 1, 0),
        ({"expect": {"contains": "a"}, "foreign": "why"}, 0, 1),
        ({"expect": {"equals": "a"}, "foreign": "why"}, 0, 1),
        ({"expect": {"not_contains": "a"}, "foreign": "why"}, 0, 1),
        ({"expect": {"not_contains": "b"}, "foreign": "why"}, 0, 0),
        ({"forbid": "a", "foreign": "why"}, 0, 1),
        ({"forbid": "b", "foreign": "why"}, 0, 0),
        # More may come.
        ({"expect": {"contains": "b"}, "is_over": False}, 0, 0),
        ({"expect": {"not_contains": "a"}, "is_over": False}, 1, 0),
        ({"forbid": "a", "is_over": False}, 1, 0),
    ],
)
def test_findings_are_faults_only_where_they_are_certain(
    judged: Any, faults: int, gaps: int
) -> None:
    """What nobody saw, or might belong elsewhere, is a gap; never a fault, never a pass."""
    found = findings("a", **judged)
    assert (sum(not one.is_gap for one in found), sum(one.is_gap for one in found)) == (
        faults, gaps,
    )  # fmt: skip


def test_fault_names_all_that_is_missing_and_quotes_what_is_forbidden() -> None:
    """One sentence for what is not as expected, one for each text that is forbidden."""
    found = findings(
        "An ERROR in b.", expect={"contains": ["a1", "a2"]}, forbid="error", note="; see there"
    )
    assert [one.text for one in found] == [
        "the text does not contain 'a1', does not contain 'a2'; see there",
        "the text contains 'error', which is forbidden: 'An ERROR in b.'",
    ]
