"""Agents that are restarted: one that keeps what it must, and others that do not."""

from __future__ import annotations

import atexit
import itertools
import os
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import anthropic

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOL: Any = {"name": "note", "description": "Note it.", "input_schema": SCHEMA}


class Notebook:
    """Notes what the model asks for, in a database of its own; knows what it said in memory."""

    def __init__(self) -> None:
        self.client = anthropic.Anthropic(max_retries=0)
        self.connection = sqlite3.connect("notes.db", isolation_level=None)
        self.connection.execute("CREATE TABLE IF NOT EXISTS notes(id TEXT, text TEXT, at TEXT)")
        self.heard: list[str] = []
        atexit.register(Path("exited").write_text, "yes")
        self.unwritten = Path("unwritten").open("w")  # noqa: SIM115 - that is the point
        self.unwritten.write("lost with the process")

    def reply(self, text: str) -> str:
        """Ask the model what to do, and do it."""
        self.heard.append(text)
        messages: list[Any] = [{"role": "user", "content": text}]
        while True:
            said = self.client.messages.create(
                model="m", max_tokens=99, messages=messages, tools=[TOOL]
            )
            uses = [block for block in said.content if block.type == "tool_use"]
            if not uses:
                break
            for use in uses:
                self.note(str(use.input["text"]))
            messages.append({"role": "assistant", "content": said.content})
            results = [{"type": "tool_result", "tool_use_id": u.id, "content": "ok"} for u in uses]
            messages.append({"role": "user", "content": results})
        first = said.content[0]
        assert first.type == "text"
        return f"{first.text} ({len(self.heard)} heard, {self.n_notes()} noted)"

    def note(self, text: str) -> None:
        """Note something."""
        at = time.strftime("%d %H:%M:%S", time.gmtime())
        self.connection.execute("INSERT INTO notes VALUES (?, ?, ?)", (str(uuid.uuid4()), text, at))

    def n_notes(self) -> int:
        """Count what was noted."""
        found: int = self.connection.execute("SELECT count(*) FROM notes").fetchone()[0]
        return found

    def state(self) -> dict[str, Any]:
        """Tell what it knows in memory, and what it finds."""
        there = sorted(path.name for path in Path().iterdir() if path.suffix == "")
        unwritten = Path("unwritten").read_text()
        return {"heard": list(self.heard), "there": there, "unwritten": unwritten}

    def close(self) -> None:
        """Note that it was closed."""
        Path("closed").write_text("yes")
        self.unwritten.close()


class Forgetful:
    """Keeps what it is asked to in memory, and saves it when it is closed."""

    def __init__(self) -> None:
        saved = Path("pending")
        self.pending = saved.read_text().split() if saved.exists() else []

    def reply(self, text: str) -> str:
        """Keep something, or tell what is kept."""
        if text != "what?":
            self.pending.append(text)
        return f"pending: {', '.join(self.pending)}"

    def close(self) -> None:
        """Save it."""
        Path("pending").write_text("\n".join(self.pending))


