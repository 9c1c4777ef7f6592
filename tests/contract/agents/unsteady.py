"""Agents that do not always do the same, each in another way."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request

import evalkit as ek


def ask(text: str) -> str:
    """Ask the model something; with what it says to it."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["content"][0]["text"])


@ek.tool
def note(word: str, number: int = 0) -> str:
    """Note a word."""
    return f"{word} {number > 0}"


def agent(text: str) -> str:
    """Be as unsteady as the user says; the reply is always the same."""
    match text:
        case "prompt":
            ask(f"It is {time.perf_counter_ns()}.")
        case "tool":
            note("now", number=time.perf_counter_ns())
        case "once":
            if time.perf_counter_ns() // 1000 % 2:
                note("odd")
            else:
                note("even")
                note("even")
        case "side by side":
            threads = [threading.Thread(target=ask, args=(word,)) for word in ("one", "two")]
            for thread in threads[:: 1 if time.perf_counter_ns() // 1000 % 2 else -1]:
                thread.start()
            for thread in threads:
                thread.join()
        case _:
            ask("steady")
    return "done"
