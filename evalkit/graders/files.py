"""Files: what the trial left in its working directory, and what it did not touch.

``outcome["files"]`` has each file that was there when the trial was over, by path:
``size``, ``sha256``, ``text`` (``None`` where it is no UTF-8 or too large to be kept),
``unchanged`` (whether a fixture is as it was; it may be left out where the hash tells)
and ``problem`` where it could not be read. ``outcome["fixtures"]`` has the SHA-256 of the
suite's fixtures by their path there, ``outcome["files_gap"]`` a sentence that says why
some files were not seen.

Where nobody looked, the grade is incomplete. Files are looked at once, so what a turn
expects is judged for the last turn only. ``*`` in a pattern stands for anything,
slashes too, and a pattern that names a folder means all in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.places import Place, places_of
from evalkit.graders.texts import SHOWN, text_misses
from evalkit.matching import show
from evalkit.suite import FileExpect

NAME = "files"
_NAMED: Final = 5
"""Files that a reason names."""

_Entry = Mapping[str, Any]


def grade_files(trial: Trial) -> Grade:
    """Grade the files that one trial left.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, only files that must not be touched are
        judged.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where nobody looked, or a content is unknown.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> scenario = Scenario.model_validate(
    ...     {"id": "save", "input": "Go.", "expect": {"files": {"out.txt": {"contains": "ok"}}}}
    ... )
    >>> left = {"out.txt": {"size": 2, "sha256": "", "text": "no"}}
    >>> grade_files(Trial(scenario, Trace(), outcome={"files": left})).reason
    "out.txt does not contain 'ok'; it reads 'no'"
    """
    places = [place for place in places_of(trial.scenario) if _speaks(place)]
    if not places:
        return Grade.incomplete(NAME, "the scenario expects nothing of files")
    world = World.of(trial)
    if world is None:
        return Grade.incomplete(NAME, "nobody looked which files the trial left")
    return grade_of(
        NAME,
        chain.from_iterable(_found(place, trial, world) for place in places),
        trial=trial,
        passed="the files are as expected",
        evidence={"files": sorted(world.files)[:100], "n_files": len(world.files)},
    )


def _applies(trial: Trial) -> bool:
    return any(map(_speaks, places_of(trial.scenario)))


def _speaks(place: Place) -> bool:
    """Say whether a place says anything of files."""
    _, expect, forbid = place
    wanted = expect is not None and expect.files is not None
    return wanted or bool(forbid is not None and forbid.files)


class World(NamedTuple):
    """The files after the trial, and those that it began with."""

    files: Mapping[str, _Entry]
    sources: Mapping[str, str]
    """Path of the fixture in the suite's folder, by the path in the working directory."""
    digests: Mapping[str, str]
    """SHA-256 of the suite's fixtures."""
    unseen: str

    @classmethod
    def of(cls, trial: Trial) -> World | None:
        """Read what was recorded; ``None`` if nobody looked."""
        files = trial.outcome.get("files")
        if not isinstance(files, Mapping):
            return None
        given = trial.scenario.fixtures
        sources = {} if given is None else {**given.files, **given.database}
        return cls(
            {_plain(path): entry for path, entry in files.items()},
            {_plain(path): source for path, source in sources.items()},
            trial.outcome.get("fixtures") or {},
            str(trial.outcome.get("files_gap") or "") or _cut_short(trial),
        )

    def is_unchanged(self, path: str) -> bool | None:
        """Say whether a file is a fixture as it was; ``None`` if nobody knows."""
        if path not in self.sources:
            return False
        entry, digest = self.files[path], self.digests.get(self.sources[path])
        told = entry.get("unchanged")
        if isinstance(told, bool):
            return told
        return None if digest is None else bool(entry.get("sha256") == digest)

    def touched(self) -> dict[str, str]:
        """Say what was done to files, by path."""
        changed = {
            path: "changed" if path in self.sources else "written"
            for path, entry in self.files.items()
            if self.is_unchanged(path) is False and "beside" not in entry
        }
        removed = [] if self.unseen else [path for path in self.sources if path not in self.files]
        return changed | dict.fromkeys(removed, "removed")

    def doubtful(self) -> list[str]:
        """List the fixtures of which nobody knows whether they were changed."""
        return [path for path in self.files if self.is_unchanged(path) is None]


def _cut_short(trial: Trial) -> str:
    return "" if trial.whole else "the trial did not run to its end"


def _plain(path: str) -> str:
    return PurePosixPath(path).as_posix()


