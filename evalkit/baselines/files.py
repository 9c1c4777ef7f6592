"""Files of baselines: their names, reading them, writing them once, listing them."""

from __future__ import annotations

import difflib
import os
import re
import stat
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from evalkit.baselines.records import Baseline
from evalkit.baselines.sealing import baseline_from, text_of
from evalkit.errors import BaselineError, UsageError

if TYPE_CHECKING:
    import pandas as pd

AnyPath: TypeAlias = str | PathLike[str]

DEFAULT_FOLDER: Final = "data/baselines"
_ENDING: Final = ".json"
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?")
# Windows takes these for devices, with any ending.
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_LARGEST: Final = 256 * 2**20
_COLUMNS: Final = (
    "name", "suite", "lane", "agent", "created_at", "n_runs", "n_scenarios", "n_trials", "rate",
    "median_rate", "cost", "judge", "sha256", "problem",
)  # fmt: skip


def load_baseline(name_or_path: AnyPath, *, folder: AnyPath = DEFAULT_FOLDER) -> Baseline:
    """Load a baseline and check its seal.

    Parameters
    ----------
    name_or_path
        Its name; or the path of its file, which ends with ``.json``.
    folder
        Where baselines lie.

    Returns
    -------
    Baseline
        With the frames ``.trials`` and ``.grades``, so that it can stand in for
        a run in :mod:`evalkit.stats`.

    Raises
    ------
    UsageError
        If there is none of that name; the message names the nearest.
    BaselineError
        If the file was edited, contradicts itself, is no baseline, is of a newer
        format, or is a symbolic link.
    """
    path = path_of(name_or_path, folder=folder)
    try:
        text = _read(path)
    except FileNotFoundError:
        raise UsageError(_unknown(path)) from None
    except OSError as error:
        raise BaselineError([f"{path}: cannot read: {error.strerror}"]) from error
    baseline = baseline_from(text, where=str(path))
    if baseline.name != path.stem:
        raise BaselineError(
            [f"{path}: is the baseline {baseline.name!r} under another name; pin one of this name"]
        )
    return baseline


def path_of(name_or_path: AnyPath, *, folder: AnyPath = DEFAULT_FOLDER) -> Path:
    """Give the file of a baseline that is named, or given as a file.

    Raises
    ------
    UsageError
        If what is given is neither a path that ends with ``.json`` nor a safe name.
    """
    given = os.fspath(name_or_path)
    if given.endswith(_ENDING):
        return Path(given)
    wrong = name_problem(given)
    if wrong:
        raise UsageError(wrong)
    return Path(folder) / f"{given}{_ENDING}"


def name_problem(name: str) -> str:
    """Say why a name cannot be a baseline's; empty if it can."""
    if _NAME.fullmatch(name) and not _DEVICES.fullmatch(name) and not name.endswith(_ENDING):
        return ""
    return (
        f"{name!r} is no name of a baseline: use up to 100 letters, digits, '-', '_' and '.', "
        "such as 'main' or 'release-1.2'"
    )


def namesake(name: str, folder: Path) -> Path | None:
    """Find what has the name already, also where only upper case differs."""
    wanted = f"{name}{_ENDING}".casefold()
    if not folder.is_dir():
        return None
    return next((each for each in folder.iterdir() if each.name.casefold() == wanted), None)


def _read(path: Path) -> str:
    """Read a regular file; a link would make what was reviewed another file."""
    if path.is_symlink():
        raise BaselineError([f"{path}: is a symbolic link; a baseline is a file of its own"])
    # Between the question and the opening, it must not become a link, or a pipe that never ends.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise BaselineError([f"{path}: is no file"])
        if found.st_size > _LARGEST:
            raise BaselineError([f"{path}: has {found.st_size} bytes, more than a baseline can"])
        content = file.read()
    try:
        return _with_own_newlines(content).decode("ascii")
    except UnicodeDecodeError as error:
        raise BaselineError([f"{path}: was edited: byte {error.start} is no ASCII"]) from None


def _with_own_newlines(content: bytes) -> bytes:
    """Undo what git does to every line on Windows; a single changed line stays as it is."""
    if content.count(b"\r\n") == content.count(b"\n") > 1:
        return content.replace(b"\r\n", b"\n")
    return content


def _unknown(path: Path) -> str:
    known = _names_in(path.parent)
    near = difflib.get_close_matches(path.stem, known, n=1)
    if near:
        return f"{path}: no such baseline. Did you mean {near[0]!r}?"
    there = f"there are {', '.join(known[:10])}" if known else "there is none"
    return f"{path}: no such baseline; {there}. Pin one: evalkit baseline pin"


def _names_in(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return sorted(
        each.stem
        for each in folder.iterdir()
        if each.suffix == _ENDING and not each.name.startswith(".")
    )


def write_baseline(baseline: Baseline, folder: Path) -> Path:
    """Write a baseline as a whole, and never over another.

    Raises
    ------
    BaselineError
        If there is one of that name, or the disk does not take it.
    """
    path = folder / f"{baseline.name}{_ENDING}"
    temporary = folder / f".{path.name}.{os.urandom(4).hex()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_new(temporary, text_of(baseline).encode("ascii"))
        try:
            _put(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise BaselineError([taken(path)]) from None
    except OSError as error:
        raise BaselineError([f"{path}: cannot write: {error.strerror}"]) from error
    return path


def taken(path: Path) -> str:
    """Say that a name is taken, and what to do."""
    return (
        f"{path}: exists, and a baseline is never overwritten; pin under a new name, or delete "
        "the file in a change that is reviewed"
    )


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _put(temporary: Path, path: Path) -> None:
    """Give a whole file its name unless it is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):  # a file system without hard links
        _write_new(path, temporary.read_bytes())


def list_baselines(folder: AnyPath = DEFAULT_FOLDER) -> pd.DataFrame:
    """List the baselines of a folder.

    Parameters
    ----------
    folder
        Where baselines lie; one that does not exist holds none.

    Returns
    -------
    DataFrame
        One row a file, sorted by name: ``name``, ``suite``, ``lane``, ``agent``,
        ``created_at``, ``n_runs``, ``n_scenarios``, ``n_trials``, ``rate`` (mean of
        the scenarios' rates), ``median_rate`` (median of the runs' rates), ``cost``,
        ``judge``, ``sha256``, and ``problem``: why it cannot be used, else empty.
    """
    import pandas as pd

    rows = [_listed(name, Path(folder)) for name in _names_in(Path(folder))]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    counts = dict.fromkeys(("n_runs", "n_scenarios", "n_trials"), "Int64")
    return frame.astype({**counts, "rate": "float64", "median_rate": "float64"})


def _listed(name: str, folder: Path) -> dict[str, object]:
    try:
        found = load_baseline(folder / f"{name}{_ENDING}")
    except (BaselineError, UsageError) as error:
        return {"name": name, "problem": str(error)}
    same = {
        column: getattr(found, column)
        for column in _COLUMNS
        if column not in {"n_runs", "n_scenarios", "problem"}
    }
    sizes = {"n_runs": len(found.runs), "n_scenarios": len(found.scenarios)}
    return {**same, **sizes, "problem": ""}
