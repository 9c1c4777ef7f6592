"""Writing drafts: a new file, or below the scenarios that one has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.drafting import DraftedSuite, draft_suite, write_drafts
from evalkit.errors import SuiteError, UsageError
from evalkit.results import Run
from evalkit.suite.loading import parse_suite

OLD = """\
# Mine.
suite: mine   # keep this
scenarios:
  # The first.
  - {id: first, input: Hi, expect: {tools: []}}
"""


@pytest.fixture
def drafted(imported: Callable[..., Run], chat: Any) -> DraftedSuite:
    """Two drafts."""
    talks = [[chat.user(text), chat.model("Ok.\n\nBye.")] for text in ("a", "b")]
    return draft_suite(imported(*talks), status="any")


def _appended(drafted: DraftedSuite, path: Path, old: str) -> str:
    path.write_bytes(old.encode())
    write_drafts(drafted, path, append=True)
    return path.read_bytes().decode()


def test_a_new_file_is_a_suite(drafted: DraftedSuite, tmp_path: Path) -> None:
    """It loads at once; its folder is made; it is not overwritten."""
    path = tmp_path / "new" / "drafts.yaml"
    write_drafts(drafted, path)
    assert [one.id for one in parse_suite(path)] == ["talk-0-trial-0", "talk-1-trial-0"]
    before = path.read_bytes()
    with pytest.raises(UsageError, match="exists; add to it with --append"):
        write_drafts(drafted, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "old",
    [
        OLD,
        OLD.rstrip("\n"),
        OLD.replace("\n", "\r\n"),
        OLD.replace("  ", ""),
        OLD.replace("  - ", "      - "),
        "\ufeff" + OLD,
        "suite: m\nscenarios:\n- id: first\n  input: |\n    Hi\n  expect: {replies: 1}\n\n# end\n",
    ],
)
def test_appending_keeps_the_file_and_adds_to_it(
    drafted: DraftedSuite, tmp_path: Path, old: str
) -> None:
    """Whatever the file's indentation and line ends, its text stays, comments included."""
    path = tmp_path / "mine.yaml"
    new = _appended(drafted, path, old)
    assert new.startswith(old)
    suite: Any = parse_suite(path)
    assert [one.id for one in suite] == ["first", "talk-0-trial-0", "talk-1-trial-0"]
    assert suite.scenarios[1].turns[0].model.scripts[""].steps[0].text == "Ok.\n\nBye."


def test_appending_twice_is_refused(drafted: DraftedSuite, tmp_path: Path) -> None:
    """Ids that the file has, also in other case, are named; the file stays as it is."""
    path = tmp_path / "mine.yaml"
    once = _appended(drafted, path, OLD)
    with pytest.raises(UsageError, match="already: talk-0-trial-0, talk-1-trial-0"):
        write_drafts(drafted, path, append=True)
    assert path.read_bytes().decode() == once
    path.write_text(OLD.replace("id: first", "id: TALK-0-trial-0"))
    with pytest.raises(UsageError, match="already: talk-0-trial-0"):
        write_drafts(drafted, path, append=True)


@pytest.mark.parametrize(
    ("old", "problem"),
    [
        ("scenarios:\n  - {id: a, input: Hi, expect: {tools: []}}\nsuite: mine\n", "last key"),
        ("suite: s\nscenarios: [{id: a, input: Hi, expect: {tools: []}}]\n", "one `- ` a scenario"),
        (OLD + "...\n", "last key"),
    ],
)
def test_a_file_that_cannot_be_appended_to_stays(
    drafted: DraftedSuite, tmp_path: Path, old: str, problem: str
) -> None:
    """Text behind it would land elsewhere: refused, and why."""
    path = tmp_path / "mine.yaml"
    path.write_text(old)
    with pytest.raises(UsageError, match=problem):
        write_drafts(drafted, path, append=True)
    assert path.read_text() == old


def test_a_broken_suite_is_not_appended_to(drafted: DraftedSuite, tmp_path: Path) -> None:
    """Its problems are listed as when it is checked."""
    path = tmp_path / "mine.yaml"
    path.write_text(OLD.replace("expect", "expekt"))
    with pytest.raises(SuiteError, match="Did you mean `expect`"):
        write_drafts(drafted, path, append=True)
