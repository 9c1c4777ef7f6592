"""One run of a suite for all of a pytest session, whichever process asks first.

pytest-xdist deals items out to workers, and no worker knows which it will get. So the
first that is due runs every selected scenario of the file, under a lock in the folder
that the session's workers share; the others wait, and load the run.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from evalkit.results import Run

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class NotRun(Exception):
    """The suite could not be run at all; the text says why."""


def shared_run(config: pytest.Config, key: str, *, execute: Callable[[Path], Run]) -> Run:
    """Give the session's run of a suite: made here, or by another worker.

    Parameters
    ----------
    config
        Of the session.
    key
        Names the suite and what is run of it.
    execute
        Makes the run; gets a folder for it.

    Raises
    ------
    NotRun
        If it could not be run, here or there.
    """
    from evalkit.publishing import write_file
    from evalkit.results import load_run

    folder = _shared_folder(config)
    told = folder / f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}.json"
    with _locked(told.with_suffix(".lock")):
        if not told.exists():
            write_file(told, json.dumps(_answer(execute, folder / "runs")).encode())
    answer = json.loads(told.read_text(encoding="utf-8"))
    if "error" in answer:
        raise NotRun(answer["error"])
    return load_run(answer["folder"])


def _answer(execute: Callable[[Path], Run], folder: Path) -> dict[str, str]:
    """Run, and say where the run lies or why there is none: nobody must try again."""
    from evalkit.errors import EvalkitError

    try:
        return {"folder": str(execute(folder).folder.resolve())}
    except EvalkitError as error:
        return {"error": "\n".join((str(error), *getattr(error, "__notes__", ())))}
    except Exception:
        text = traceback.format_exc()
        return {"error": f"a fault of evalkit itself; nothing was measured\n{text}"}


def _shared_folder(config: pytest.Config) -> Path:
    """Give a temporary folder that all workers of the session have in common."""
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    base = factory.getbasetemp()
    if hasattr(config, "workerinput") and fcntl is not None:
        base = base.parent
    folder = base / "evalkit"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock; the system frees it if this process dies."""
    with path.open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