def _found(place: Place, trial: Trial, world: World) -> Iterator[Finding]:
    turn, expect, forbid = place
    n_turns = len(trial.scenario.turns)
    if turn is not None and turn < n_turns - 1:
        yield gap("files are looked at after the last turn only", turn=turn)
        return
    if expect is not None and expect.files is not None and trial.whole:
        for path, wanted in expect.files.items():
            yield from _judged(path, wanted, world=world, turn=turn)
    if forbid is not None and forbid.files:
        is_shared = turn is not None and n_turns > 1
        for finding in _forbidden(forbid.files, world, turn=turn):
            yield _in_which_turn(finding) if is_shared and not finding.is_gap else finding


def _in_which_turn(finding: Finding) -> Finding:
    return gap(f"{finding.text}; in which turn was not recorded", turn=finding.turn)


def _forbidden(patterns: Sequence[str], world: World, *, turn: int | None) -> Iterator[Finding]:
    """Find files that must not be touched and were."""
    touched = world.touched()
    for pattern in patterns:
        names = re.compile(_regex(pattern), re.DOTALL)
        hits = [f"{path} was {how}" for path, how in touched.items() if names.fullmatch(path)]
        if hits:
            rest = f" and {len(hits) - _NAMED} more" if len(hits) > _NAMED else ""
            text = f"{', '.join(hits[:_NAMED])}{rest}, which is forbidden ({pattern})"
            yield fault(text, turn=turn, files=hits[:100])
        for path in filter(names.fullmatch, world.doubtful()):
            yield gap(f"whether {path} was changed was not recorded", turn=turn)
    if world.unseen:
        yield gap(world.unseen, turn=turn)


def _regex(pattern: str) -> str:
    """Write a pattern as a regular expression that also takes what lies below."""
    return ".*".join(map(re.escape, _plain(pattern).split("*"))) + "(?:/.*)?"


def _judged(path: str, wanted: FileExpect, *, world: World, turn: int | None) -> Iterator[Finding]:
    """Hold one file against what is expected of it."""
    entry = world.files.get(_plain(path))
    if entry is None:
        if wanted.exists:
            yield _missing(path, world, turn)
        elif world.unseen:
            yield gap(world.unseen, turn=turn)
    elif not wanted.exists:
        yield fault(f"{path} exists, and must not", turn=turn)
    else:
        yield from _misread(path, wanted, entry=entry, turn=turn)
        if wanted.same_as is not None:
            yield from _differing(path, wanted.same_as, world=world, turn=turn)


def _missing(path: str, world: World, turn: int | None) -> Finding:
    if world.unseen:
        return gap(f"{path} was not seen: {world.unseen}", turn=turn)
    left = sorted(world.files)
    rest = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    there = f"there is {', '.join(left[:_NAMED])}{rest}" if left else "there is no file"
    return fault(f"{path} does not exist; {there}", turn=turn)


def _misread(
    path: str, wanted: FileExpect, *, entry: _Entry, turn: int | None
) -> Iterator[Finding]:
    """Hold the text of a file against what is expected of it."""
    text = entry.get("text")
    if isinstance(text, str):
        told = [miss.text for miss in text_misses(wanted, [text])]
        if told:
            reads = f"it reads {show(text, SHOWN)}" if text else "it is empty"
            yield fault(f"{path} {', '.join(told)}; {reads}", turn=turn, misses=told)
        return
    if wanted.contains or wanted.not_contains or wanted.regex:
        yield gap(f"{path} cannot be searched: {_why_unread(entry)}", turn=turn)
    if wanted.equals is not None:
        digest = hashlib.sha256(wanted.equals.encode("utf-8", "surrogatepass")).hexdigest()
        yield from _compared(path, show(wanted.equals), digest, entry=entry, turn=turn)


def _why_unread(entry: _Entry) -> str:
    return str(entry.get("problem") or "it is no UTF-8 text, or too large to be kept")


def _differing(path: str, fixture: str, *, world: World, turn: int | None) -> Iterator[Finding]:
    """Hold the bytes of a file against those of a fixture."""
    entry, digest = world.files[_plain(path)], world.digests.get(fixture)
    if digest is None:
        yield gap(f"{path} cannot be compared: the bytes of {fixture} are not known", turn=turn)
    else:
        yield from _compared(path, f"the same as {fixture}", digest, entry=entry, turn=turn)


def _compared(
    path: str, other: str, digest: str, *, entry: _Entry, turn: int | None
) -> Iterator[Finding]:
    if not entry.get("sha256"):
        yield gap(f"{path} cannot be compared: {_why_unread(entry)}", turn=turn)
    elif entry["sha256"] != digest:
        yield fault(f"{path} is not {other}; it has {entry.get('size')} bytes", turn=turn)


add_grader(Grader(NAME, grade_files, version="1", applies=_applies, reads_partial=True))
