"""The world around an agent: its own requests to the outside, answered by fixtures.

=================  =========================================================
``plan``           what a trial is told of its world; plain values
``places``         hosts and ports that must be listened at
``choosing``       which fixture answers a request, and with what
``telling``        what a ledger tells of a request
``world``          all of it without a socket
``names``          messages of the name server
``secure``         certificates and TLS
``server``         sockets
=================  =========================================================

How traffic gets here is :mod:`evalkit.sandbox.capture`'s business, or that of variables
that name a proxy.
"""

from __future__ import annotations

from evalkit.outside.plan import Answer, Fixture, Leaf, WorldPlan
from evalkit.outside.server import WorldServer
from evalkit.outside.world import World

__all__ = ["Answer", "Fixture", "Leaf", "World", "WorldPlan", "WorldServer"]
