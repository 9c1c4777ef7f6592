"""A travel agent on the anthropic SDK, as its users would write it.

It knows nothing of evalkit. :data:`agent` asks the model for whole answers,
:data:`agent_streaming` streams them; each call makes one user's conversation.
Beside them, :mod:`~evalkit.examples.travel.bugs` holds variants with one mistake
each. Needs the extra ``examples``.
"""

from __future__ import annotations

from .assistant import StreamingTravelAgent, TravelAgent

agent = TravelAgent
agent_streaming = StreamingTravelAgent

__all__ = ["agent", "agent_streaming"]
