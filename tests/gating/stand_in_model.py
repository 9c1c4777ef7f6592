"""A stand-in for a real model's service: it obeys its system prompt, more or less.

Run as a program; prints its port. It speaks as much of Anthropic's Messages format as
the travel agent needs. If the system prompt says that conditions are to be checked
first, it looks at the weather before it books, most of the time; else it books at
once. It shares nothing with the scripted model of the contract lane.
"""

from __future__ import annotations

import json
import random
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CARELESS = 0.04
"""How often it forgets what the prompt says."""

_draw = random.Random(11)


class Model(BaseHTTPRequestHandler):
    """Answers one request for a message."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Read the conversation, and answer its last message."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = answer(asked)
        calls = content[-1]["type"] == "tool_use"
        told = {
            "id": "msg_stand_in",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
        """Say nothing."""


def answer(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Decide what to do next."""
    last = asked["messages"][-1]["content"]
    if isinstance(last, str):
        careful = "check it first" in asked["system"] and _draw.random() > CARELESS
        return [call("get_weather", city="Denver") if careful else booking()]
    result = json.dumps(last)
    if "raining" in result:
        return [{"type": "text", "text": "It is raining, so I did not book."}]
    if "ooked" in result:
        return [{"type": "text", "text": "Your flight is booked."}]
    return [booking()]


def booking() -> dict[str, Any]:
    """Ask for the flight."""
    return call("book", flight_id="AA123", date="Friday")


def call(tool: str, **args: str) -> dict[str, Any]:
    """Ask for a tool."""
    return {"type": "tool_use", "id": "toolu_stand_in", "name": tool, "input": args}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
