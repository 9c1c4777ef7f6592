"""A program that speaks JSON lines, or serves, and keeps what it is told by its conversation."""

from __future__ import annotations

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

HEARD = Path("heard")
WAS_ASKED = Path("asked").exists()


def tell(said: Any) -> str:
    """Keep a turn; tell all that is kept, by conversation and turn."""
    with HEARD.open("a") as file:
        file.write(f"{said['conversation_id']} {said['turn']}\n")
    lines = [line.split() for line in HEARD.read_text().splitlines()]
    sys.stderr.write(f"heard {said['text']}\n")
    asked = "asked to end" if WAS_ASKED else "not asked"
    turns = [turn for _, turn in lines]
    return f"{len({ident for ident, _ in lines})} conversation, turns {turns}, {asked}"


class Server(BaseHTTPRequestHandler):
    """Takes turns as requests."""

    def do_POST(self) -> None:
        """Answer a turn."""
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"reply": tell(said)}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def end(*_: object) -> None:
    """Note that it was asked to end."""
    Path("asked").write_text("to end")
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    if len(sys.argv) > 1:
        HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Server).serve_forever()
    for line in sys.stdin:
        sys.stdout.write(json.dumps({"text": tell(json.loads(line))}) + "\n")
        sys.stdout.flush()
    end()
