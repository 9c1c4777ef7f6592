"""The one model endpoint that an agent can see: scripted, inert by default, recorded.

==============================  ================================================
``canonical``                   requests and answers, free of any wire format
``anthropic``, ``openai_chat``,
``openai_responses``,
``gemini``                      one wire format each, translation only
``wires``                       path -> wire format; addresses for clients
``script``, ``answers``         which step answers a request, and with what
``faults``                      what goes wrong, over any wire format
``counting``                    tokens
``watching``, ``witness``       tool calls on the wire; events for the ledger
``telemetry``, ``flushing``,
``span_events``                 OpenTelemetry spans that the agent sends
``endpoint``                    all of it without a socket
``delivery``, ``server``        bytes, the socket
==============================  ================================================
"""

from __future__ import annotations

from evalkit.gateway.endpoint import Endpoint
from evalkit.gateway.server import GatewayServer
from evalkit.gateway.wires import base_urls
from evalkit.serving.finding import Finding

__all__ = ["Endpoint", "Finding", "GatewayServer", "base_urls"]
