"""An agent whose user says which client fetches what; it answers with what came back."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable

# Imported once in the server, as an agent's own modules are.
import aiohttp
import httpx
import httpx2
import requests

TIMEOUT_S = 0.5
PATIENT_S = 10.0
NODE = (
    "fetch(process.argv[1], {method: process.argv[2], body: process.argv[3] || undefined})"
    ".then(async r => console.log(`${r.status} ${(await r.text()).trim()}`))"
    ".catch(e => console.log(`failed: ${e.cause?.code ?? e.name}`))"
)


def _of_httpx(url: str, method: str, body: str | None) -> str:
    reply = httpx.request(method, url, content=body, timeout=PATIENT_S, follow_redirects=True)
    return f"{reply.status_code} {reply.text}"


def _of_httpx2(url: str, method: str, body: str | None) -> str:
    reply = httpx2.request(method, url, content=body, timeout=PATIENT_S, follow_redirects=True)
    return f"{reply.status_code} {reply.text}"


def _hasty(url: str, method: str, body: str | None) -> str:
    reply = httpx2.request(method, url, content=body, timeout=TIMEOUT_S)
    return f"{reply.status_code} {reply.text}"


def _of_requests(url: str, method: str, body: str | None) -> str:
    reply = requests.request(method, url, data=body, timeout=PATIENT_S)
    return f"{reply.status_code} {reply.text}"


def _of_urllib(url: str, method: str, body: str | None) -> str:
    data = None if body is None else body.encode()
    asked = urllib.request.Request(url, data=data, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENT_S) as reply:
            return f"{reply.status} {reply.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def _of_aiohttp(url: str, method: str, body: str | None) -> str:
    async def ask() -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, data=body) as reply,
        ):
            return f"{reply.status} {await reply.text()}"

    return asyncio.run(ask())


def _of_curl(url: str, method: str, body: str | None) -> str:
    data = [] if body is None else ["--data-binary", body]
    said = _printed("curl", "-sS", "-m", "10", "-X", method, "-w", "\n%{http_code}", *data, url)
    text, _, status = said.rpartition("\n")
    return f"{status} {text}"


def _of_node(url: str, method: str, body: str | None) -> str:
    return _printed("node", "-e", NODE, url, method, body or "")


def _printed(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return done.stdout.strip() or done.stderr.strip()


def _promised(url: str, _: str, __: str | None) -> str:
    """Promise a body of a gigabyte, and send none of it."""
    host = url.split("/")[2]
    with socket.create_connection((host, 80), timeout=PATIENT_S) as sock:
        head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1073741824\r\n\r\n"
        sock.sendall(head.encode())
        return sock.recv(65536).split(b"\r\n")[0].decode()


def _knocks(url: str, _: str, __: str | None) -> str:
    """Look a host up, and speak another protocol."""
    with socket.create_connection((url, 5432), timeout=PATIENT_S):
        return "connected"


def _streams(url: str, _: str, __: str | None) -> str:
    """Read a large body piece by piece, and stop after the first."""
    with httpx2.stream("GET", url, timeout=PATIENT_S) as reply:
        piece = next(reply.iter_raw())
        return f"{reply.headers.get('content-length')} {len(piece) > 0}"


CLIENTS: dict[str, Callable[[str, str, str | None], str]] = {
    "httpx": _of_httpx,
    "httpx2": _of_httpx2,
    "hasty": _hasty,
    "requests": _of_requests,
    "urllib": _of_urllib,
    "aiohttp": _of_aiohttp,
    "curl": _of_curl,
    "node": _of_node,
    "promised": _promised,
    "knocks": _knocks,
    "streams": _streams,
}


def agent(text: str) -> str:
    """Fetch what each line says: ``CLIENT METHOD URL [BODY]``."""
    return "\n".join(map(_line, text.splitlines()))


def _line(line: str) -> str:
    if line == "proxies":
        return str("HTTP_PROXY" in os.environ)
    client, method, url, *body = shlex.split(line)
    try:
        return CLIENTS[client](url, method, body[0] if body else None)
    except Exception as error:
        return f"failed: {type(error).__name__}"
