"""Files: what a trial must leave, and what it must not touch."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, graders_for
from evalkit.suite import Scenario
from evalkit.trace import Trace, Turn


def entry(content: bytes, *, kept: bool = True, **more: Any) -> dict[str, Any]:
    """Describe a file as it is recorded."""
    text = None
    if kept:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = None
    digest = hashlib.sha256(content).hexdigest()
    return {"size": len(content), "sha256": digest, "text": text, **more}


LEFT = {
    "out.txt": entry("Grüße\nok\n".encode()),
    "notes/a.md": entry(b""),
    "photo.png": entry(b"\x89PNG\xff"),
    "huge.txt": entry(b"huge", kept=False),
    "resume.pdf": entry(b"pdf", unchanged=True),
    "profile.txt": entry(b"new", unchanged=False),
}
GIVEN = {
    "files": {
        "resume.pdf": "fixtures/resume.pdf",
        "profile.txt": "fixtures/profile.txt",
        "./gone.txt": "fixtures/gone.txt",
    }
}
DIGESTS = {"fixtures/resume.pdf": entry(b"pdf")["sha256"], "fixtures/ok.txt": entry(b"x")["sha256"]}


def files(
    scenario: dict[str, Any], left: Any = LEFT, *, whole: bool = True, **outcome: Any
) -> Grade:
    """Grade what a trial left."""
    said = {"input": "Hi."} if "turns" not in scenario else {}
    checked = Scenario.model_validate({"id": "s", **said, "fixtures": GIVEN, **scenario})
    world = {**({} if left is None else {"files": left}), **outcome}
    trial = Trial(checked, Trace((Turn(),)), world, lane="contract", whole=whole)
    return find_grader("files")(trial)


def trial_of(scenario: Scenario) -> Trial:
    """Make a trial of a scenario."""
    return Trial(scenario, Trace())


def wants(path: str, wanted: Any) -> dict[str, Any]:
    """Expect something of one file."""
    return {"expect": {"files": {path: wanted}}}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("out.txt", True),
        ("./out.txt", True),
        ("secret.txt", False),
        ("gone.txt", False),
        ("out.txt", {"contains": ["GRÜSSE", "ok"], "not_contains": "error"}),
        ("out.txt", {"regex": "(?m)^ok$"}),
        ("out.txt", {"equals": "Grüße\nok\n"}),
        ("notes/a.md", {"equals": ""}),
        ("huge.txt", {"equals": "huge"}),
        ("photo.png", {"exists": True}),
        ("resume.pdf", {"same_as": "fixtures/resume.pdf"}),
    ],
)
def test_file_as_expected_passes(path: str, wanted: Any) -> None:
    """A file that is as expected passes."""
    grade = files(wants(path, wanted), fixtures=DIGESTS)
    assert (grade.value, grade.reason) == (1.0, "the files are as expected")


@pytest.mark.parametrize(
    ("path", "wanted", "reason"),
    [
        ("secret.txt", True, "secret.txt does not exist; there is huge.txt, notes/a.md, out.txt, "),
        ("secret.txt", {"not_contains": "x"}, "secret.txt does not exist"),
        ("out.txt", False, "out.txt exists, and must not"),
        ("out.txt", {"contains": "x"}, "out.txt does not contain 'x'; it reads 'Grüße\\nok\\n'"),
        ("notes/a.md", {"contains": "x"}, "notes/a.md does not contain 'x'; it is empty"),
        ("out.txt", {"not_contains": "OK"}, "out.txt contains 'OK'"),
        ("out.txt", {"regex": "^ok"}, "out.txt does not match /^ok/"),
        ("out.txt", {"equals": "ok"}, "out.txt is not 'ok'"),
        ("huge.txt", {"equals": "Huge"}, "huge.txt is not 'Huge'; it has 4 bytes"),
        ("photo.png", {"equals": ""}, "photo.png is not ''; it has 5 bytes"),
        ("profile.txt", {"same_as": "fixtures/resume.pdf"},
         "profile.txt is not the same as fixtures/resume.pdf; it has 3 bytes"),
    ],
)  # fmt: skip
def test_file_that_misses_fails_and_says_what(path: str, wanted: Any, reason: str) -> None:
    """Each check fails what it should."""
    grade = files(wants(path, wanted), fixtures=DIGESTS)
    assert (grade.status, grade.value) == ("failed", 0.0)
    assert reason in grade.reason


@pytest.mark.parametrize(
    ("path", "wanted", "reason"),
    [
        ("photo.png", {"contains": "x"}, "photo.png cannot be searched: it is no UTF-8 text"),
        ("huge.txt", {"not_contains": "x"}, "or too large to be kept"),
        ("locked", {"equals": "x"}, "locked cannot be compared: Permission denied"),
        ("locked", {"same_as": "fixtures/resume.pdf"}, "Permission denied"),
        ("out.txt", {"same_as": "fixtures/x.txt"}, "the bytes of fixtures/x.txt are not known"),
    ],
)
def test_content_that_nobody_could_read_is_incomplete(path: str, wanted: Any, reason: str) -> None:
    """What is not known of a file neither passes nor fails."""
    locked = {"size": None, "sha256": None, "text": None, "problem": "Permission denied"}
    grade = files(wants(path, wanted), {**LEFT, "locked": locked}, fixtures=DIGESTS)
    assert grade.status == "incomplete"
    assert reason in grade.reason


FORBIDS_ALL: dict[str, Any] = {"forbid": {"files": "*"}}


@pytest.mark.parametrize("scenario", [wants("out.txt", True), wants("out.txt", False), FORBIDS_ALL])
def test_files_that_nobody_looked_at_are_incomplete(scenario: Any) -> None:
    """Without a look at the working directory, nothing is known of it."""
    grade = files(scenario, None)
    assert (grade.status, grade.reason) == (
        "incomplete", "nobody looked which files the trial left",
    )  # fmt: skip
    assert files(scenario, {}, files_gap="there were too many files").status == "incomplete"


@pytest.mark.parametrize(
    ("pattern", "hit"),
    [
        ("out.txt", "out.txt was written"),
        ("./out.txt", "out.txt was written"),
        ("profile.txt", "profile.txt was changed"),
        ("gone.txt", "gone.txt was removed"),
        ("*.txt", "out.txt was written, huge.txt was written, profile.txt was changed, gone.txt"),
        ("*.md", "notes/a.md was written"),
        ("notes", "notes/a.md was written"),
        ("notes/*", "notes/a.md was written"),
        ("*/a.*", "notes/a.md was written"),
        ("*", "and 1 more, which is forbidden (*)"),
        ("resume.pdf", ""),
        ("*.pdf", ""),
        ("secret.txt", ""),
        ("out", ""),
        ("ut.txt", ""),
        ("OUT.TXT", ""),
        ("out?txt", ""),
        ("outxtxt", ""),
        ("[o]ut.txt", ""),
    ],
)
def test_forbidden_file_fails_if_it_was_touched(pattern: str, hit: str) -> None:
    """Written, changed and removed files count, untouched fixtures do not; `*` is anything."""
    grade = files({"forbid": {"files": pattern}})
    assert grade.status == ("failed" if hit else "passed")
    assert hit in grade.reason


def test_fixture_with_the_same_bytes_was_not_touched() -> None:
    """A fixture is unchanged where its bytes are those of the suite's file, too."""
    left = {"resume.pdf": entry(b"pdf"), "profile.txt": entry(b"new"), "gone.txt": entry(b"")}
    scenario = {"forbid": {"files": "resume.pdf"}}
    assert files(scenario, left, fixtures=DIGESTS).passed
    assert (
        files(scenario, {**left, "resume.pdf": entry(b"PDF")}, fixtures=DIGESTS).status == "failed"
    )
    flagged = {**left, "resume.pdf": entry(b"pdf", unchanged=False)}
    assert files(scenario, flagged, fixtures=DIGESTS).status == "failed"


