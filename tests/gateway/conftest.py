"""A gateway on a real socket, the real SDKs that talk to it, and the ledger that it writes."""

from __future__ import annotations

import functools
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import anthropic
import openai
import pydantic
import pytest

from evalkit.gateway import Endpoint, Finding, GatewayServer
from evalkit.ledger import Event
from evalkit.reading import trace_of
from evalkit.recording import Recorder
from evalkit.trace import Trace

Scripts = Sequence[Mapping[str, Any]] | Mapping[str, Any]


class Answer(NamedTuple):
    """What a plain HTTP client got back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The frames of a stream: name and data."""
        found = []
        for frame in self.body.decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in frame.split("\n"))
            data = fields["data"]
            found.append((fields.get("event", ""), data if data == "[DONE]" else json.loads(data)))
        return found


class Gateway:
    """One endpoint behind its socket, with everything that it recorded."""

    def __init__(self, turns: Sequence[Mapping[str, Any]], **options: Any) -> None:
        self.events: list[Event] = []
        self.recorder = Recorder(self.events.append)
        self.endpoint = Endpoint(turns, self.recorder.event)
        self.server = GatewayServer(self.endpoint, **options).start()

    @property
    def port(self) -> int:
        return self.server.port

    def of_kind(self, kind: str) -> list[Mapping[str, Any]]:
        """Give the data of all events of a kind."""
        return [event.data for event in self.events if event.kind == kind]

    @property
    def n_requests(self) -> int:
        return len(self.of_kind("model_call"))

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    @property
    def trace(self) -> Trace:
        return trace_of(self.events)

    def finish(self) -> tuple[Finding, ...]:
        return self.endpoint.finish()

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        """Send JSON, or bytes as they are, with a plain client."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, content, headers)

    def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def raw(self, content: bytes) -> bytes:
        """Send bytes, and read until the gateway closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as client:
            client.sendall(content)
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b""))


def as_turns(scripts: Scripts) -> Sequence[Mapping[str, Any]]:
    """Bring the steps of one script, or the scripts of one turn, into the gateway's form."""
    if isinstance(scripts, Mapping):
        return [scripts]
    return [{"": {"when": None, "steps": list(scripts)}}]


@pytest.fixture
def serve() -> Iterator[Callable[..., Gateway]]:
    """Start a gateway for the steps of one script, the scripts of a turn, or ``turns=``."""
    started: list[Gateway] = []

    def start(
        scripts: Scripts = (), *, turns: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> Gateway:
        started.append(Gateway(as_turns(scripts) if turns is None else turns, **options))
        return started[-1]

    yield start
    for gateway in started:
        gateway.server.stop()


@pytest.fixture(scope="session")
def _anthropic() -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="dummy", base_url="http://127.0.0.1:9") as client:
        yield client


@pytest.fixture(scope="session")
def _openai() -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key="dummy", base_url="http://127.0.0.1:9/v1") as client:
        yield client


@pytest.fixture
def claude(_anthropic: anthropic.Anthropic) -> Callable[..., anthropic.Anthropic]:
    """Point the anthropic SDK at a gateway."""

    def client(gateway: Gateway, **options: Any) -> anthropic.Anthropic:
        return _anthropic.with_options(base_url=f"http://127.0.0.1:{gateway.port}", **options)

    return client


@pytest.fixture
def gpt(_openai: openai.OpenAI) -> Callable[..., openai.OpenAI]:
    """Point the openai SDK at a gateway."""

    def client(gateway: Gateway, **options: Any) -> openai.OpenAI:
        return _openai.with_options(base_url=f"http://127.0.0.1:{gateway.port}/v1", **options)

    return client


def strictly(kind: Any, data: Any) -> Any:
    """Check data against a type of an SDK, and refuse fields that the type does not know."""
    value = _adapter(kind).validate_python(data)
    unknown = list(_unknown(value, ""))
    assert not unknown, f"{type(value).__name__} does not know {unknown}"
    return value


@functools.cache
def _adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(kind)


def _unknown(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, pydantic.BaseModel):
        yield from (f"{path}.{key}" for key in value.model_extra or {})
        for key in type(value).model_fields:
            yield from _unknown(getattr(value, key), f"{path}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _unknown(item, f"{path}[{number}]")


@pytest.fixture
def in_threads() -> Callable[..., list[Any]]:
    """Call a function with each argument, all at the same time."""

    def run(function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        results: list[Any] = [None] * len(arguments)
        barrier = threading.Barrier(len(arguments))

        def one(index: int) -> None:
            barrier.wait(5)
            results[index] = function(arguments[index])

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(arguments))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        return results

    return run


@pytest.fixture(name="strictly")
def strictly_fixture() -> Callable[[Any, Any], Any]:
    """Give the strict check to a test."""
    return strictly
