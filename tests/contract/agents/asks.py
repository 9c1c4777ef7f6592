"""Agents that fetch what a turn names, each with another client, none of them modified."""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.request


def with_httpx2(text: str) -> str:
    """Fetch with httpx2."""
    import httpx2

    return "; ".join(_shown(r.status_code, r.text) for r in map(httpx2.get, text.split()))


def with_httpx(text: str) -> str:
    """Fetch with httpx."""
    import httpx

    return "; ".join(_shown(r.status_code, r.text) for r in map(httpx.get, text.split()))


def with_requests(text: str) -> str:
    """Fetch with requests."""
    import requests

    with requests.Session() as session:
        answers = [session.get(url, timeout=10) for url in text.split()]
    return "; ".join(_shown(r.status_code, r.text) for r in answers)


def with_urllib(text: str) -> str:
    """Fetch with the standard library."""
    found = []
    for url in text.split():
        with urllib.request.urlopen(url, timeout=10) as answer:
            found.append(_shown(answer.status, answer.read().decode()))
    return "; ".join(found)


def with_aiohttp(text: str) -> str:
    """Fetch with aiohttp."""
    import aiohttp

    async def fetch() -> list[str]:
        async with aiohttp.ClientSession() as session:
            found = []
            for url in text.split():
                async with session.get(url) as answer:
                    found.append(_shown(answer.status, await answer.text()))
            return found

    return "; ".join(asyncio.run(fetch()))


def with_curl(text: str) -> str:
    """Fetch with another program."""
    told = ["curl", "-sS", "-w", " (%{http_code})\n", *text.split()]
    lines = subprocess.run(told, check=True, capture_output=True, text=True).stdout.splitlines()
    return "; ".join(_turned(line) for line in lines)


def with_node(text: str) -> str:
    """Fetch with Node's own fetch."""
    program = (
        "for (const url of process.argv.slice(1)) { const a = await fetch(url);"
        " console.log(`${await a.text()} (${a.status})`); }"
    )
    told = ["node", "--input-type=module", "-e", program, *text.split()]
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return "; ".join(_turned(line) for line in done.stdout.splitlines())


def _turned(line: str) -> str:
    body, _, status = line.rpartition(" (")
    return _shown(int(status.rstrip(")")), body)


def _shown(status: int, body: str) -> str:
    return f"{status} {json.loads(body)['n'] if body.startswith('{') else body}"
