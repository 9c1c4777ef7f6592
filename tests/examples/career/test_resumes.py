"""Reading resumes: bounds hold during extraction, and contact data never gets out."""

from __future__ import annotations

import resource
import runpy
import time
from pathlib import Path
from typing import Any

import pytest

from evalkit.examples.career import resumes
from evalkit.examples.career.resumes import ResumeProblem, ResumeReader

MAKER = runpy.run_path(str(Path(__file__).with_name("make_fixtures.py")))


def pdf(*pages: Any, **keys: Any) -> bytes:
    """Write a PDF; a list of texts is a page of lines."""
    contents = (MAKER["plain"](page) if isinstance(page, list) else page for page in pages)
    whole: bytes = MAKER["pdf"](list(contents), **keys)
    return whole


def test_resume_is_read_without_contact_data() -> None:
    """Page after page, with what stands for addresses and numbers."""
    resume = ResumeReader().read(pdf(MAKER["PAGE_1"] and list(MAKER["PAGE_1"]), ["The end"]))
    assert (resume.n_pages, resume.is_cut) == (2, False)
    assert "2019 - 2024: Analytical Engines Ltd, London" in resume.text
    assert resume.text.rstrip().endswith("The end")
    assert "[e-mail removed], [phone removed]" in resume.text
    assert MAKER["ADDRESS"] not in resume.text
    assert "7946" not in resume.text


def test_page_behind_the_bound_is_never_looked_at() -> None:
    """What stands there may be as bad as it likes."""
    good = [["Page"]] * resumes.MAX_PAGES
    resume = ResumeReader().read(pdf(*good, MAKER["bomb"](), MAKER["bomb"]()))
    assert (resume.n_pages, resume.is_cut) == (10, True)


def test_characters_are_counted_while_they_come() -> None:
    """One page of too much text ends before its end, and so does the reading."""
    lines = ["x" * 99] * (resumes.MAX_CHARS // 50)
    resume = ResumeReader().read(pdf(lines, MAKER["bomb"]()))
    assert (len(resume.text), resume.n_pages, resume.is_cut) == (resumes.MAX_CHARS, 1, True)


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long is given up, and that is said."""
    monkeypatch.setattr(resumes, "MAX_SECONDS", 0.0)
    with pytest.raises(ResumeProblem, match="too_slow"):
        ResumeReader().read(pdf(["One"], ["Two"]))


@pytest.mark.parametrize(
    ("data", "category"),
    [
        (b"GIF89a", "not_a_pdf"),
        (b"", "not_a_pdf"),
        (b"%PDF-1.4\nnothing else", "unreadable"),
        (pdf(["One"])[:400], "unreadable"),
        (pdf(["One"], trailer=MAKER["locked"]()), "encrypted"),
        (pdf(MAKER["bomb"]()), "unpacks_too_large"),
        (pdf(["One"], MAKER["bomb"]()), "unpacks_too_large"),
        (pdf([]), "no_text"),
    ],
    ids=["gif", "empty", "broken", "cut", "locked", "bomb", "second page", "no text"],
)
def test_problem_has_a_category(data: bytes, category: str) -> None:
    """It is one of few words."""
    with pytest.raises(ResumeProblem) as caught:
        ResumeReader().read(data)
    assert caught.value.category == category


def test_bomb_costs_next_to_nothing() -> None:
    """A hundred megabytes are never there: neither their time is spent nor their space."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(ResumeProblem, match="unpacks_too_large"):
        ResumeReader().read(pdf(MAKER["bomb"]()))
    assert time.process_time() - start < 1.0  # making it is the larger part
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kB
