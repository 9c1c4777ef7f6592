"""The socket: ports, addresses, stopping, and what a call costs."""

from __future__ import annotations

import _thread
import resource
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from evalkit.gateway import Endpoint, GatewayServer, base_urls
from evalkit.gateway.wires import route_of

HELLO = [{"role": "user", "content": "Hello."}]


def _endpoint(*steps: Any) -> Endpoint:
    return Endpoint([{"": {"steps": list(steps)}}], lambda *_, **__: None)


def test_variables_alone_lead_the_sdks_here(serve, monkeypatch) -> None:
    """Clients that are built without any address find the gateway by the environment."""
    gateway = serve([{"text": "to claude"}, {"text": "to gpt"}, {"text": "to azure"}])
    for name, value in gateway.server.env.items():
        monkeypatch.setenv(name, value)
    with anthropic.Anthropic(api_key="dummy") as claude:
        message = claude.messages.create(model="m", max_tokens=9, messages=HELLO)
    with openai.OpenAI(api_key="dummy") as gpt:
        completion = gpt.chat.completions.create(model="m", messages=HELLO)
    with openai.AzureOpenAI(api_key="dummy", api_version="v", azure_deployment="d") as azure:
        other = azure.chat.completions.create(model="m", messages=HELLO)
    assert message.content[0].text == "to claude"
    assert completion.choices[0].message.content == "to gpt"
    assert other.choices[0].message.content == "to azure"


@pytest.mark.parametrize(
    ("target", "wire"),
    [
        ("/v1/messages", "anthropic"),
        ("/messages", "anthropic"),
        ("/proxy/anthropic/v1/messages?beta=true", "anthropic"),
        ("/v1/messages/", "anthropic"),
        ("/v1/chat/completions", "openai-chat"),
        ("/chat/completions", "openai-chat"),
        ("/openai/deployments/gpt/chat/completions?api-version=2025-01-01", "openai-chat"),
        ("/v1/responses", "openai-responses"),
        ("/openai/v1/responses", "openai-responses"),
        ("/v1beta/models/gemini-x:generateContent", "gemini"),
        ("/v1/models/gemini-x:streamGenerateContent?alt=sse&key=k", "gemini"),
        ("/v1/projects/p/locations/l/publishers/google/models/g:generateContent", "gemini"),
        ("/v1beta/tunedModels/mine:generateContent", "gemini"),
        ("/v1beta/models/gemini-x:embedContent", None),
        ("/v1/messages/batches", None),
        ("/v1/completions", None),
    ],
)
def test_end_of_the_path_decides_the_format(target: str, wire: str | None) -> None:
    """Clients hold different parts of the path for their base, so only its end counts."""
    route = route_of("POST", target)
    assert (route and route.wire.name) == wire


def test_constant_port_is_kept_and_a_taken_one_is_an_error() -> None:
    """A gateway listens where it is told, or says that it cannot."""
    with GatewayServer(_endpoint()) as first:
        assert first.env == base_urls(first.port)
        with pytest.raises(OSError, match="in use"):
            GatewayServer(_endpoint(), port=first.port)
    with GatewayServer(_endpoint(), port=first.port) as again:
        assert again.port == first.port


def test_only_loopback_is_served() -> None:
    """Nobody outside this machine can ask."""
    with GatewayServer(_endpoint()) as server:
        assert server._listener.getsockname()[0] == "127.0.0.1"


def test_stopping_leaves_no_thread_behind() -> None:
    """Idle connections end with the gateway, and its threads with them."""
    before = _thread._count()
    with GatewayServer(_endpoint()) as server:
        client = socket.create_connection(("127.0.0.1", server.port), timeout=5)
        assert _becomes(lambda: _thread._count() == before + 2)
    with client:
        assert client.recv(1) == b""
    assert _becomes(lambda: _thread._count() == before)


def test_an_agent_finds_no_threads_but_its_own() -> None:
    """What Python lists as threads is the same while a gateway serves."""
    before = threading.enumerate()
    with GatewayServer(_endpoint()) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5):
            assert _becomes(lambda: _thread._count() >= len(before) + 1)
        assert threading.enumerate() == before


def _becomes(holds: Callable[[], bool]) -> bool:
    """Wait a moment for something to be so."""
    deadline = time.monotonic() + 5
    while not (is_so := holds()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return is_so


def test_agent_without_open_files_can_be_served_later(serve) -> None:
    """Running out of file descriptors for a while does not end the gateway."""
    gateway = serve([{"text": "fine"}])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hello."}]}'
    request = b"POST /v1/messages HTTP/1.0\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    with socket.socket() as client:
        client.settimeout(5)
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, hard))
        try:
            client.connect(("127.0.0.1", gateway.port))
            client.sendall(request)
            time.sleep(0.05)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_start_takes_milliseconds() -> None:
    """A trial does not wait for its gateway."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        with GatewayServer(_endpoint({"text": "x"})):
            times.append(time.perf_counter() - started)
    assert min(times) < 0.02


@pytest.mark.benchmark
def test_a_call_costs_less_than_a_millisecond_of_cpu(serve) -> None:
    """Server and plain client together stay below a millisecond a call."""
    gateway = serve([{"text": "Booked AA123 for Friday."}] * 300)
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hello."}]}'
    request = b"POST /v1/messages HTTP/1.1\r\n" + b"x-header: value\r\n" * 16
    request += b"content-length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=5) as client:
        started = time.process_time()
        for _ in range(300):
            client.sendall(request)
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        used = time.process_time() - started
    assert used / 300 < 0.0013
