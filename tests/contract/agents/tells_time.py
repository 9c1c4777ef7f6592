"""A program that tells the time before and after a model's reply, and that it can sleep."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from datetime import datetime

URL = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"


def now() -> str:
    """Tell the time to the second, in the program's own time zone."""
    return datetime.now().isoformat(timespec="seconds")


def ask() -> None:
    """Call the model, whatever it says."""
    messages = [{"role": "user", "content": "Hi."}]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(URL, body, headers)) as answer:
        answer.read()


def sleeps() -> bool:
    """Sleep, and say whether that took as long as it should."""
    started = time.monotonic()
    time.sleep(0.02)
    return 0.02 <= time.monotonic() - started < 1.0


if __name__ == "__main__":
    for line in sys.stdin:
        before = now()
        if json.loads(line).get("text") == "ask":
            ask()
        date = ["date", "+%Y-%m-%dT%H:%M:%S"]
        told = subprocess.run(date, capture_output=True, text=True, check=True).stdout.strip()
        print(json.dumps({"text": f"{before} {now()} {told} {sleeps()}"}), flush=True)  # noqa: T201
