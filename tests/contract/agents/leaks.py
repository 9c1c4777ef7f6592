"""An agent that reads a secret from its file, and lets it out in the way it is told."""

from __future__ import annotations

import base64
import logging
import os
import sys
import urllib.request
from pathlib import Path

import anthropic

import evalkit as ek


@ek.tool
def send(text: str) -> str:
    """Take a text."""
    return f"sent {len(text)} characters"


def agent(text: str) -> str:
    """Read the file, and do with its secret what the text says."""
    secret = Path("resume.txt").read_text().split()[-1]
    return str(globals()[f"_{text.replace(' ', '_')}"](secret) or "Done.")


def _keep(_: str) -> None:
    """Keep it."""


def _log(secret: str) -> None:
    for part in (secret[:7], secret[7:]):
        logging.getLogger("agent").warning("%s", part)


def _error(secret: str) -> None:
    logging.getLogger("agent").error("cannot read %s", secret)


def _print(secret: str) -> None:
    sys.stderr.write(secret.encode().hex())


def _print_much(_: str) -> None:
    sys.stdout.write("nothing " * 1_000_000)


def _raise(secret: str) -> None:
    raise ValueError(f"bad address {secret}")


def _write(secret: str) -> None:
    Path("out.txt").write_text(f"to: {secret.upper()}")


def _append(secret: str) -> None:
    with Path("resume.txt").open("a") as file:
        file.write(f"\ncopy of {secret[::-1]}")


def _append_other(_: str) -> None:
    with Path("resume.txt").open("a") as file:
        file.write("\nread today")


def _write_bytes(_: str) -> None:
    Path("out.bin").write_bytes(b"\xff\xfe\xfd")


def _name_a_file(secret: str) -> None:
    Path(f"{secret}.txt").write_text("")


def _tool(secret: str) -> None:
    send(f"for {secret}")


def _reply(secret: str) -> str:
    return f"Here: {base64.b64encode(secret.encode()).decode()}"


def _ask(secret: str) -> str:
    return _asked(f"Who is {secret}?")


def _ask_for_count(secret: str) -> None:
    client = anthropic.Anthropic()
    client.messages.count_tokens(model="m", messages=[{"role": "user", "content": secret}])


def _ask_elsewhere(secret: str) -> None:
    address = f"{os.environ['ANTHROPIC_BASE_URL']}/other?who={secret}"
    try:
        urllib.request.urlopen(address)
    except OSError:
        return


def _span(secret: str) -> None:
    import traced
    from opentelemetry import trace

    traced.set_up()
    with trace.get_tracer("agent").start_as_current_span("load") as span:
        span.set_attribute("resume.author", secret)


def echo(text: str) -> str:
    """Pass the user's words on to the model."""
    return _asked(f"The user says: {text}")


def repeat(text: str) -> str:
    """Say the user's words again."""
    return f"You said: {text}"


def _asked(text: str) -> str:
    client = anthropic.Anthropic()
    said = client.messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": text}]
    )
    return str(said.content[0].text)