class Leaves:
    """Does with its room what it is told, so that all of it is to be kept."""

    def reply(self, text: str) -> str:
        """Do something, or look what is there."""
        return str(getattr(self, text.split()[0])(*text.split()[1:]))

    def odd(self) -> str:
        """Leave files of all kinds."""
        Path("file").write_text("kept")
        Path("link").symlink_to("file")
        Path("twin").hardlink_to("file")
        Path("outside").symlink_to("/etc/passwd")
        os.mkfifo("pipe")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
        with Path("sparse").open("wb") as file:
            file.truncate(200 << 20)
        Path("folder").mkdir()
        Path("folder/inside").write_text("kept")
        Path("folder").chmod(0o500)
        Path("closed").write_text("kept")
        Path("closed").chmod(0)
        Path(tempfile.gettempdir(), "temporary").write_text("kept")
        (Path.home() / ".settings").write_text("kept")
        return "done"

    def shared(self) -> str:
        """Leave a file where all may write."""
        Path("/tmp/shared").write_text("kept")
        return "done"

    def read_shared(self) -> str:
        """Read it again."""
        return Path("/tmp/shared").read_text()

    def look(self) -> str:
        """Tell what is there."""
        kinds = [f"{path.name}{oct(path.lstat().st_mode)}" for path in sorted(Path().iterdir())]
        kept = [Path(tempfile.gettempdir(), "temporary"), Path.home() / ".settings"]
        texts = [path.read_text() for path in (*kept, Path("link"), Path("folder/inside"))]
        links = Path("twin").lstat().st_nlink, Path("outside").readlink()
        return f"{kinds} {texts} {links} {Path('sparse').stat().st_blocks}"

    def fill(self, megabytes: str) -> str:
        """Leave more than can be kept."""
        Path("full").write_bytes(os.urandom(int(megabytes) << 20))
        return "done"

    def start(self) -> str:
        """Start a program that goes on and on."""
        loop = "import time\nwhile True: open('beats', 'a').write('x'); time.sleep(0.001)"
        subprocess.Popen([sys.executable, "-c", loop])
        while not Path("beats").exists():
            time.sleep(0.01)
        return "done"

    def beat(self) -> str:
        """Go on writing in a thread, two files that must agree."""

        def write() -> None:
            for number in itertools.count():
                for name in ("first", "second"):
                    Path(name).write_text(str(number))

        threading.Thread(target=write, daemon=True).start()
        time.sleep(0.05)
        return "done"

    def agree(self) -> str:
        """Say whether they do, but for a write that was cut."""
        first, second = (Path(name).read_text() for name in ("first", "second"))
        return str("" in (first, second) or int(first) - int(second) in (0, 1))

    def rolled_back(self) -> str:
        """Begin a transaction that is never committed."""
        self.connection = sqlite3.connect("kept.db", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = wal")
        self.connection.execute("CREATE TABLE t(a)")
        self.connection.execute("INSERT INTO t VALUES (1)")
        self.connection.execute("BEGIN")
        self.connection.execute("INSERT INTO t VALUES (2)")
        return "done"

    def rows(self) -> str:
        """Tell the rows of that database."""
        return str(sqlite3.connect("kept.db").execute("SELECT a FROM t").fetchall())

    def say(self, text: str) -> str:
        """Print something."""
        sys.stdout.write(f"{text}\n")
        return "done"


class Hangs:
    """Never comes to the end of its ``close()``."""

    def reply(self, text: str) -> str:
        """Repeat."""
        return text

    def close(self) -> None:
        """Wait for ever, the first time."""
        if not Path("tried").exists():
            Path("tried").touch()
            threading.Event().wait()


class Dies:
    """Ends its process where it should close."""

    def reply(self, text: str) -> str:
        """Repeat."""
        return text

    def close(self) -> None:
        """End."""
        os._exit(4)


class Unborn:
    """Cannot begin a second time."""

    def __init__(self) -> None:
        if Path("begun").exists():
            raise RuntimeError("it was there before")
        Path("begun").touch()

    def reply(self, text: str) -> str:
        """Repeat."""
        return text


class Slow:
    """Takes its time in each turn."""

    def reply(self, text: str) -> str:
        """Sleep, then repeat."""
        time.sleep(float(text))
        return text


def tells_chance(_: str) -> str:
    """Tell what was drawn, and what time it is."""
    return f"{uuid.uuid4()} {random.random()} {time.strftime('%d %H:%M:%S', time.gmtime())}"


def asks_twice(_: str) -> str:
    """Ask the model twice."""
    client = anthropic.Anthropic(max_retries=0)
    said: list[Any] = [{"role": "user", "content": "Well?"}]
    answers = [client.messages.create(model="m", max_tokens=9, messages=said) for _ in range(2)]
    return " ".join(answer.content[0].text for answer in answers)


class Clock:
    """Asks the model twice, then tells the time."""

    def reply(self, text: str) -> str:
        """Ask, and tell."""
        asks_twice(text)
        return f"now {time.strftime('%d %H:%M:%S', time.gmtime())}"


class Patient:
    """Goes on although its model has nothing to say."""

    def reply(self, text: str) -> str:
        """Ask twice."""
        try:
            return asks_twice(text)
        except anthropic.APIError:
            return "nothing"


class AsksAtStart:
    """Asks the model when it begins."""

    def __init__(self) -> None:
        client = anthropic.Anthropic(max_retries=0)
        said: list[Any] = [{"role": "user", "content": "Well?"}]
        answer = client.messages.create(model="m", max_tokens=9, messages=said).content[0]
        assert answer.type == "text"
        self.answer = answer.text

    def reply(self, _: str) -> str:
        """Tell what it was."""
        return self.answer
