"""Find the notebooks, suites and traces that come with evalkit.

In a checkout they are the folders ``notebooks``, ``data/suites`` and
``data/traces`` beside the package; in an installed wheel they are inside it,
under ``evalkit/_shipped``. Nothing else in the package knows the difference.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Final, NamedTuple

from evalkit.errors import UsageError

__all__ = ["names", "notebook", "suite", "trace"]

_PACKAGE: Final = Path(__file__).resolve().parent


class _Kind(NamedTuple):
    """Where files of one kind are, and how their names end."""

    folder: str
    endings: tuple[str, ...]


_KINDS: Final = {
    "notebook": _Kind("notebooks", (".ipynb",)),
    "suite": _Kind("data/suites", (".yaml", ".yml")),
    "trace": _Kind("data/traces", (".jsonl", ".json")),
}


def notebook(name: str) -> Path:
    """Return the path of a shipped notebook, such as ``pass_rates``.

    Parameters
    ----------
    name
        File name; the ending may be left out.

    Raises
    ------
    UsageError
        No such notebook is shipped; the message lists those that are.
    """
    return _find("notebook", name)


def suite(name: str) -> Path:
    """Return the path of a shipped suite, such as ``travel``.

    Parameters
    ----------
    name
        File name; the ending may be left out.

    Raises
    ------
    UsageError
        No such suite is shipped; the message lists those that are.
    """
    return _find("suite", name)


def trace(name: str) -> Path:
    """Return the path of a shipped file of recorded traces.

    Parameters
    ----------
    name
        File name; the ending may be left out.

    Raises
    ------
    UsageError
        No such file is shipped; the message lists those that are.
    """
    return _find("trace", name)


def names(kind: str) -> list[str]:
    """List what is shipped of one kind, without endings.

    Parameters
    ----------
    kind
        ``notebook``, ``suite`` or ``trace``.

    Raises
    ------
    UsageError
        There is no such kind.
    """
    if kind not in _KINDS:
        raise UsageError(f"{kind!r} is no kind of shipped file; there are {', '.join(_KINDS)}")
    return sorted({path.stem for path in _files(kind)})


def _find(kind: str, name: str) -> Path:
    """Return the shipped file of that name or say which ones there are."""
    files = _files(kind)
    found = {path.stem: path for path in reversed(files)} | {path.name: path for path in files}
    if name in found:
        return found[name]
    raise UsageError(_unknown(kind, name))


def _files(kind: str) -> list[Path]:
    """List the files of one kind."""
    folder = _folder(_KINDS[kind].folder)
    endings = _KINDS[kind].endings
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.suffix in endings and path.is_file())


def _folder(inside_checkout: str) -> Path:
    """Return the folder in the wheel where there is one, else in the checkout."""
    shipped = _PACKAGE / "_shipped"
    if shipped.is_dir():
        return shipped / Path(inside_checkout).name
    return _PACKAGE.parent / inside_checkout


def _unknown(kind: str, name: str) -> str:
    """Say that a name is unknown, what is near it and what there is."""
    known = names(kind)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no {kind} called {name!r} is shipped.{hint} There are: {', '.join(known) or 'none'}"
