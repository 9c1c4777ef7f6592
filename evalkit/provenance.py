"""Where a result comes from: versions of what ran, and the state of the checkout."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Final

from evalkit.ledger import JSON

_PACKAGES: Final = ("evalkit-lab", "pydantic", "anthropic", "openai", "langgraph", "pydantic-ai")


def version_of(package: str) -> str | None:
    """Give the installed version of a distribution; ``None`` if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions(packages: Iterable[str] = _PACKAGES) -> dict[str, str]:
    """Give the versions of Python and of the packages that are installed."""
    found = {name: version_of(name) for name in packages}
    known = {name: version for name, version in found.items() if version is not None}
    return {"python": platform.python_version(), "platform": sys.platform, **known}


def git_state(folder: Path) -> dict[str, JSON]:
    """Give the commit of a checkout and whether it has changes; empty outside of one.

    ``dirty`` is ``None`` where git could not say.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {}
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # file names need not be UTF-8
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},  # the user may be using git right now
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
