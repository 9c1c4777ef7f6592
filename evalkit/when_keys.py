"""What the ``when`` of a scripted model may look at in a request: suite and gateway agree here."""

from __future__ import annotations

from typing import Final

WHEN_KEYS: Final = (
    "system", "user", "model", "messages", "tools", "wire", "stream", "max_tokens", "wants_json",
)  # fmt: skip
"""``user`` is the last thing the user said, ``tools`` are names, ``messages`` are
``{role, content}`` with their content as text."""