def test_fixture_of_which_nobody_knows_is_incomplete() -> None:
    """Without its hash or a word of whoever looked, a fixture may be as it was or not."""
    grade = files({"forbid": {"files": "*.pdf"}}, {"resume.pdf": entry(b"pdf")})
    assert (grade.status, grade.reason) == (
        "incomplete", "whether resume.pdf was changed was not recorded",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scenario", "status"),
    [
        (wants("secret.txt", True), "incomplete"),
        (wants("out.txt", False), "incomplete"),
        (wants("out.txt", True), "incomplete"),
        ({"forbid": {"files": "out.txt"}}, "failed"),
        ({"forbid": {"files": "gone.txt"}}, "incomplete"),
        ({"forbid": {"files": "secret.txt"}}, "incomplete"),
    ],
)
def test_trial_cut_short_fails_for_files_that_it_wrote_only(scenario: Any, status: str) -> None:
    """What is there may still go, what is not may still come; what was written was written."""
    assert files(scenario, whole=False).status == status


@pytest.mark.parametrize(
    ("turn", "place", "status"),
    [
        (0, wants("out.txt", True), "incomplete"),
        (1, wants("out.txt", True), "passed"),
        (1, wants("out.txt", False), "failed"),
        (0, {"forbid": {"files": "secret.txt"}}, "incomplete"),
        (1, {"forbid": {"files": "secret.txt"}}, "passed"),
        (1, {"forbid": {"files": "out.txt"}}, "incomplete"),
    ],
)
def test_turn_is_judged_where_the_end_of_the_trial_tells(
    turn: int, place: Any, status: str
) -> None:
    """Files are looked at once: only the last turn's expectations can be held against them."""
    turns: list[dict[str, Any]] = [{"user": "a"}, {"user": "b"}]
    turns[turn] |= place
    grade = files({"turns": turns})
    assert grade.status == status


def test_only_turn_touched_what_was_touched() -> None:
    """Where there is one turn, whatever happened to files happened in it."""
    turn = {"user": "a", "forbid": {"files": "out.txt"}}
    assert files({"turns": [turn]}).status == "failed"


def test_files_apply_where_they_are_spoken_of() -> None:
    """The grader applies by itself exactly where it has something to check."""

    def applies(**keys: Any) -> bool:
        scenario = Scenario.model_validate({"id": "s", "turns": [{"user": "a"}], **keys})
        return "files" in graders_for(trial_of(scenario))

    assert applies(**wants("a", True))
    assert applies(**FORBIDS_ALL)
    assert applies(turns=[{"user": "a", **FORBIDS_ALL}])
    assert not applies(expect={"reply": {"contains": "x"}}, forbid={"log": "x"})
    assert files({}).status == "incomplete"
    assert find_grader("files").version == "1"
