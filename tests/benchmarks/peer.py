"""The peer's own environment: made once, kept in a cache folder.

Usage: ``python tests/benchmarks/peer.py`` makes it and prints its interpreter. It
lies in the folder that ``EVALKIT_PEER_ENV`` names, else in ``.peer`` of the
checkout, takes about 600 MB, and a minute or two to install.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from measuring import CHECKOUT

VERSION: Final = "0.3.285"
REQUIREMENTS: Final = (f"inspect-ai=={VERSION}", "pandas", "pyarrow")
_CACHE: Final = CHECKOUT / ".peer"
_PATIENCE_S: Final = 240


class PeerMissingError(Exception):
    """The peer's environment is not there and could not be made."""


def folder() -> Path:
    """Say where the peer's environment and its logs lie."""
    root = os.environ.get("EVALKIT_PEER_ENV")
    return Path(root) if root else _CACHE


@contextmanager
def scratch() -> Iterator[str]:
    """Give a folder for what the sides write, on the checkout's disk; it goes at the end.

    For minutes after many files were deleted, ext4 searches long for a free inode
    near them, which adds up to 0.4 ms of CPU to every file that is made there:
    that would be the last benchmark's cost, not this one's. So each folder in this
    one gets a place of its own on the disk (chattr +T), where the disk knows how.
    """
    _CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=_CACHE) as path:
        with suppress(OSError):
            subprocess.run(["chattr", "+T", path], check=False, capture_output=True)
        yield path


def python(*, make: bool = True) -> Path:
    """Return the peer's interpreter.

    Parameters
    ----------
    make
        Make the environment where it is missing.

    Raises
    ------
    PeerMissingError
        If it is missing, and was not to be made or could not be.
    """
    home = folder() / f"inspect-ai-{VERSION}"
    interpreter, is_whole = home / "bin" / "python", home / "complete"
    if not is_whole.exists():
        if not make:
            raise PeerMissingError(
                f"Inspect AI {VERSION} is not installed in {home}; "
                "make it with: python tests/benchmarks/peer.py"
            )
        _make(home, interpreter)
        is_whole.touch()
    return interpreter


def _make(home: Path, interpreter: Path) -> None:
    """Make a virtual environment with the peer in it."""
    pip = [str(interpreter), "-m", "pip", "--disable-pip-version-check", "--retries", "1"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [*pip, "install", "--quiet", "--timeout", "15", *REQUIREMENTS],
        [str(interpreter), "-c", "import inspect_ai, inspect_ai.analysis, inspect_ai.scorer"],
    ):
        _run(command)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE_S)
    except subprocess.CalledProcessError as error:
        last = "\n".join((error.stderr or error.stdout).splitlines()[-3:])
        raise PeerMissingError(f"cannot install Inspect AI {VERSION}: {last}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerMissingError(f"cannot install Inspect AI {VERSION}: {error}") from error


def python_or_say_why() -> Path | None:
    """Return the peer's interpreter; where there is none, print why."""
    try:
        return python()
    except PeerMissingError as error:
        print(f"without the peer: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    print(python())
