"""A career copilot in a messenger, on the anthropic SDK, as its users would write it.

It knows nothing of evalkit. It gets to know its user in four questions, saves job
postings, says how well they fit, reads resumes, remembers, and forgets when told
to. :func:`serve` takes updates by webhook (``POST /telegram/webhook``), :func:`poll`
asks for them; neither returns. What it needs is set in the environment, see
:mod:`~evalkit.examples.career.settings`.

Beside it, :mod:`~evalkit.examples.career.bugs` holds variants with one mistake each.
Needs the extra ``examples``.
"""

from __future__ import annotations

from .bot import poll, serve

__all__ = ["poll", "serve"]
