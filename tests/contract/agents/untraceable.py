"""Agents that send what is no span, or where its reader is missing; they use no SDK."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request


def agent(text: str) -> str:
    """Send bytes, and say which status came back, and whether OpenTelemetry is loaded here."""
    if os.environ.get("HIDDEN"):
        for name in os.environ["HIDDEN"].split():
            sys.modules[name] = None  # type: ignore[assignment]
    sent = os.environ.get("SENT")
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    _post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json.dumps(asked).encode())
    status = 0
    if sent is not None:
        status = _post(f"{os.environ['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/traces", sent.encode())
    return f"{status} {'opentelemetry' in sys.modules} {'evalkit.spans' in sys.modules}"


def _post(url: str, body: bytes) -> int:
    headers = {"content-type": os.environ.get("TYPE", "application/json")}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
