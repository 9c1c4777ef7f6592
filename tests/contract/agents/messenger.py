"""A bot of a messenger: one that is called back, one that polls, and one that is called."""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2

API = "https://api.telegram.org/bot123:abc"
_seen: set[int] = set()


class RefusedError(Exception):
    """The bot cannot handle an update."""


def handle(client: httpx2.Client, update: dict) -> None:
    """Do what a text says, once for each update."""
    if update["update_id"] in _seen:
        return
    _seen.add(update["update_id"])
    text = update.get("message", {}).get("text", "")
    sys.stderr.write(f"update {update['update_id']}: {text}\n")
    if text == "fail":
        raise RefusedError
    if text == "end":
        os._exit(3)
    if text == "textless":
        send(client, {"chat_id": 1})
    for word in text.split() if text.startswith("say") else [text] * (text != "quiet"):
        send(client, {"chat_id": 1, "text": f"you said {word}"})


def send(client: httpx2.Client, body: dict) -> None:
    """Send one message."""
    client.post(f"{API}/sendMessage", json=body).raise_for_status()


class Hook(BaseHTTPRequestHandler):
    """Takes in updates."""

    def do_POST(self) -> None:
        """Handle one update, then answer."""
        update = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status = 200
        if self.path == "/later":
            self.answer(200)
        try:
            with httpx2.Client() as client:
                handle(client, update)
        except RefusedError:
            status = 500
        if self.path != "/later":
            self.answer(status)

    def answer(self, status: int) -> None:
        """Send an answer without content."""
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def hook() -> None:
    """Serve as a webhook."""
    with ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Hook) as server:
        server.serve_forever()


def poll() -> None:
    """Ask for updates, and handle them one after the other."""
    offset = 0
    with httpx2.Client() as client:
        client.get(f"{API}/getMe").raise_for_status()
        while True:
            asked = client.get(f"{API}/getUpdates", params={"offset": offset, "timeout": 30})
            for update in asked.json()["result"]:
                offset = update["update_id"] + 1
                handle(client, update)


def poll_beside() -> None:
    """Ask for updates and go on asking, while another thread handles them."""
    with httpx2.Client() as client:
        while True:
            for update in client.get(f"{API}/getUpdates").json()["result"]:
                threading.Thread(target=handle, args=(httpx2.Client(), update)).start()


def never_polls() -> None:
    """Do nothing at all."""
    threading.Event().wait()


def called(text: str) -> None:
    """Be called, and send the replies oneself."""
    with httpx2.Client() as client:
        send(client, {"chat_id": 1, "text": f"you said {text}"})


if __name__ == "__main__":
    {"hook": hook, "poll": poll}[sys.argv[1]]()
