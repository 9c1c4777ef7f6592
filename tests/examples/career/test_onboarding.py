"""Getting to know a user, and what is left out of what users write."""

from __future__ import annotations

import pytest

from evalkit.examples.career.onboarding import advance, begin, link_in
from evalkit.examples.career.privacy import redacted
from evalkit.examples.career.storage import Profile


def test_four_answers_make_a_profile() -> None:
    """Question after question, until the user agrees."""
    profile, reply = begin(7)
    assert "your name" in reply
    for answer in ("Ada,  data engineer", "London", "Python,SQL , Airflow,", "Yes!"):
        profile, reply = advance(profile, answer)
    assert profile == Profile(7, "done", "Ada", "data engineer", "London", "Python, SQL, Airflow")
    assert "ready" in reply


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("name", "Ada"),
        ("name", ", engineer"),
        ("name", "Ada, " + "x" * 80),
        ("location", " "),
        ("location", "x" * 81),
        ("skills", " , ,"),
        ("skills", ",".join("abcdefghijklmnopqrstu")),
        ("skills", "x" * 81),
        ("confirm", "maybe"),
    ],
)
def test_what_is_no_answer_is_asked_again(stage: str, answer: str) -> None:
    """The stage stays, and so does what is known."""
    profile = Profile(7, stage, "Ada", "engineer", "London", "SQL")
    after, reply = advance(profile, answer)
    assert after == profile
    assert reply.endswith(("?", ".", "engineer", "remote", "(yes or no)"))


def test_no_begins_again() -> None:
    """What was wrong is forgotten."""
    profile, reply = advance(Profile(7, "confirm", "Ada", "engineer", "London", "SQL"), "no")
    assert profile == Profile(7, "name")
    assert "once more" in reply


@pytest.mark.parametrize(
    ("said", "link"),
    [
        ("Save https://a.test/x?y=1, please", "https://a.test/x?y=1"),
        ("(http://a.test/x).", "http://a.test/x"),
        ("a.test/x", None),
    ],
)
def test_link_is_found_in_a_text(said: str, link: str | None) -> None:
    """Without what only ends the sentence."""
    assert link_in(said) == link


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a.b+c@mail.example.test!", "[e-mail removed]!"),
        ("ada @ example . test", "[e-mail removed]"),
        ("+44 20 7946 0018", "[phone removed]"),
        ("(030) 555-0123-45", "[phone removed]"),
        ("2019 - 2024", "2019 - 2024"),
        ("https://a.test/posting/1234567890", "https://a.test/posting/1234567890"),
        ("https://a.test/?id=1234567890", "https://a.test/?id=1234567890"),
        ("salary 60000, 3 years", "salary 60000, 3 years"),
    ],
)
def test_contact_data_is_left_out(text: str, left: str) -> None:
    """Addresses and numbers go; years, sums and addresses of pages stay."""
    assert redacted(text) == left
