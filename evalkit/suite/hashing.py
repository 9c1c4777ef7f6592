"""Content hashes of suites and scenarios.

A hash covers everything that can change a result: the normalised data with
defaults, variables and ``strict`` resolved, and the bytes of each fixture. It does
not cover comments, formatting, the order of keys or of scenarios, short against long
form, nor where the suite and its fixtures lie. Keys at their default value
are left out, so a new version of evalkit that knows more keys gives the same hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from evalkit.suite.models import Scenario, Suite

_FORMAT = 1
"""Raised when the meaning of an unchanged file changes."""


def content_hash(data: Any) -> str:
    """Hash JSON data: SHA-256 of its canonical form (sorted keys, no spaces), in hex.

    Examples
    --------
    >>> content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    True
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def with_versions(digest: str, versions: Mapping[str, str]) -> str:
    """Fold the versions of graders, rubrics or whatever else decides into a suite's hash.

    Parameters
    ----------
    digest
        ``suite.hash`` or ``scenario.hash``.
    versions
        Version by name; the order does not matter.
    """
    return content_hash([digest, dict(versions)])


def with_hashes(suite: Suite, folder: Path | None) -> Suite:
    """Give the suite with its hash and those of its scenarios filled in.

    Parameters
    ----------
    suite
        A checked suite.
    folder
        Where its fixtures are; ``None`` if it has none.
    """
    digest = _file_digest(folder)
    scenarios = tuple(
        scenario.model_copy(update={"hash": _scenario_hash(scenario, digest)})
        for scenario in suite.scenarios
    )
    header = suite.model_dump(
        exclude={"scenarios", "defaults", "path", "hash"}, exclude_defaults=True
    )
    by_id = {scenario.id: scenario.hash for scenario in scenarios}
    whole = content_hash({"format": _FORMAT, "suite": header, "scenarios": by_id})
    return suite.model_copy(update={"scenarios": scenarios, "hash": whole})


def _scenario_hash(scenario: Scenario, digest: Callable[[str], str]) -> str:
    data = scenario.model_dump(exclude={"hash"}, exclude_defaults=True, context={"digest": digest})
    return content_hash({"format": _FORMAT, "scenario": data})


def _file_digest(folder: Path | None) -> Callable[[str], str]:
    """Make the function from a fixture's path to its kind and digest; each is read once."""

    @cache
    def digest(text: str) -> str:
        if folder is None:
            return text
        with (folder / text).open("rb") as file:
            return f"{PurePosixPath(text).suffix}:{hashlib.file_digest(file, 'sha256').hexdigest()}"

    return digest


def _plain(value: Any) -> str:
    """Write a moment so that the same moment in another time zone is the same text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} cannot be in a suite")
