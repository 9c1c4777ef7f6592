"""Which ids of models name one version for good."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(
    r"(?<!\d)20\d{2}-?[01]\d-?[0-3]\d(?!\d)"  # a date: 20250929, 2024-08-06
    r"|-\d{3,4}$"  # a build: -0613, -002
    r"|sha256:[0-9a-f]{12}"  # the weights themselves
)
_MOVING: Final = re.compile(r"(?:^|[-:@/_.])(?:latest|preview|stable)$")


def is_pinned_model(model: str) -> bool:
    """Say whether an id names one version of a model, not whatever its provider serves now.

    A date, a build number or a digest of the weights does; ``latest`` and a bare
    name do not. What a provider promises about other ids cannot be known from them.

    Examples
    --------
    >>> is_pinned_model("claude-sonnet-4-5-20250929"), is_pinned_model("gpt-4o-2024-08-06")
    (True, True)
    >>> is_pinned_model("claude-sonnet-4-5"), is_pinned_model("claude-3-5-sonnet-latest")
    (False, False)
    """
    lower = model.lower()
    return bool(_VERSION.search(lower)) and not _MOVING.search(lower)
