"""Writing drafts to a suite file: a new one, or below the scenarios of one that exists."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path

from evalkit.drafting.drafts import DraftedSuite
from evalkit.errors import SuiteError, UsageError
from evalkit.ledger import encode
from evalkit.suite import suite_from_data
from evalkit.suite.yaml_reader import Document, parse_yaml

_ITEM = re.compile(r"( *)- ")


def write_drafts(drafted: DraftedSuite, path: str | PathLike[str], *, append: bool = False) -> None:
    """Write drafts to a suite file.

    Parameters
    ----------
    drafted
        What was drafted.
    path
        The file; it must not exist, unless ``append``.
    append
        Add the drafts below the scenarios that the file has. Nothing else in it
        changes, comments included.

    Raises
    ------
    UsageError
        If the file exists, or cannot be appended to, or holds one of the ids.
    SuiteError
        If the file is no suite.
    """
    path = Path(path)
    text = drafted.text
    if append and path.exists():
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(_addition(drafted, path))
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists; add to it with --append, or name another file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _addition(drafted: DraftedSuite, path: Path) -> str:
    """Give the text to append, once it is sure that the file then holds old and new."""
    old = path.read_bytes()
    document = parse_yaml(old, where=str(path))
    suite = suite_from_data(document.data, folder=path.parent, where=str(path))
    _refuse_known(drafted, {scenario.id for scenario in suite}, path)
    items = ("\n".join(draft.lines) for draft in drafted.drafts)
    text = "\n" + "\n\n".join(items) + "\n"
    text = _shifted(text, _indent(document, old.decode("utf-8-sig"), path))
    if not old.endswith(b"\n"):
        text = "\n" + text
    _check_whole(old + text.encode(), document, path, drafted=drafted)
    return text


def _refuse_known(drafted: DraftedSuite, known: set[str], path: Path) -> None:
    folded = {name.casefold() for name in known}
    twice = [draft.id for draft in drafted.drafts if draft.id.casefold() in folded]
    if twice:
        raise UsageError(f"{path} has scenarios of these ids already: {', '.join(twice)}")


def _indent(document: Document, text: str, path: Path) -> int:
    """Find how far the items of ``scenarios`` are indented in a file."""
    last = len(document.data["scenarios"]) - 1
    line = document.lines[("scenarios", last)]
    found = _ITEM.match(text.split("\n")[line - 1])
    if not found:
        raise UsageError(
            f"{path}:{line}: cannot be appended to: write `scenarios` as a list with one "
            "`- ` a scenario"
        )
    return len(found[1])


def _shifted(text: str, indent: int) -> str:
    """Indent drafts, which are written two spaces in, as the file's own scenarios are."""
    if indent < 2:
        return "\n".join(line[2 - indent :] if line else "" for line in text.split("\n"))
    return "\n".join(" " * (indent - 2) + line if line else "" for line in text.split("\n"))


def _check_whole(content: bytes, before: Document, path: Path, *, drafted: DraftedSuite) -> None:
    """Make sure that the file stays what it was, with the drafts behind it."""
    wanted = {
        **before.data,
        "scenarios": [*before.data["scenarios"], *(draft.data for draft in drafted.drafts)],
    }
    hint = "`scenarios` must be the last key of the file"
    try:
        after = parse_yaml(content, where=str(path))
    except SuiteError as error:
        raise UsageError(f"{path}: cannot be appended to ({hint}): {error.problems[0]}") from error
    if encode(after.data) != encode(wanted):
        raise UsageError(f"{path}: cannot be appended to: {hint}")
    suite_from_data(after.data, folder=path.parent, where=str(path))
