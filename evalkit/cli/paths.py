"""Paths that people type: a run that must exist, and what they may have meant."""

from __future__ import annotations

import difflib
from pathlib import Path

from evalkit.errors import UsageError


def run_folder(path: Path) -> Path:
    """Give the run directory that a path names: itself, or the latest run inside.

    Raises
    ------
    UsageError
        If there is nothing of that name; the message names what is near.
    LedgerError
        If what is there is no run.
    """
    from evalkit.results import load_run

    if not path.exists():
        raise UsageError(f"{path}: no such run directory{did_you_mean(path)}")
    return load_run(path).folder


def did_you_mean(path: Path) -> str:
    """Suggest what lies beside a missing path and is spelled most like it; else nothing."""
    beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=1)
    return f". Did you mean {path.parent / near[0]}?" if near else ""
