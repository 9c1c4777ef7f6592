"""The world over real sockets: what clients speak, also those that are broken or hostile."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from evalkit.outside import Answer, Fixture, World, WorldPlan, WorldServer
from evalkit.outside.secure import Secure, issue
from evalkit.outside.server import Sockets
from evalkit.sandbox.certificates import make_authority

AUTHORITY = make_authority()
# On ports of loopback that no fixture can name, hence the stars.
FIXTURES = (
    Fixture("GET http://a.test*/", (Answer(body=b"plain"),)),
    Fixture("POST http://a.test*/", (Answer(201, body=b"made"),)),
    Fixture("HEAD http://a.test*/", (Answer(body=b"plain"),)),
    Fixture("GET http://a.test*/cut", (Answer(fault="disconnect"),)),
    Fixture("GET https://a.test*/", (Answer(body=b"secure"),)),
    Fixture("GET https://*.b.test*/", (Answer(body=b"star"),)),
    Fixture(
        "GET http://a.test*/chunks",
        (Answer(headers={"Transfer-Encoding": "chunked"}, body=b"x" * 40_000),),
    ),
)
HOST = b"\r\nHost: a.test\r\n"


class Served:
    """A world that listens on loopback, for http, https and as a proxy."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        authority = (AUTHORITY.certificate, AUTHORITY.key)
        plan = WorldPlan(FIXTURES, leaf=issue(["a.test"], authority=authority), authority=authority)
        self.world = World(plan, record=lambda _, data: self.told.append(dict(data)))
        self._plain, self._proxy = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        sockets = Sockets((self._plain,), proxy=self._proxy)
        self._server = WorldServer(self.world, Secure(plan), sockets).start()

    def connect(self, *, proxy: bool = False) -> socket.socket:
        """Connect to it."""
        at = (self._proxy if proxy else self._plain).getsockname()
        return socket.create_connection(at, timeout=10)

    def speak(self, *said: bytes, proxy: bool = False) -> bytes:
        """Say something, and give all that comes until the other side closes."""
        with self.connect(proxy=proxy) as client:
            for part in said:
                client.sendall(part)
            client.shutdown(socket.SHUT_WR)
            return _all_of(client)

    def secure(self, host: str) -> ssl.SSLSocket:
        """Connect with TLS, trusting the authority."""
        context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        return context.wrap_socket(self.connect(), server_hostname=host)

    def stop(self) -> None:
        """End it."""
        self._server.stop()


def _all_of(client: socket.socket) -> bytes:
    found = b""
    while part := client.recv(65536):
        found += part
    return found


@pytest.fixture
def served() -> Iterator[Served]:
    """Give a world that listens."""
    served = Served()
    yield served
    served.stop()


def test_connection_is_kept_for_more_requests(served: Served) -> None:
    """Both requests of one connection are answered, in order."""
    said = served.speak(b"GET / HTTP/1.1" + HOST + b"\r\n" + b"GET / HTTP/1.1" + HOST + b"\r\n")
    assert said.count(b"HTTP/1.1 200") == 2
    assert said.endswith(b"plain")
    assert [one["n"] for one in served.told] == [1, 2]


