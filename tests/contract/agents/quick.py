"""An agent without an SDK: it asks the model once, and takes its time."""

from __future__ import annotations

import json
import os
import random
import time
import urllib.request


def agent(text: str) -> str:
    """Pass the user's words on, and what the model says back."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        said = json.load(answer)["content"][0]["text"]
    time.sleep(float(os.environ["PAUSE_S"]))
    return f"{said} {random.random()}"
