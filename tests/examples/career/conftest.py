"""A stand-in for everything around the copilot: the model, Telegram, and a site with jobs.

It shares no code with evalkit, and runs over real sockets. The site is asked for by
https, as the copilot demands, and led to the stand-in by a transport.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="needs the extra `examples`")
pytest.importorskip("pypdf", reason="needs the extra `examples`")

import httpx2

from evalkit.examples.career.bot import Copilot
from evalkit.examples.career.fetching import Fetcher
from evalkit.examples.career.settings import Settings

JSON = Any
URL = "https://jobs.example.test/posting/17"
PAGE = "<title>Data Engineer</title><p>You bring: SQL."


class Around(ThreadingHTTPServer):
    """Answers what is prepared, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model: list[Any] = []
        """Prepared messages of the model; an integer is a status, bytes are a raw stream."""
        self.pages: dict[str, Any] = {"/posting/17": PAGE}
        """By path: a text, a status, or a function of the handler."""
        self.telegram: list[int] = []
        """Statuses for the next messages; 200 when there are none."""
        self.prompts: list[dict[str, JSON]] = []
        self.sent: list[dict[str, JSON]] = []
        self.n_fetched = 0
        self.file = b""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def replies(self) -> list[str]:
        """What users were told."""
        return [message["text"] for message in self.sent]

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients may go whenever they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Around

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/v1/messages":
            self.server.prompts.append(body)
            self.say(self.server.model.pop(0))
        elif self.path.endswith("/getFile"):
            self.give(json.dumps({"ok": True, "result": {"file_path": "a b.pdf"}}).encode())
        else:
            status = self.server.telegram.pop(0) if self.server.telegram else 200
            if status:
                self.server.sent += [body] if status == 200 else []
                self.give(b'{"ok": true, "parameters": {"retry_after": 0}}', status=status)
            else:
                self.close_connection = True

    def do_GET(self) -> None:
        if self.path.startswith("/file/"):
            self.give(self.server.file, kind="application/pdf")
            return
        self.server.n_fetched += 1
        page = self.server.pages.get(self.path, 404)
        if callable(page):
            page(self)
        elif isinstance(page, int):
            self.give(b"<p>no", kind="text/html", status=page)
        else:
            self.give(page.encode(), kind="text/html; charset=utf-8")

    def give(self, body: bytes, *, kind: str = "application/json", status: int = 200) -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def say(self, answer: Any) -> None:
        """Stream a message of the model, or fail."""
        if isinstance(answer, int):
            self.give(b'{"type": "error", "error": {"type": "x", "message": "y"}}', status=answer)
        else:
            raw = answer if isinstance(answer, bytes) else frames(events(answer))
            self.give(raw, kind="text/event-stream")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def text(said: str) -> dict[str, JSON]:
    """Write a block of text."""
    return {"type": "text", "text": said}


def use(name: str, use_id: str = "t1", **args: JSON) -> dict[str, JSON]:
    """Write a request for a tool."""
    return {"type": "tool_use", "id": use_id, "name": name, "input": args}


def events(blocks: Any, *, stop: str | None = "", cut: str = "") -> list[dict[str, JSON]]:
    """Write a message as the events of a stream; ``cut`` is sent in place of arguments."""
    blocks = [blocks] if isinstance(blocks, dict) else blocks
    wants_tools = any(block["type"] == "tool_use" for block in blocks)
    reason = ("tool_use" if wants_tools else "end_turn") if stop == "" else stop
    message: dict[str, JSON] = {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    told: list[dict[str, JSON]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(blocks):
        is_text = block["type"] == "text"
        bare = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": cut or json.dumps(block["input"])}
        )
        told += [
            {"type": "content_block_start", "index": index, "content_block": bare},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": reason, "stop_sequence": None}
    told.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}})
    return [*told, {"type": "message_stop"}]


def frames(told: list[dict[str, JSON]]) -> bytes:
    """Write events as they are sent."""
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in told)


class ToStandIn(httpx2.HTTPTransport):
    """Leads requests to the stand-in, whatever host they are for."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the stand-in."""
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)
        return super().handle_request(request)


class LocalCopilot(Copilot):
    """The copilot, whose jobs are on the stand-in."""

    def make_fetcher(self) -> Fetcher:
        """Lead it to the stand-in."""
        port = httpx2.URL(self.settings.api_url).port
        assert port is not None
        self.pages = httpx2.Client(transport=ToStandIn(port))
        hosts = self.settings.job_hosts
        return Fetcher(self.pages, hosts, max_bytes=100_000, timeout_s=5.0)

    def close(self) -> None:
        """Close everything."""
        self.pages.close()
        super().close()


@pytest.fixture(autouse=True)
def _levels_as_they_were() -> Iterator[None]:
    """Let other tests see what libraries log: a copilot that starts here keeps them quiet."""
    loggers = [logging.getLogger(name) for name in ("httpx2", "httpcore2", "anthropic", "pypdf")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Iterator[Around]:
    """Start the stand-in, where the SDK finds it."""
    server = Around()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def write() -> SimpleNamespace:
    """Give what writes messages of the model and updates of Telegram's."""
    return SimpleNamespace(text=text, use=use, events=events, frames=frames, update=update)


@pytest.fixture
def to_site(around: Around) -> Iterator[httpx2.Client]:
    """Give a client that is led to the stand-in."""
    with httpx2.Client(transport=ToStandIn(around.server_port)) as client:
        yield client


@pytest.fixture
def settings(around: Around, tmp_path: Path) -> Settings:
    """Give settings that lead to the stand-in."""
    return Settings(
        token="1:TOKEN",
        api_url=around.url,
        database=str(tmp_path / "copilot.db"),
        job_hosts=("jobs.example.test",),
        model_retries=0,
    )


@pytest.fixture
def copilot(settings: Settings) -> Iterator[Copilot]:
    """Start a copilot."""
    with closing(LocalCopilot(settings)) as bot:
        yield bot


@pytest.fixture
def start(settings: Settings) -> Callable[[], Copilot]:
    """Give what starts another copilot on the same database."""
    return lambda: LocalCopilot(settings)


def update(update_id: int, said: str = "", **more: JSON) -> dict[str, JSON]:
    """Write an update of Telegram's."""
    message = {"from": {"id": 7}, "chat": {"id": 70}, "text": said, **more}
    return {"update_id": update_id, "message": message}


@pytest.fixture
def tell(copilot: Copilot, around: Around) -> Callable[..., str]:
    """Give what says things to the copilot, one update after the other, and gives its reply."""

    def say(said: str = "", **more: JSON) -> str:
        copilot.handle(update(len(around.sent) + 1, said, **more))
        return around.replies[-1]

    return say


@pytest.fixture
def known(tell: Callable[..., str]) -> None:
    """Let the user be known."""
    for said in ("/start", "Ada, data engineer", "London", "Python, SQL", "yes"):
        tell(said)