def test_body_in_chunks_and_expectation_to_go_on(served: Served) -> None:
    """A body may come in pieces, and after it was asked for."""
    chunked = b"POST / HTTP/1.1" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    served.speak(chunked + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    head = b"POST / HTTP/1.1" + HOST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    assert b"100 Continue" in served.speak(head, b"xyz")
    assert [one["text"] for one in served.told] == ["abcde", "xyz"]


def test_head_has_no_body(served: Served) -> None:
    """Its length is told, and nothing follows."""
    said = served.speak(b"HEAD / HTTP/1.1" + HOST + b"\r\n")
    assert b"content-length: 5" in said.lower()
    assert said.endswith(b"\r\n\r\n")


def test_answer_in_chunks_has_no_length(served: Served) -> None:
    """For clients that must count by themselves."""
    said = served.speak(b"GET /chunks HTTP/1.1" + HOST + b"Connection: close\r\n\r\n")
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"content-length" not in head.lower()
    assert b"transfer-encoding: chunked" in head.lower()
    assert body.count(b"x") == 40_000
    assert body.endswith(b"0\r\n\r\n")


def test_cut_connection_brings_nothing(served: Served) -> None:
    """A disconnect is recorded as one, and the client gets no answer."""
    with served.connect() as client:
        client.sendall(b"GET /cut HTTP/1.1" + HOST + b"\r\n")
        with suppress(ConnectionResetError):
            assert client.recv(100) == b""
    assert served.told[0]["fault"] == "disconnect"


BROKEN = {
    "no http": b"\x00\x01\x02garbage\r\n\r\n",
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "too much promised": b"POST / HTTP/1.1" + HOST + b"Content-Length: 1073741824\r\n\r\n",
    "negative length": b"POST / HTTP/1.1" + HOST + b"Content-Length: -1\r\n\r\n",
    "endless head": b"GET / HTTP/1.1\r\n" + b"x-a: b\r\n" * 100_000,
    "endless chunks": b"POST / HTTP/1.1" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    b"ffffffff\r\n",
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_request_fails_the_trial_and_takes_no_memory(name: str, served: Served) -> None:
    """At once, by what it promises; whoever sends it is told."""
    with served.connect() as client:
        try:
            client.sendall(BROKEN[name])
            said = client.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            said = b"HTTP/1.1 4"
        assert said.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), said
    assert len(served.told) == 1
    (finding,) = served.world.findings
    assert finding.code == "unscripted_request"


@pytest.mark.parametrize(("host", "body"), [("a.test", b"secure"), ("deep.b.test", b"star")])
def test_client_is_shown_a_certificate_of_the_host(served: Served, host: str, body: bytes) -> None:
    """One that was issued before, or one that is issued now; a client that checks accepts it."""
    with served.secure(host) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert _all_of(client).endswith(body)
    assert served.told[0]["url"].startswith(f"https://{host}:")


def test_client_that_trusts_nobody_is_told(served: Served) -> None:
    """The trial's reason says that it did not accept the certificate."""
    context = ssl.create_default_context(cadata=make_authority().certificate.decode())
    with pytest.raises(ssl.SSLError), served.connect() as client:
        context.wrap_socket(client, server_hostname="a.test")
    _until(lambda: bool(served.world.leave()))
    assert "did not accept the certificate of a.test" in served.world.findings[0].reason


def _until(is_so: Callable[[], bool]) -> None:
    """Wait for another thread, a while."""
    event = threading.Event()
    for _ in range(500):
        if is_so():
            return
        event.wait(0.01)
    pytest.fail("it never happened")


def test_proxy_is_told_the_whole_address(served: Served) -> None:
    """As clients do that ask HTTP_PROXY."""
    said = served.speak(b"GET http://a.test/ HTTP/1.1" + HOST + b"\r\n", proxy=True)
    assert said.endswith(b"plain")
    assert served.told[0]["url"] == "http://a.test/"


def test_tunnel_leads_to_fixtures_and_nowhere_else(served: Served) -> None:
    """With TLS inside; the host is that of the tunnel."""
    context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    with served.connect(proxy=True) as client:
        client.sendall(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        with context.wrap_socket(client, server_hostname="a.test") as inside:
            inside.sendall(b"GET / HTTP/1.1" + HOST + b"Connection: close\r\n\r\n")
            assert _all_of(inside).endswith(b"secure")
    assert served.told[0]["url"] == "https://a.test/"


def test_many_clients_at_once_are_all_answered(served: Served) -> None:
    """Each once, numbered without a gap."""
    said: list[bytes] = []

    def ask() -> None:
        said.append(served.speak(b"GET http://a.test/ HTTP/1.1" + HOST + b"\r\n", proxy=True))

    threads = [threading.Thread(target=ask) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.endswith(b"plain") for one in said)
    assert [one["n"] for one in served.told] == list(range(1, 41))
